"""Shards made on Apache Beam: by Dataflow, Flink, Spark or a runner of Beam's own on this machine.

The pipeline carries where the documents of a shard stand, never their text: its workers read the
corpus and write the files themselves. apache_beam is imported where it is used; a run without a
runner never loads it.
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
# Beam's DirectRunner would first look for a server of Beam's, which it fetches from elsewhere.
_NAMES = {"DirectRunner": "apache_beam.runners.portability.fn_api_runner.fn_runner.FnApiRunner"}
# These hand what Beam does not know to a server in Java, which knows more.
_WITH_OPTIONS_OF_THEIR_OWN = ("FlinkRunner", "SparkRunner")

_MISTAKE = re.compile(r"nezha_tf\.errors\.UserError: (.*?)(?: \[while running .*)?$", re.MULTILINE)
_FROM_A_WORKER = " [while running '"  # which Beam adds to what the function of a step raises

# Runners call from many threads; a shard takes hundreds of megabytes and one core.
_one_at_a_time = threading.Lock()


class Output(NamedTuple):
    """A set as workers need it: the name of its files, how many, and how often a document goes in.

    Attributes:
      output_file: the name of the set.
      count: its number of shards.
      repetitions: how often each document is gone through.
    """

    output_file: str
    count: int
    repetitions: int


class Work(NamedTuple):
    """What all shards have in common.

    Attributes:
      settings: the `Settings`.
      identity: dict as of `identity_of`.
      inputs: the files of the corpus.
      threshold: as in `Measure`.
      outputs: dict of set to its `Output`.
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
      options: Beam's own options as on a command line, with quotes where needed.

    Raises:
      UserError: Beam or what the runner needs is not installed, or an option is wrong.
    """
    # A job elsewhere tells where it is seen and how it goes; of one here the error is told below.
    level = logging.CRITICAL if runner == "DirectRunner" else logging.INFO
    logging.getLogger("apache_beam").setLevel(level)
    try:
        logging.disable(logging.WARNING)  # of parts of Beam that are not installed
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
        # A wrong option is told on stderr, under a page of usage.
        with contextlib.redirect_stderr(told):
            parsed = PipelineOptions(shlex.split(options))
            known = parsed.get_all_options(retain_unknown_options=True)
            unknown = known.keys() - PipelineOptions([]).get_all_options().keys()
            if parsed.view_as(StandardOptions).runner:
                raise ValueError("the runner is --runner")
            if unknown and runner not in _WITH_OPTIONS_OF_THEIR_OWN:
                raise ValueError(f"{runner} knows no {', '.join(sorted(unknown))}")
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
    """Makes shards, adds their records to the sets and returns their instances.

    Args:
      pipeline: as of `pipeline_of`.
      runner: its name, for the errors.
      work: the `Work`.
      spans: iterable of the `Span`s of the shards that are wanted.
      sets: list of `OutputSet`.

    Raises:
      UserError: as a worker raised it, what the runner says when it fails, or the files are not
        where this machine sees them.
      Terminated: SIGTERM came.
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
                f"--runner={runner} is done and {missing[0]} is not there; the files must lie "
                "where its workers and this machine see them under one name"
            )
    return instances


def _run(pipeline, runner, work, spans):
    import apache_beam

    # Plain tuples of a few bytes each: a runner takes all of them with the pipeline.
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
    """Makes a shard where it is not there yet: runners try again what has failed.

    Args:
      work: the `Work`.
      place: the `Span`, as a plain tuple.
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
    """Returns the work with names of files that hold in whatever folder a worker runs."""
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
    """What a runner raises becomes a `UserError`; a defect of a worker keeps its traceback."""
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
    return f"--runner={runner}: {message}; what is finished stays: the same command makes the rest"
