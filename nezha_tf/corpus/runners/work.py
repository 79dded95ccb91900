"""What the workers of every engine do: they read the documents of a shard, and write its file.

An engine carries the places of documents, never their text. Each worker reads the corpus itself.
"""

import dataclasses
import functools
import os
import platform
import threading
from typing import NamedTuple

from nezha_tf.corpus.assignment import Span, checksum_of, documents_of
from nezha_tf.corpus.identity import OF_FILES, finished_shards, identity_of_files
from nezha_tf.corpus.settings import Settings
from nezha_tf.corpus.shard_files import ShardJob, make_shard, read_record, shard_name
from nezha_tf.util import storage
from nezha_tf.util.errors import UserError

# Engines call `make_one` from many threads, but a shard takes hundreds of MB and a core.
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


def outputs_of(sets):
    """Returns the `outputs` of a `Work`.

    Args:
      sets: list of `OutputSet`.
    """
    return {
        chosen.name: Output(chosen.output_file, len(chosen.paths), chosen.repetitions)
        for chosen in sets
    }


def make_shards(runner, work, spans, sets):
    """Makes shards on an engine and adds their summaries to the sets.

    Args:
      runner: an engine, see `runners`.
      work: the `Work`.
      spans: iterable of the `Span`s of the shards to make.
      sets: list of `OutputSet`.

    Returns:
      The number of instances in the new shards.

    Raises:
      UserError: a worker raised it, the engine failed, or this machine does not see the files
        that the workers have written.
      Terminated: the process received SIGTERM.
    """
    # Plain tuples of a few bytes each, because the job contains all of them.
    runner.run(functools.partial(make_one, _for_workers(work)), [tuple(span) for span in spans])
    instances = 0
    for chosen in sets:
        for path, record in finished_shards(chosen.output_file, chosen.paths, work.identity):
            if path not in chosen.finished:
                chosen.add(path, record)
                instances += record["records"]
        missing = [path for path in chosen.paths if path not in chosen.finished]
        if missing:
            raise UserError(
                f"--runner={runner.name} has ended but {missing[0]} is not there; use a folder "
                "that its workers and this machine see under the same name"
            )
    return instances


def make_one(work, place):
    """Makes a shard if it does not exist yet: engines repeat failed steps.

    Args:
      work: the `Work`.
      place: the shard's `Span` as a plain tuple.

    Raises:
      UserError: see `make_shard`; or the worker sees other files than the machine that planned
        the work. The message names the worker's machine.
    """
    span = Span(*place)
    output = work.outputs[span.set_name]
    path = shard_name(output.output_file, span.index, output.count)
    try:
        with _one_at_a_time:
            if not _is_there(path, work.identity):
                maker = _maker(work.settings, _expected(work.identity))
                job = ShardJob(path, _documents(work, span), output.repetitions)
                make_shard(work.settings, maker, job, work.identity)
    except UserError as error:
        raise UserError(f"worker on {platform.node()}: {error}") from error


def _is_there(path, identity):
    """Whether a shard is finished."""
    record = read_record(path)
    if not record or record["identity"] != identity or not storage.exists(path):
        return False
    return storage.size(path) == record.get("bytes")


def _expected(identity):
    return tuple((name, identity[name]) for name in OF_FILES)


def _documents(work, span):
    """Returns the documents of a shard, if they are those that were planned with."""
    settings = work.settings
    documents = documents_of(
        span, work.inputs, work.threshold, settings.random_seed, settings.reading
    )
    if checksum_of(documents) != span.crc32c:
        raise UserError(
            f"{work.inputs[span.file]} has other text here than where the job was started; give "
            "all machines the same files"
        )
    return documents


@functools.lru_cache(maxsize=1)
def _maker(settings, expected):
    """Returns the process's `ShardMaker`.

    Args:
      settings: the `Settings`.
      expected: tuple of the items of `identity_of_files` where the job was started.

    Raises:
      UserError: a file is another one here.
    """
    from nezha_tf.corpus.shard_maker import ShardMaker

    found = identity_of_files(settings)
    for name, there in expected:
        here = found[name]
        if here != there:
            raise UserError(
                f"--{name} is {here} here, but {there} where the job was started; give all "
                "machines the same"
            )
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
