"""Writes targets for the sources of a file, or continues a prompt."""

import dataclasses

from nezha_tf.data.bad_rows import BadRows
from nezha_tf.data.pairs import read_pairs
from nezha_tf.data.rows import Row
from nezha_tf.generation.model import load_model, open_model, with_defaults
from nezha_tf.generation.settings import SEARCH_DEFAULTS
from nezha_tf.generation.sources import Packing
from nezha_tf.generation.target_format import MODES
from nezha_tf.generation.writing import TargetWriter, write_predictions
from nezha_tf.generation.writing_format import format_of, with_format
from nezha_tf.util import console, files
from nezha_tf.util.errors import UserError, require_unicode
from nezha_tf.util.settings import require_read


def generate_text(settings):
    """Writes texts to a file, or returns them.

    Args:
      settings: `GenerateSettings`.

    Returns:
      Text to print: the texts themselves if there is no --output_file, and how many they are.

    Raises:
      UserError: a mistake in the flags or in the files.
    """
    bad_rows = BadRows()
    rows = _read(settings, bad_rows)
    opened = open_model(settings)
    settings = _with_values(settings, opened)
    form = format_of(vars(settings), opened.tokenizer)
    form.check(opened.config)
    model, tokenizer = load_model(opened)
    pairs = Packing(tokenizer, form.source).pack(rows)
    batch_size = min(settings.predict_batch_size, len(rows))
    writer = TargetWriter(model, tokenizer, form, batch_size, settings.seed, settings.jit_compile)
    written = writer(rows, pairs)
    done = f"{console.plural(len(rows), 'text')}{pairs.truncation()}{bad_rows.note()}"
    if settings.output_file:
        write_predictions(settings.output_file, rows, written)
        return f"{done}; written to {settings.output_file}"
    tables = [
        console.table(row.values["src"], [(f"{h.score:.3f}", h.text) for h in hypotheses])
        for row, hypotheses in zip(rows, written, strict=True)
    ]
    return "\n".join([*tables, done])


def _read(settings, bad_rows):
    """Returns --prompt, or the sources of --input_file: list of `Row`; counts blank lines."""
    if bool(settings.prompt) == bool(settings.input_file):
        raise UserError("one of --prompt and --input_file is needed")
    if settings.output_file:
        files.require_file(settings.output_file, "output_file")
    if settings.prompt:
        require_unicode(settings.prompt, "prompt")
        return [Row({"src": settings.prompt}, "--prompt", 1)]
    # A row may also have a target, as in the files of run_seq2seq.py; it is copied to the output.
    paths = files.expand(settings.input_file, "input_file")
    if settings.output_file:
        files.require_other(settings.output_file, "output_file", paths)
    return read_pairs(paths, settings.pair_columns, optional=("tgt",), bad_rows=bad_rows)


def _with_values(given, opened):
    settings = with_defaults(with_format(given, opened), opened, SEARCH_DEFAULTS)
    require_read(given, settings)
    banned = (*settings.banned_words, *MODES[settings.mode].banned)
    return dataclasses.replace(settings, banned_words=banned)
