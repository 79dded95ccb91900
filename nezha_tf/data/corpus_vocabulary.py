"""Builds a vocabulary file from text files."""

from nezha_tf import console, files
from nezha_tf.data.corpus import read_documents
from nezha_tf.errors import require_flag
from nezha_tf.text.vocabulary_builder import build_vocabulary


def make_vocabulary(settings):
    """Builds a vocabulary and writes it.

    Args:
      settings: `text.settings.VocabularySettings`.

    Returns:
      Text to print: a table with the number of pieces and the share of Chinese characters covered.

    Raises:
      UserError: a flag is missing, the output is also an input, a file cannot be read, there is no
        text, or --vocab_size is too small.
    """
    output_file = require_flag(settings.output_file, "output_file")
    paths = files.expand(require_flag(settings.input_file, "input_file"), "input_file")
    included = [settings.include_file] if settings.include_file else []
    files.require_other(output_file, "output_file", [*paths, *included])
    pieces, coverage = build_vocabulary(
        _lines(paths),
        settings.vocab_size,
        do_lower_case=settings.do_lower_case,
        min_character_count=settings.min_character_count,
        common_characters=settings.common_characters,
        include=list(_lines(included)),
    )
    files.write_text(output_file, "".join(f"{piece}\n" for piece in pieces))
    rows = [("pieces", f"{len(pieces):,}"), ("Chinese characters covered", f"{coverage:.3%}")]
    return console.table(output_file, rows)


def _lines(paths):
    """Yields the lines of text files."""
    for path in paths:
        for document in read_documents(path):
            yield from document
