"""Makes TFRecord files from a corpus; the code of `tools/create_pretraining_data.py`."""

import collections
import contextlib
import dataclasses
import os
import threading
import time

from nezha_tf.corpus import report, shard_writer
from nezha_tf.corpus.assignment import HELD_OUT, TRAINING, default_shards, shards_of
from nezha_tf.corpus.documents import measure
from nezha_tf.corpus.output_set import OutputSet
from nezha_tf.corpus.provenance import identity_of
from nezha_tf.corpus.runners import RUNNERS
from nezha_tf.corpus.runners.work import Work, make_shards
from nezha_tf.corpus.settings import TEXT_FILES, Settings
from nezha_tf.corpus.shard_files import manifest_name, read_manifest, summary_name, write_entry
from nezha_tf.corpus.statistics import READING
from nezha_tf.text.vocabulary import Vocabulary
from nezha_tf.util import console, endings, files, locks, storage
from nezha_tf.util.cores import available_cores
from nezha_tf.util.errors import Terminated, UserError, require_flag
from nezha_tf.util.settings import GIVEN, flag, require_read


def _engines_of(options):
    return {"runner": tuple(name for name, kind in RUNNERS.items() if kind.OPTIONS == options)}


@dataclasses.dataclass(frozen=True)
class ProgramSettings(Settings):
    """All flags of `tools/create_pretraining_data.py`; see `create_pretraining_data`."""

    input_file: str | None = flag(None, TEXT_FILES)
    output_file: str | None = flag(
        None,
        "TFRecord file to write; several shards of train.tfrecord are named "
        "train-00000-of-00032.tfrecord and so on.",
    )
    eval_output_file: str = flag("", "TFRecord file for the held-out documents.")
    eval_share: float = flag(
        0.05, "Share of the documents to hold out.", 0, 1, read_with={"eval_output_file": GIVEN}
    )
    num_output_shards: int = flag(
        0,
        "Number of shards; 0: a power of two, for at most 4 MiB of text in each in the mean, or 8 "
        "MiB where the documents are few and long.",
        0,
    )
    num_workers: int = flag(
        0, "Number of worker processes; 0: one for each core.", 0, read_with={"runner": ("",)}
    )
    runner: str = flag(
        "",
        "Engine whose workers make the shards: Spark, or a runner of Apache Beam.",
        choices=("", *RUNNERS),
    )
    beam_options: str = flag(
        "",
        "Options for Beam: '--project=... --temp_location=...'.",
        read_with=_engines_of("beam_options"),
    )
    spark_options: str = flag(
        "",
        "Options for Spark, as of spark-submit: '--master=spark://host:7077 --conf ...'.",
        read_with=_engines_of("spark_options"),
    )


def create_pretraining_data(**flags):
    """Writes the examples of a corpus to TFRecord files; the same arguments give the same bytes.

    The corpus is read twice: first to count its documents and their bytes, then to pass the
    documents to the workers, shard after shard, in the corpus's order. A shard is a run of
    consecutive documents, see `Assignment`. Neither this nor any random draw depends on the number
    of workers.

    Random second segments come from documents of the same shard, which has hundreds by default. In
    a corpus that is sorted by subject they are more similar to the first ones, and the
    next-sentence label is harder to predict; shuffle such a corpus first.

    Shards that exist with the same settings are not made again: after an interruption, the same
    command makes the missing shards and ends with the same bytes.

    Args:
      **flags: the fields of `ProgramSettings`; `input_file`, `output_file` and `vocab_file` are
        needed. Names with a scheme (`gs://`) are opened by `tf.io.gfile`.

    Raises:
      UserError: the input is bad, existing shards were made with other flags, another run writes
        the same files, a worker was killed, or the runner failed. No incomplete file is left,
        and finished shards stay, unless the corpus changed while it was read.
      Terminated: the process was asked to end, see `endings`.
    """
    flags = ProgramSettings(**flags)
    require_read(flags)
    inputs, outputs = _files_of(flags)
    vocab_size = len(Vocabulary.from_file(flags.vocab_file))
    make_engine = RUNNERS.get(flags.runner)
    engine = make_engine and make_engine(flags.runner, getattr(flags, make_engine.OPTIONS))
    # This refuses bad flags at once.
    names = [field.name for field in dataclasses.fields(Settings)]
    settings = Settings.of_flags(**{name: getattr(flags, name) for name in names})
    share = max(flags.eval_share, 1e-9) if flags.eval_output_file else 0.0
    with _terminable(), contextlib.ExitStack() as locked:
        started = time.monotonic()
        measured = measure(inputs, settings.random_seed, share, settings.reading)
        spent = collections.Counter({READING: time.monotonic() - started})
        shards = flags.num_output_shards or default_shards(measured.training)
        settings = dataclasses.replace(settings, num_output_shards=shards, eval_share=share)
        identity = identity_of(settings, measured)
        for path in outputs:  # other runs must not write them; remote ones are not locked
            folder, name = os.path.split(path)
            locked.enter_context(locks.held(os.path.join(folder, f".{name}.lock"), path))
        sets = _sets(settings, measured, identity, outputs)
        wanted = set().union(*(each.wanted() for each in sets))
        workers = min(flags.num_workers or available_cores(), len(wanted))
        report.print_plan(sets, len(wanted), workers, flags.runner)
        made, length = 0, None
        if wanted:
            report.warn_of_words(settings)
            for each in sets:
                if each.wanted():
                    write_entry(each.output_file, None)
            counts = {each.name: len(each.paths) for each in sets}
            shards = shards_of(
                inputs, measured, settings.random_seed, counts, wanted, settings.reading
            )
            if engine is not None:
                work = Work.of(settings, identity, inputs, measured.threshold, sets)
                made = make_shards(engine, work, (shard.span for shard in shards), sets)
            else:
                made, length, seconds = shard_writer.make_shards(
                    shards, settings, identity, sets, workers
                )
                spent.update(seconds)
        for each in sets:
            # Workers of an earlier, killed run may have ended after this run began.
            each.remove_leftovers()
        report.finish(sets, settings, identity, measured, vocab_size)
        if length is not None:
            report.print_stages(
                spent, 2 * (measured.training.bytes + measured.held_out.bytes), length
            )
        report.print_rate(made, time.monotonic() - started)


def _files_of(flags):
    """Returns the texts and the one or two files to write, if they can be used."""
    inputs = files.expand(flags.input_file, "input_file", may_be_empty=True, in_folders="")
    outputs = [storage.with_single_slashes(require_flag(flags.output_file, "output_file"))]
    if flags.eval_output_file:
        outputs.append(storage.with_single_slashes(flags.eval_output_file))
    no_text = {"vocab_file": require_flag(flags.vocab_file, "vocab_file")}
    if flags.user_dict:
        no_text["user_dict"] = flags.user_dict
    _check_inputs(inputs, no_text)
    _check_outputs(outputs, [*inputs, *no_text.values()])
    return inputs, outputs


def _check_inputs(inputs, no_text):
    """Raises a `UserError` if a text is named twice, or is the file of a flag in `no_text`."""
    flags, seen = {files.file_id(path): flag for flag, path in no_text.items()}, {}
    for path in inputs:
        flag, same = flags.get(files.file_id(path)), seen.setdefault(files.file_id(path), path)
        if flag:
            what = {"vocab_file": "vocabulary", "user_dict": "dictionary"}[flag]
            raise UserError(
                f"--input_file: {path} is the {what} (--{flag}), not text; narrow the pattern, or "
                "move it elsewhere"
            )
        if same != path:
            raise UserError(
                f"--input_file: {same} and {path} are the same file, which would be read twice; "
                "name it once"
            )


def _check_outputs(outputs, inputs):
    seen = set(map(files.file_id, inputs))
    for path in outputs:
        if "," in path:
            raise UserError(f"{path}: name one file; --num_output_shards gives several")
        if storage.isdir(path) or not os.path.basename(path):
            raise UserError(f"output {path} is a folder; name a file in it")
        if path.endswith((summary_name(""), ".tmp")):
            raise UserError(
                f"output {path} has the ending of a summary or of an unfinished file; choose "
                "another, such as .tfrecord"
            )
        files.require_short_name(path, "output_file", summary_name(""))
        if files.file_id(path) in seen:
            raise UserError(f"output {path} is named twice or is an input; choose another name")
        seen.add(files.file_id(path))
        read_manifest(manifest_name(path))


def _sets(settings, measured, identity, outputs):
    """Returns the `OutputSet`s, with what is finished of them."""
    if settings.num_output_shards > measured.training.count:
        raise UserError(
            f"--num_output_shards={settings.num_output_shards} is more than the "
            f"{console.plural(measured.training.count, 'document')} of the corpus; pass fewer"
        )
    rows = (
        (TRAINING, measured.training, settings.dupe_factor, settings.num_output_shards),
        (HELD_OUT, measured.held_out, 1, default_shards(measured.held_out)),
    )
    sets = [
        OutputSet(name, path, documents, repetitions, count)
        for path, (name, documents, repetitions, count) in zip(outputs, rows, strict=False)
    ]
    seen = set()
    for path in (path for each in sets for path in each.paths):
        if files.file_id(path) in seen:
            raise UserError(
                f"output {path} is a shard of --output_file and of --eval_output_file; choose "
                "another name for one of them"
            )
        seen.add(files.file_id(path))
    for each in sets:
        each.add_finished(identity)
        each.remove_leftovers()
    return sets


def _terminable():
    """Makes a signal that asks the process to end raise `Terminated` in the block."""

    def terminate(name):
        raise Terminated("terminated; finished shards stay: the same command makes the rest")

    if threading.current_thread() is not threading.main_thread():
        return contextlib.nullcontext()
    return endings.asked(terminate)
