"""Fills blanks: finds the likeliest tokens for each [MASK] of a text."""

import sys

import numpy as np
import tensorflow as tf

from nezha_tf.config import SEGMENT_IDS
from nezha_tf.data.bad_rows import BadRows
from nezha_tf.data.lines import filled_lines
from nezha_tf.generation.model import load_model, open_model
from nezha_tf.modeling import positions
from nezha_tf.objectives.uses import uses_of
from nezha_tf.text.vocabulary import MASK
from nezha_tf.util import console
from nezha_tf.util.errors import UserError, require_unicode


class BlankFiller:
    """A function from a text to the `top_k` likeliest candidates for each of its blanks.

    The `NezhaForMaskedLM` sees the text on both sides of a blank; each blank is filled by itself.
    """

    def __init__(self, model, tokenizer, top_k):
        self._model, self._tokenizer, self._top_k = model, tokenizer, top_k

    def __call__(self, text):
        """Returns for each [MASK] of a text a list of (token, probability), likeliest first.

        Raises:
          UserError: the text has no [MASK], or is longer than the model's table of positions.
        """
        vocabulary = self._tokenizer.vocabulary
        # The tokenizer would split "[MASK]" into the brackets and the word.
        parts = [self._tokenizer.tokenize(part) for part in text.split(MASK)]
        if len(parts) == 1:
            raise UserError(f"no {MASK} in the text; write one for each token to fill in")
        ids = [vocabulary.cls_id]
        blanks = []
        for part in parts:
            ids += [*vocabulary.ids_of(part), vocabulary.mask_id]
            blanks.append(len(ids) - 1)
        # What follows the last part is no blank, but the end of the text.
        ids[blanks.pop()] = vocabulary.sep_id
        config = self._model.config
        positions.of(config).check_length(config, len(ids), f"a text of {len(ids)} tokens")
        outputs = self._model(
            {
                "input_ids": tf.constant([ids]),
                "input_mask": tf.ones((1, len(ids)), tf.int32),
                "segment_ids": tf.fill((1, len(ids)), SEGMENT_IDS["bidirectional"][0]),
                "masked_lm_positions": tf.constant([blanks]),
            }
        )
        probs = tf.nn.softmax(outputs["masked_lm_logits"][0])[:, : len(vocabulary)]
        candidates = tf.math.top_k(probs, min(self._top_k, len(vocabulary)))
        return [
            list(zip(vocabulary.tokens_of(tokens), values.tolist(), strict=True))
            for tokens, values in zip(
                candidates.indices.numpy(), np.array(candidates.values), strict=True
            )
        ]


def fill_mask(settings):
    """Shows candidates for the blanks of a text, of a file's lines or of lines that are typed.

    Args:
      settings: `FillMaskSettings`.

    Raises:
      UserError: a mistake in the flags or in a line of the file, or a line that is typed is not
        UTF-8. Another mistake in such a line is printed, and the next line is read.
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
            print(error)
    if bad_rows.num_blank:
        print(bad_rows.note().removeprefix("; "))


def require_blanks(opened):
    """Raises a `UserError` if a model was pretrained for objectives of which none fills blanks."""
    objectives = opened.task.get("objectives")
    if objectives is not None and "fill_mask" not in uses_of(opened.task):
        raise UserError(
            f"the model was pretrained for {objectives} and cannot fill blanks; take one whose "
            "objectives contain bidirectional"
        )


def _file_lines(path, bad_rows):
    """Returns a list of (place, text) for the lines of a file; `place` names file and line."""
    lines = filled_lines(path, bad_rows)
    lines = [(f"{path}, line {line.number}", line.text.strip()) for line in lines]
    if not lines:
        raise UserError(f"{path} has no lines; write one text on each line")
    return lines


def _typed():
    """Returns ("", a line of standard input); at its end, or for an empty line, ("", "")."""
    if sys.stdin.isatty():
        print(f"text with {MASK} (an empty line ends the program): ", end="", flush=True)
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
