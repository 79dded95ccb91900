"""Builds a vocabulary file from text files; the code of `tools/build_vocab.py`."""

import contextlib

from nezha_tf.corpus.documents import read_with_progress
from nezha_tf.corpus.pool import run_tasks
from nezha_tf.data.corpus import decoded, read_lines, read_stretches
from nezha_tf.data.text_forms import Reading
from nezha_tf.text.vocabulary import LONGEST_TOKEN
from nezha_tf.text.vocabulary_builder import VocabularyBuilder
from nezha_tf.util import console, files, storage
from nezha_tf.util.cores import available_cores
from nezha_tf.util.errors import UserError, require_flag

# To start a process takes as long as to count about this much text.
WORTH_A_WORKER = 32 << 20


def make_vocabulary(settings):
    """Builds a vocabulary and writes it; any number of workers gives the same bytes.

    The text is read in stretches, which the workers count. `settings` are `VocabularySettings`.

    Returns:
      Text to print: a table with the number of tokens and what of the text they cover.

    Raises:
      UserError: a flag is missing, the output is also an input, a file cannot be read, there is no
        text, a token of --include_file is too long, --vocab_size is too small, or a worker was
        killed. No file is written.
    """
    output_file = require_flag(settings.output_file, "output_file")
    files.require_file(output_file, "output_file")
    patterns = require_flag(settings.input_file, "input_file")
    paths = files.expand(patterns, "input_file", in_folders="")
    reading = Reading(settings.text_fields, settings.encoding)
    reading.check()
    included = [settings.include_file] if settings.include_file else []
    files.require_other(output_file, "output_file", [*paths, *included])
    builder = VocabularyBuilder(
        settings.vocab_size,
        do_lower_case=settings.do_lower_case,
        min_character_count=settings.min_character_count,
        common_characters=settings.common_characters,
        include=[token for path in included for token in _included(path)],
    )
    size = sum(map(storage.size, paths))
    workers = settings.num_workers or min(available_cores(), 1 + size // WORTH_A_WORKER)
    stretches = read_with_progress(paths, "counting", lambda path: read_stretches(path, reading))
    counted = run_tasks(
        workers,
        stretch_counter,
        (settings.do_lower_case,),
        stretches,
        lambda stretch: f"counted {stretch[0]}; start again",
    )
    with contextlib.closing(counted):
        for _, counts in counted:
            builder.add(*counts)
    tokens, coverage = builder.build()
    files.write_text(output_file, "".join(f"{token}\n" for token in tokens))
    rows = [("tokens", f"{len(tokens):,}")]
    shares = {"Chinese characters covered": coverage.chinese, "other words covered": coverage.other}
    rows += [(name, f"{share:.3%}") for name, share in shares.items() if share is not None]
    if settings.vocab_size is None:
        rows += [
            ("--vocab_size, by the text", builder.vocab_size),
            ("--min_character_count, by the text", builder.min_character_count),
        ]
    return console.facts(output_file, rows)


def _included(path):
    """Yields the tokens of a file; `Vocabulary.from_file` reads no longer ones."""
    for number, line in enumerate(read_lines(path), start=1):
        token = line.strip()
        if len(token.encode()) > LONGEST_TOKEN:
            raise UserError(
                f"--include_file {path}, line {number}: a token has more than {LONGEST_TOKEN} "
                "bytes; write one token per line"
            )
        if token:
            yield token


def stretch_counter(do_lower_case):
    """Returns a worker's function, from (file, bytes) to what `UnitCounter.count` returns."""
    from nezha_tf.text.vocabulary_builder import UnitCounter

    counter = UnitCounter(do_lower_case)
    return lambda stretch: counter.count(decoded(stretch[1], stretch[0]))
