"""What the workers of every engine do: they read the documents of a shard, and write its file.

An engine carries the places of documents, never their text. Each worker reads the corpus itself.
"""

import dataclasses
import functools
import os
import platform
import re
import threading
from typing import NamedTuple

from nezha_tf.corpus.assignment import Span, checksum_of, documents_of
from nezha_tf.corpus.provenance import identity_of_files
from nezha_tf.corpus.settings import Settings
from nezha_tf.corpus.shard_files import read_summary, shard_name
from nezha_tf.corpus.shard_writer import ShardJob, make_shard
from nezha_tf.util import storage
from nezha_tf.util.errors import Terminated, UserError, first_line
from nezha_tf.util.package_data import located

# Engines call `make_one` from many threads, but a shard takes hundreds of MB and a core.
_one_at_a_time = threading.Lock()
# An engine shows a worker's error as text, with a traceback. Beam appends the step's name.
_MISTAKE = re.compile(
    r"nezha_tf\.util\.errors\.UserError: (.*?)(?: \[while running .*)?$", re.MULTILINE
)
_MISSING = re.compile(r"ModuleNotFoundError: (No module named '[\w.]+')")


class Work(NamedTuple):
    """What all shards share. `threshold` is that of `Measure`.

    `outputs` is a dict of a set's name to (its file, its number of shards, its repetitions).
    """

    settings: Settings
    identity: dict
    inputs: list
    threshold: float
    outputs: dict

    @classmethod
    def of(cls, settings, identity, inputs, threshold, sets):
        """Returns the work with absolute file names, because workers may run in another folder."""
        settings = dataclasses.replace(
            settings,
            vocab_file=_absolute(settings.vocab_file),
            user_dict=_absolute(settings.user_dict),
        )
        outputs = {
            each.name: (_absolute(each.output_file), len(each.paths), each.repetitions)
            for each in sets
        }
        return cls(settings, identity, list(map(_absolute, inputs)), threshold, outputs)


def _absolute(path):
    return path if not path or storage.is_remote(path) else os.path.abspath(located(path))


def make_shards(runner, work, spans, sets):
    """Makes shards, `Span`s, on an engine and adds their summaries to the `OutputSet`s.

    Returns:
      The number of instances in the new shards.

    Raises:
      UserError: a worker raised it, the engine failed, or this machine does not see the files
        that the workers have written.
      Terminated: the process received SIGTERM.
    """
    # Plain tuples of a few bytes each, because the job contains all of them.
    runner.run(functools.partial(make_one, work), [tuple(span) for span in spans])
    instances = 0
    for each in sets:
        instances += each.add_finished(work.identity)
        missing = [path for path in each.paths if path not in each.finished]
        if missing:
            raise UserError(
                f"--runner={runner.name} has ended but {missing[0]} is not there; use a folder "
                "that its workers and this machine see under the same name"
            )
    return instances


def make_one(work, place):
    """Makes a shard, a `Span` as a plain tuple, unless it exists: engines repeat failed steps.

    Raises:
      UserError: see `make_shard`; or the worker sees other files than the machine that planned
        the work. The message names the worker's machine.
    """
    span = Span(*place)
    output_file, count, repetitions = work.outputs[span.set_name]
    path = shard_name(output_file, span.index, count)
    try:
        with _one_at_a_time:
            if not _is_finished(path, work.identity):
                maker = _maker(work.settings, tuple(work.identity.items()))
                job = ShardJob(path, _documents(work, span), repetitions)
                make_shard(work.settings, maker, job, work.identity)
    except UserError as error:
        raise UserError(f"worker on {platform.node()}: {error}") from error


def _is_finished(path, identity):
    summary = read_summary(path)
    if not summary or summary["identity"] != identity or not storage.exists(path):
        return False
    return storage.size(path) == summary.get("bytes")


def _documents(work, span):
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
def _maker(settings, identity):
    from nezha_tf.corpus.shard_maker import ShardMaker

    there = dict(identity)
    for name, here in identity_of_files(settings).items():
        if here != there[name]:
            raise UserError(
                f"--{name} is {here} here, but {there[name]} where the job was started; give all "
                "machines the same"
            )
    return ShardMaker(settings)


def failure(runner, message):
    """Returns the `UserError` of a job that failed outside of our code."""
    return UserError(
        f"--runner={runner}: {message}; finished shards stay: the same command makes the rest"
    )


def error_of(runner, error, is_defect, cause=""):
    """Returns the exception to raise for an engine's error: one line where the user can help.

    `is_defect` says whether its text is the traceback of a worker, which is needed if it is no
    user's mistake; `cause` is what the engine's log says.
    """
    if isinstance(error, UserError | Terminated):
        return error
    text = str(error)
    # The last one is that which was raised; those before it are its causes.
    if mistakes := _MISTAKE.findall(text):
        return UserError(mistakes[-1])
    if missing := _MISSING.search(text):
        return failure(
            runner,
            f"the workers' Python says {missing[1]}; install this package with what it needs in it",
        )
    return error if is_defect else failure(runner, cause or first_line(error))
