"""Makes TFRecord files from a corpus; the code of `tools/create_pretraining_data.py`."""

import collections
import contextlib
import dataclasses
import functools
import os
import signal
import threading
import time

from nezha_tf.corpus import leftovers, report
from nezha_tf.corpus.assignment import HELD_OUT, TRAINING, default_shards, shards_of, spans_of
from nezha_tf.corpus.documents import CorpusChanged, measure
from nezha_tf.corpus.identity import finished_shards, identity_of
from nezha_tf.corpus.manifest import manifest_path, read_manifest, remove_entry
from nezha_tf.corpus.output_set import OutputSet
from nezha_tf.corpus.pool import WorkerDied, WorkerPool
from nezha_tf.corpus.runners import RUNNERS
from nezha_tf.corpus.runners.work import Work, make_shards, outputs_of
from nezha_tf.corpus.settings import Settings
from nezha_tf.corpus.shard_files import ShardJob, make_shard, record_name, shard_names
from nezha_tf.corpus.stopwatch import READING, STAGES, Stopwatch
from nezha_tf.text.settings import TEXT_FILES
from nezha_tf.text.vocabulary import Vocabulary
from nezha_tf.util import console, files, locks, storage
from nezha_tf.util.cores import available_cores
from nezha_tf.util.errors import Terminated, UserError, require_flag
from nezha_tf.util.settings import flag


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
    eval_share: float = flag(0.05, "Share of the documents to hold out.", 0, 1)
    num_output_shards: int = flag(
        0,
        "Number of shards; 0: a power of two, for at most 4 MiB of text in each in the mean, or 8 "
        "MiB where the documents are few and long.",
        0,
    )
    num_workers: int = flag(0, "Number of worker processes; 0: one for each core.", 0)
    runner: str = flag(
        "",
        "Engine whose workers make the shards: Spark, or a runner of Apache Beam.",
        choices=("", *RUNNERS),
    )
    beam_options: str = flag("", "Options for Beam: '--project=... --temp_location=...'.")
    spark_options: str = flag(
        "", "Options for Spark, as of spark-submit: '--master=spark://host:7077 --conf ...'."
    )


def create_pretraining_data(
    *,
    input_file,
    output_file,
    vocab_file,
    eval_output_file="",
    eval_share=0.05,
    num_output_shards=0,
    num_workers=0,
    runner="",
    beam_options="",
    spark_options="",
    **others,
):
    """Writes the examples of a corpus to TFRecord files; the same arguments give the same bytes.

    The corpus is read twice: first to count its documents and their bytes, then to pass the
    documents to the workers, shard after shard, in the corpus's order. A shard is a run of
    consecutive documents: of n shards, the document that begins after b of the set's B bytes goes
    to shard floor(b n / B). Neither this nor any random draw depends on the number of workers.

    Random second segments come from documents of the same shard; a shard of the default size has
    hundreds of documents. If a corpus is sorted by subject, such segments are more similar to
    the first ones than segments from the whole corpus would be, and the next-sentence label is
    harder to predict; shuffle such a corpus first.

    Shards that exist with the same settings are not made again: after an interruption, the same
    command makes the missing shards and ends with the same bytes.

    Prints a table of the contents of each set, and a line for each kind of anomaly.

    Args:
      input_file: names, folders or globs of the files of the corpus (`text_forms.FORMS`,
        `compression.COMPRESSIONS`), separated by commas; a name with a scheme (`gs://`) is opened
        by `tf.io.gfile`.
      output_file: TFRecord file to write. If there are several shards, those of
        `train.tfrecord` are named `train-00000-of-00032.tfrecord` and so on. Beside each shard
        there is a summary of it (`.json`), and `manifest.json` describes all shards.
      vocab_file: the vocabulary.
      eval_output_file: if given, whole documents are held out of `output_file`, and their
        examples are written to this file, in shards of the default size.
      eval_share: share of the documents to hold out, chosen by a hash of the seed and the
        document's number; both sets have at least one document.
      num_output_shards: number of shards of the training documents; 0: the lowest power of two
        that gives each shard at most 4 MiB of text in the mean; see `default_shards`.
      num_workers: number of processes, at most the number of shards to make; 0: one for each
        core.
      runner: an engine (`runners.RUNNERS`) whose workers make the shards. They need this package,
        and the files under the same names as on this machine.
      beam_options, spark_options: the engine's own options in the form of a command line.
      others: the other fields of `Settings`.

    Raises:
      UserError: the input is bad, existing shards were made with other flags, another run writes
        the same files, a worker was killed, or the runner failed. No incomplete file is left,
        and finished shards stay, unless the corpus changed while it was read.
      Terminated: the process received SIGTERM.
    """
    inputs = files.expand(input_file, "input_file", may_be_empty=True, in_folders="")
    output_file = storage.with_single_slashes(require_flag(output_file, "output_file"))
    eval_output_file = storage.with_single_slashes(eval_output_file)
    outputs = [output_file, eval_output_file]
    no_text = {"vocab_file": require_flag(vocab_file, "vocab_file")}
    if others.get("user_dict"):
        no_text["user_dict"] = others["user_dict"]
    _check_inputs(inputs, no_text)
    _check_outputs(outputs, [*inputs, *no_text.values()])
    vocab_size = len(Vocabulary.from_file(vocab_file))
    share = max(eval_share, 1e-9) if eval_output_file else 0.0
    seed = others.get("random_seed", Settings.random_seed)
    options = {"beam_options": beam_options, "spark_options": spark_options}
    engine = _engine(runner, options, num_workers)
    # This refuses bad flags at once.
    reading = Settings.of_flags(vocab_file=vocab_file, **others).reading
    with _terminable(), contextlib.ExitStack() as stack:
        started, clock = time.monotonic(), Stopwatch()
        with clock.stage(READING):
            found = measure(inputs, seed, share, reading)
        settings = Settings.of_flags(
            vocab_file=vocab_file,
            num_output_shards=num_output_shards or default_shards(found.training),
            eval_share=share,
            **others,
        )
        identity = identity_of(settings, found)
        _hold(filter(None, (output_file, eval_output_file)), stack)
        sets = _sets(settings, found, identity, output_file, eval_output_file)
        wanted = set().union(*(chosen.wanted() for chosen in sets))
        workers = min(num_workers or available_cores(), len(wanted))
        report.tell_plan(sets, len(wanted), workers, runner)
        if wanted:
            report.warn_of_words(settings)
        for chosen in sets:
            if chosen.wanted():
                remove_entry(chosen.output_file)
        made, stages = 0, ()
        if wanted and engine is not None:
            spans = spans_of(inputs, found, settings.random_seed, _counts(sets), wanted, reading)
            work = Work(settings, identity, inputs, found.threshold, outputs_of(sets))
            made = make_shards(engine, work, spans, sets)
        elif wanted:
            shards = shards_of(inputs, found, settings.random_seed, _counts(sets), wanted, reading)
            shards = clock.each(READING, shards)
            made, length, spent = _make_shards(sets, settings, identity, shards, workers)
            read = 2 * (found.training.bytes + found.held_out.bytes)
            stages = [(READING, read, clock.taken()[READING])]
            stages += [(stage, length, spent[stage]) for stage in STAGES if spent[stage]]
        for chosen in sets:
            # Workers of an earlier, killed run may have ended after this run began.
            leftovers.remove(chosen.output_file)
        seconds = time.monotonic() - started
        report.tell_end(sets, settings, identity, found, vocab_size, stages, made, seconds)


def shard_function(settings, identity):
    """Returns a worker's function, from a `ShardJob` to (its summary, its seconds by stage).

    See `make_shard` and `Stopwatch`.
    """
    from nezha_tf.corpus.shard_maker import ShardMaker

    return functools.partial(_make_one, settings, ShardMaker(settings), identity)


def _make_one(settings, maker, identity, job):
    return make_shard(settings, maker, job, identity), maker.clock.taken()


def _check_inputs(inputs, no_text):
    """Raises a `UserError` if a text is named twice or is no text, since a glob can match it.

    Args:
      inputs: the texts.
      no_text: dict of the flags of other files to their values.
    """
    flags, seen = {files.file_id(path): flag for flag, path in no_text.items()}, {}
    for path in inputs:
        flag, found = flags.get(files.file_id(path)), seen.setdefault(files.file_id(path), path)
        if flag:
            what = {"vocab_file": "vocabulary", "user_dict": "dictionary"}[flag]
            raise UserError(
                f"--input_file: {path} is the {what} (--{flag}), not text; narrow the pattern, or "
                "move it elsewhere"
            )
        if found != path:
            raise UserError(
                f"--input_file: {found} and {path} are the same file, which would be read twice; "
                "name it once"
            )


def _check_outputs(outputs, inputs):
    """Raises a `UserError` if an output path cannot be used, before anything is read."""
    seen = set(map(files.file_id, inputs))
    for path in filter(None, outputs):
        if "," in path:
            raise UserError(f"{path}: name one file; --num_output_shards gives several")
        if storage.isdir(path) or not os.path.basename(path):
            raise UserError(f"output {path} is a folder; name a file in it")
        if path.endswith((record_name(""), ".tmp")):
            raise UserError(
                f"output {path} has the ending of a summary or of an unfinished file; choose "
                "another, such as .tfrecord"
            )
        files.require_short_name(path, "output_file", record_name(""))
        if files.file_id(path) in seen:
            raise UserError(f"output {path} is named twice or is an input; choose another name")
        seen.add(files.file_id(path))
        read_manifest(manifest_path(path))


def _hold(outputs, stack):
    """Locks the outputs while the stack is open; remote files are not locked.

    Raises:
      UserError: another run is writing one of them.
    """
    for path in outputs:
        folder, name = os.path.split(path)
        stack.enter_context(locks.held(os.path.join(folder, f".{name}.lock"), path))


def _engine(runner, options, num_workers):
    """Returns the engine of a name, or None if the name is empty.

    Args:
      runner: the name, see `RUNNERS`.
      options: dict of the flags of all engines' options to their values.
      num_workers: the number of processes on this machine; 0: not given.
    """
    own = RUNNERS[runner].OPTIONS if runner else None
    for flag_name, value in options.items():
        if value and flag_name != own:
            fitting = ", ".join(name for name, kind in RUNNERS.items() if kind.OPTIONS == flag_name)
            raise UserError(f"--{flag_name} needs --runner: {fitting}")
    if not runner:
        return None
    if num_workers:
        raise UserError(
            f"--num_workers is for workers on this machine; set the number of workers of "
            f"--runner={runner} in --{own}"
        )
    return RUNNERS[runner](runner, options[own])


def _sets(settings, found, identity, output_file, eval_output_file):
    if settings.num_output_shards > found.training.count:
        raise UserError(
            f"--num_output_shards={settings.num_output_shards} is more than the "
            f"{console.plural(found.training.count, 'document')} of the corpus; pass fewer"
        )
    chosen = [(TRAINING, output_file, found.training, settings.dupe_factor)]
    if eval_output_file:
        chosen.append((HELD_OUT, eval_output_file, found.held_out, 1))
    sets = []
    for name, path, documents, repetitions in chosen:
        count = settings.num_output_shards if name == TRAINING else default_shards(documents)
        sets.append(OutputSet(name, path, documents, repetitions, shard_names(path, count)))
    _refuse_common_shards(sets)
    for each in sets:
        for shard, record in finished_shards(each.output_file, each.paths, identity):
            each.add(shard, record)
        leftovers.remove(each.output_file)
    return sets


def _refuse_common_shards(sets):
    """Raises a `UserError` if one set has the name that another has for one of its shards."""
    seen = set()
    for path in (path for chosen in sets for path in chosen.paths):
        if files.file_id(path) in seen:
            raise UserError(
                f"output {path} is a shard of --output_file and of --eval_output_file; choose "
                "another name for one of them"
            )
        seen.add(files.file_id(path))


def _counts(sets):
    return {chosen.name: len(chosen.paths) for chosen in sets}


def _make_shards(sets, settings, identity, shards, workers):
    """Makes shards and adds their summaries to the sets.

    Returns:
      (number of instances, bytes of text, Counter of stage to the seconds of all workers).

    Raises:
      CorpusChanged: the corpus is not the one that was measured; no new shard is left.
    """
    new = [path for chosen in sets for path in chosen.paths if path not in chosen.finished]
    by_name = {chosen.name: chosen for chosen in sets}
    by_path = {path: chosen for chosen in sets for path in chosen.paths}
    jobs = (
        ShardJob(by_name[name].paths[index], documents, by_name[name].repetitions)
        for name, index, documents in shards
    )
    instances, length, seconds = 0, 0, collections.Counter()
    try:
        with contextlib.closing(_made(jobs, settings, identity, workers)) as made:
            with report.progress(sets) as told:
                for job, (record, spent) in made:
                    by_path[job.path].add(job.path, record)
                    instances += record["records"]
                    length += sum(len(text) for _, text in job.documents)
                    seconds.update(spent)
                    told(record)
    except CorpusChanged:
        # Their summaries name the text that was measured.
        for path in new:
            leftovers.remove_shard(path)
        raise
    return instances, length, seconds


def _made(jobs, settings, identity, workers):
    """Yields (job, what `shard_function` gives for it); 1 worker: this process, else others."""
    if workers == 1:
        function = shard_function(settings, identity)
        for job in jobs:
            yield job, function(job)
        return
    with contextlib.ExitStack() as stack:
        pool = WorkerPool(workers, shard_function, settings, identity)
        stack.callback(lambda: leftovers.remove_of(pool.unfinished))
        stack.enter_context(pool)
        try:
            yield from pool.run(jobs)
        except WorkerDied as death:
            raise UserError(
                f"a worker died ({death.cause}) while it made {death.task.path}; "
                "finished shards stay: the same command makes the rest"
            ) from death


@contextlib.contextmanager
def _terminable():
    """Makes SIGTERM raise `Terminated` in the block."""

    def terminate(number, frame):
        raise Terminated("terminated; finished shards stay: the same command makes the rest")

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    old = signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, old)
