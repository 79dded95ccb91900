"""Fills blanks: finds the likeliest tokens for each [MASK] of a text."""

import sys

import tensorflow as tf

from nezha_tf.data.lines import BadRows, filled_lines
from nezha_tf.generation.model import load_model, open_model
from nezha_tf.modeling import positions
from nezha_tf.objectives.uses import uses_of
from nezha_tf.serving.any_model import SPECIAL_TOKENS, FillMaskServing
from nezha_tf.text.vocabulary import MASK
from nezha_tf.util import console
from nezha_tf.util.errors import UserError, require_unicode
from nezha_tf.util.language import translated


class BlankFiller:
    """Finds the `top_k` likeliest candidates for each blank of a text."""

    def __init__(self, model, tokenizer, top_k):
        self._config = model.config
        longest = positions.of(self._config).longest(self._config) or tf.int32.max
        self._serving = FillMaskServing(model, tokenizer, longest, top_k)

    def __call__(self, text):
        """Returns for each [MASK] of a text a list of (token, probability), likeliest first.

        Raises:
          UserError: the text has no [MASK], or is longer than the model's table of positions.
        """
        if MASK not in text:
            raise UserError(f"no {MASK} in the text; write one for each token to fill in")
        ids = self._serving.ids_of(tf.constant([text]))
        length = int(ids.row_lengths()[0]) + SPECIAL_TOKENS
        positions.of(self._config).check_length(self._config, length, f"a text of {length} tokens")
        outputs = self._serving.filled(ids)
        tokens, probabilities = (
            outputs[name][0].numpy().tolist() for name in ("candidates", "probabilities")
        )
        return [
            [(token.decode(), share) for token, share in zip(*blank, strict=True)]
            for blank in zip(tokens, probabilities, strict=True)
        ]


def fill_mask(settings):
    """Shows candidates for the blanks of a text, of a file's lines or of lines that are typed.

    A mistake in a line that is typed is printed, and the next line is read; others are a
    `UserError`.
    """
    if settings.input_file and settings.text:
        raise UserError("--text and --input_file: pass one of them")
    bad_rows = BadRows()
    if settings.text:
        require_unicode(settings.text, "text")
        lines = [("--text", settings.text)]
    elif settings.input_file:
        lines = _file_lines(settings.input_file, bad_rows)
    else:
        lines = iter(_typed, ("", ""))
    opened = open_model(settings)
    require_blanks(opened)
    filler = BlankFiller(*load_model(opened), settings.top_k)
    for place, text in lines:
        try:
            print(_shown(text, filler(text)))
        except UserError as error:
            if place:
                raise UserError(f"{place}: {error}") from error
            console.tell(error)
    if bad_rows.num_blank:
        print(translated(bad_rows.note()).lstrip("; ；"))


def require_blanks(opened):
    """Raises a `UserError` if no objective of a pretrained model fills blanks."""
    objectives = opened.task.get("objectives")
    if objectives is not None and "fill_mask" not in uses_of(opened.task):
        raise UserError(
            f"the model was pretrained for {objectives} and cannot fill blanks; take one whose "
            "objectives contain bidirectional"
        )


def _file_lines(path, bad_rows):
    lines = [
        (f"{path}, line {line.number}", line.text.strip()) for line in filled_lines(path, bad_rows)
    ]
    if not lines:
        raise UserError(f"{path} has no lines; write one text on each line")
    return lines


def _typed():
    """Returns ("", a line of standard input); at its end, or for an empty line, ("", "")."""
    if sys.stdin.isatty():
        console.tell(f"text with {MASK} (an empty line ends the program): ", end="", flush=True)
    try:
        line = sys.stdin.readline().strip()
        line.encode()
    except UnicodeError as error:
        raise UserError("the line is not UTF-8; convert the text") from error
    return "", line


def _shown(text, blanks):
    lines = [text]
    for number, candidates in enumerate(blanks, start=1):
        title = f"{MASK} {number}" if len(blanks) > 1 else MASK
        rows = [(token, f"{probability:.2%}") for token, probability in candidates]
        lines.append(console.table(title, rows))
    return "\n".join(lines)
