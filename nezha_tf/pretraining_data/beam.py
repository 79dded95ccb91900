"""Makes shards with Apache Beam: on Dataflow, Flink, Spark, or by Beam's runner on this machine.

The pipeline carries the places of a shard's documents, never their text: the workers read the
corpus and write the files themselves. apache_beam is imported only when a runner is used.
"""

import contextlib
import dataclasses
import functools
import io
import logging
import os
import re
import shlex
import threading
from typing import NamedTuple

from nezha_tf import storage
from nezha_tf.errors import Terminated, UserError, first_line
from nezha_tf.pretraining_data.assignment import Span, documents_of
from nezha_tf.pretraining_data.identity import finished_shards
from nezha_tf.pretraining_data.settings import Settings
from nezha_tf.pretraining_data.shard_files import ShardJob, make_shard, read_record, shard_name

RUNNERS = ("DirectRunner", "DataflowRunner", "FlinkRunner", "SparkRunner")
# Beam's own "DirectRunner" would first try to download and start a server.
_NAMES = {"DirectRunner": "apache_beam.runners.portability.fn_api_runner.fn_runner.FnApiRunner"}
# These runners pass options that Beam does not know to a Java server, which may know them.
_WITH_OPTIONS_OF_THEIR_OWN = ("FlinkRunner", "SparkRunner")

_MISTAKE = re.compile(r"nezha_tf\.errors\.UserError: (.*?)(?: \[while running .*)?$", re.MULTILINE)
_FROM_A_WORKER = " [while running '"  # Beam appends this to errors of a step

# Runners call `make_one` from many threads, but a shard takes hundreds of MB and a core.
_one_at_a_time = threading.Lock()


class Output(NamedTuple):
    """What workers need to know about a set.

    Attributes:
      output_file: the set's file name, before the numbers of shards are added.
      count: its number of shards.
      repetitions: number of passes over each document.
    """

    output_file: str
    count: int
    repetitions: int


class Work(NamedTuple):
    """What is the same for all shards.

    Attributes:
      settings: the `Settings`.
      identity: dict, see `identity_of`.
      inputs: the files of the corpus.
      threshold: see `Measure`.
      outputs: dict of set name to `Output`.
    """

    settings: Settings
    identity: dict
    inputs: list
    threshold: float
    outputs: dict


def pipeline_of(runner, options):
    """Returns an empty `beam.Pipeline`.

    Args:
      runner: one of `RUNNERS`.
      options: Beam's own options in the form of a command line, quoted where necessary.

    Raises:
      UserError: Beam or the runner's requirements are not installed, or an option is wrong.
    """
    # Remote jobs log their address and progress; errors of a local run are raised below.
    level = logging.CRITICAL if runner == "DirectRunner" else logging.INFO
    logging.getLogger("apache_beam").setLevel(level)
    try:
        logging.disable(logging.WARNING)  # Beam warns of its parts that are not installed
        import apache_beam
        from apache_beam.options.pipeline_options import PipelineOptions, StandardOptions
    except ImportError as error:
        raise UserError(
            f"--runner={runner} needs Apache Beam ({error}): pip install -e '.[beam]' in the clone"
        ) from error
    finally:
        logging.disable(logging.NOTSET)
    told = io.StringIO()
    try:
        # Beam prints a wrong option to stderr, after a page of usage.
        with contextlib.redirect_stderr(told):
            parsed = PipelineOptions(shlex.split(options))
            known = parsed.get_all_options(retain_unknown_options=True)
            unknown = known.keys() - PipelineOptions([]).get_all_options().keys()
            if parsed.view_as(StandardOptions).runner:
                raise ValueError("name the runner by --runner, not in --beam_options")
            if unknown and runner not in _WITH_OPTIONS_OF_THEIR_OWN:
                raise ValueError(f"{runner} has no option {', '.join(sorted(unknown))}")
            return apache_beam.Pipeline(_NAMES.get(runner, runner), options=parsed)
    except SystemExit as end:
        message = told.getvalue().strip().rpartition("error: ")[2]
        raise UserError(f"--beam_options={options}: {message}") from end
    except (ValueError, ImportError) as error:
        message = " ".join(str(error).split())
        raise UserError(f"--runner={runner} --beam_options={options}: {message}") from error


def outputs_of(sets):
    """Returns the `outputs` of a `Work`.

    Args:
      sets: list of `OutputSet`.
    """
    return {
        chosen.name: Output(chosen.output_file, len(chosen.paths), chosen.repetitions)
        for chosen in sets
    }


def make_shards(pipeline, runner, work, spans, sets):
    """Makes shards and adds their summaries to the sets.

    Args:
      pipeline: the pipeline, see `pipeline_of`.
      runner: the runner's name, for errors.
      work: the `Work`.
      spans: iterable of the `Span`s of the shards to make.
      sets: list of `OutputSet`.

    Returns:
      The number of instances in the new shards.

    Raises:
      UserError: a worker raised it, the runner failed, or this machine does not see the files
        that the workers have written.
      Terminated: the process received SIGTERM.
    """
    _run(pipeline, runner, work, spans)
    instances = 0
    for chosen in sets:
        for path, record in finished_shards(chosen.output_file, chosen.paths, work.identity):
            if path not in chosen.finished:
                chosen.add(path, record)
                instances += record["records"]
        missing = [path for path in chosen.paths if path not in chosen.finished]
        if missing:
            raise UserError(
                f"--runner={runner} has ended but {missing[0]} is not there; use a folder that its "
                "workers and this machine see under the same name"
            )
    return instances


def _run(pipeline, runner, work, spans):
    import apache_beam

    # Plain tuples of a few bytes each, because the pipeline contains all of them.
    places = [tuple(span) for span in spans]
    make = functools.partial(make_one, _for_workers(work))
    places = pipeline | "shards" >> apache_beam.Create(places, reshuffle=False)
    places | "spread" >> apache_beam.Reshuffle() | "make" >> apache_beam.Map(make)
    with _mistakes_told(runner):
        result = pipeline.run()
        try:
            state = result.wait_until_finish()
        except (KeyboardInterrupt, Terminated):
            result.cancel()
            raise
    if state not in (None, "DONE"):
        raise UserError(_failure(runner, f"ended as {state}"))


def make_one(work, place):
    """Makes a shard if it does not exist yet: runners repeat failed steps.

    Args:
      work: the `Work`.
      place: the shard's `Span` as a plain tuple.
    """
    span = Span(*place)
    output = work.outputs[span.set_name]
    path = shard_name(output.output_file, span.index, output.count)
    with _one_at_a_time:
        record = read_record(path)
        if record and record["identity"] == work.identity and storage.exists(path):
            if storage.size(path) == record["bytes"]:
                return
        seed = work.settings.random_seed
        documents = documents_of(span, work.inputs, work.threshold, seed)
        job = ShardJob(path, documents, output.repetitions)
        make_shard(work.settings, _maker(work.settings), job, work.identity)


@functools.lru_cache(maxsize=1)
def _maker(settings):
    from nezha_tf.pretraining_data.shard_maker import ShardMaker

    return ShardMaker(settings)


def _for_workers(work):
    """Returns the work with absolute file names, because workers may run in another folder."""
    settings = dataclasses.replace(
        work.settings,
        vocab_file=_absolute(work.settings.vocab_file),
        user_dict=_absolute(work.settings.user_dict),
    )
    outputs = {
        name: output._replace(output_file=_absolute(output.output_file))
        for name, output in work.outputs.items()
    }
    inputs = [_absolute(path) for path in work.inputs]
    return work._replace(settings=settings, inputs=inputs, outputs=outputs)


def _absolute(path):
    return path if not path or storage.is_remote(path) else os.path.abspath(path)


@contextlib.contextmanager
def _mistakes_told(runner):
    """Turns a runner's errors into `UserError`s; a defect in a worker keeps its traceback."""
    try:
        yield
    except Exception as error:
        message, from_a_worker, _ = str(error).partition(_FROM_A_WORKER)
        if isinstance(error, UserError | Terminated):
            raise type(error)(message) from error
        if message == "KeyboardInterrupt":
            raise KeyboardInterrupt from error
        mistake = _MISTAKE.search(str(error))
        if mistake:
            raise UserError(mistake[1]) from error
        if from_a_worker:
            raise
        raise UserError(_failure(runner, first_line(error))) from error


def _failure(runner, message):
    return f"--runner={runner}: {message}; finished shards stay: the same command makes the rest"
