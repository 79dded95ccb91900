"""Several workers: whether they were started alike, and which of them was lost."""

import contextlib
import json
import os
import re
import tempfile
import time
import zlib

from nezha_tf import hub
from nezha_tf.checkpoints.places import weights_of
from nezha_tf.checkpoints.run_checkpoints import RunCheckpoints
from nezha_tf.training import devices
from nezha_tf.util import console, storage
from nezha_tf.util.errors import Terminated, UserError, WorkerLost
from nezha_tf.util.parts import Part, parts_of
from nezha_tf.util.settings import flags_of

# Flags that each worker may have for itself: a folder can have another name on another machine.
_OWN = ("output_dir", "export_dir", "num_gpus")
_WEIGHTS = "init_checkpoint"
# Flags that name files end so.
_NAMES_FILES = ("_file", "_dir", _WEIGHTS)
# The most files of a flag that are opened, and the number of bytes read at the end of each.
_OPENED = 16
_END = 2**16


def check(strategy, settings):
    """Ends all workers if they differ; does nothing where there is only one.

    Of files, the names without their folders are compared, and of 16 files the length and the end.

    Args:
      strategy: the `tf.distribute.Strategy`.
      settings: the program's `RunSettings`.

    Raises:
      UserError: the workers differ; it names the first flag in which they do.
      One of `devices.CAUSES`: another worker has ended.
    """
    if devices.num_workers(strategy) < 2:
        return
    values = compared_values(settings)
    if _agree(strategy, values):
        return
    if not _agree(strategy, sorted(values)):
        raise UserError("the workers run different programs, or other versions of nezha_tf")
    # The files first: numbers of steps may depend on them.
    for name in sorted(values, key=lambda name: not _is_of_files(name)):
        if not _agree(strategy, values[name]):
            what = "sees other files" if _is_of_files(name) else "has another value"
            raise UserError(
                f"--{name}: another worker {what} (this one: {flags_of(settings)[name]}); "
                "start the same command on all workers, with the same files"
            )


def compared_values(settings):
    """Returns a dict of the flags to compare to their values, of files to what tells them apart."""
    values = {name: value for name, value in flags_of(settings).items() if name not in _OWN}
    return {
        name: _seen(name, value) if value and _is_of_files(name) else value
        for name, value in values.items()
    }


def _is_of_files(name):
    return name.endswith(_NAMES_FILES)


def _agree(strategy, value):
    text = json.dumps(value, sort_keys=True)
    return devices.agree_on(strategy, zlib.crc32(text.encode()) % 10**9)


def _seen(flag, value):
    """Returns the names of a flag's files, (length, checksum of the end) of some, and weights.

    What cannot be read is an answer, too: this worker must not end while the others ask it.
    """
    if hub.is_name(value):
        return value
    try:
        parts = [Part(weights_of(value)[0], None)] if flag == _WEIGHTS else parts_of(value)
        of_parts = [(part.weight, _matches(part.pattern)) for part in parts]
        paths = sorted({path for _, found in of_parts for path in found})
        opened = paths[:: -(-len(paths) // _OPENED) or 1]
        weights = [
            [str(weight), *sorted(map(os.path.basename, found))]
            for weight, found in of_parts
            if weight is not None
        ]
        return [list(map(os.path.basename, paths)), list(map(_end_of, opened)), weights]
    except (OSError, UserError) as error:
        return str(error)


def _matches(pattern):
    """Returns the files of a name, a glob, a folder, or a TF1 checkpoint, which has no ending."""
    if storage.isdir(pattern):
        found = [os.path.join(pattern, name) for name in storage.listdir(pattern)]
    else:
        found = [*storage.glob(pattern), *storage.glob(pattern + ".*")]
    return [path for path in found if not storage.isdir(path)]


def _end_of(path):
    size = storage.size(path)
    with storage.open_binary(path, "rb") as file:
        file.seek(max(0, size - _END))
        return size, zlib.crc32(file.read(_END))


# How TensorFlow names a worker: "/job:worker/replica:0/task:1" or "/job:worker/task:1".
_TASK = re.compile(r"/job:(\w+)(?:/replica:\d+)?/task:(\d+)")
# A worker that passes on why its own sum was aborted: it is alive, and not to blame.
_MESSENGER = re.compile(
    r"from remote target \S+(?= while calling [^\n]*\n"
    r"[^\n]*Error received from peer[^\n]*Collective ops is aborted)"
)
# If the leader, which collects the heartbeats, does not answer, the error names no worker but this
# service.
_TO_THE_LEADER = "CoordinationService/"
_ABORTED = re.compile("[Cc]ollective|[Cc]oordination|Heartbeat")
# Longer than TensorFlow needs to notice missed heartbeats, from which the other workers learn which
# one is lost. If this worker ended sooner, they would blame it.
_SECONDS_FOR_THE_OTHERS = 12


@contextlib.contextmanager
def lost_worker_named(strategy, folder):
    """In the block, turns the error that a lost worker causes into `WorkerLost`.

    What TensorFlow itself writes to stderr goes into a file of the run's folder meanwhile, or of
    the folder for temporary files if the run's is remote; see `console.native_stderr_into`.

    Args:
      strategy: the `tf.distribute.Strategy`; without several workers nothing is done.
      folder: the run's folder.

    Raises:
      WorkerLost: another worker does not answer.
    """
    own, workers = _cluster(strategy)
    if len(workers) < 2:
        yield
        return
    here = tempfile.gettempdir() if storage.is_remote(folder) else folder
    log = os.path.join(here, f"{own[0]}-{own[1]}.log")
    with console.native_stderr_into(log, (UserError, Terminated, WorkerLost, KeyboardInterrupt)):
        try:
            yield
        except devices.CAUSES as error:
            if not _ABORTED.search(str(error)):
                raise
            if len(workers) > 2:
                time.sleep(_SECONDS_FOR_THE_OTHERS)
            newest = RunCheckpoints(folder, {}).newest()
            raise WorkerLost(
                f"{_lost(str(error), own, workers)} does not answer: it has ended, hangs or cannot "
                f"be reached; {newest}; start the same command on all workers, and the run goes on"
            ) from error


def _cluster(strategy):
    """Returns ((job, index) of this worker, dict of (job, index) of all workers to address)."""
    resolver = strategy.cluster_resolver
    if resolver is None or not resolver.cluster_spec() or resolver.task_type is None:
        return None, {}
    jobs = resolver.cluster_spec().as_dict()
    workers = {
        (job, index): address
        for job in ("chief", "worker")
        for index, address in enumerate(jobs.get(job, ()))
    }
    return (resolver.task_type, int(resolver.task_id)), workers


def _lost(text, own, workers):
    """Returns the name and address of the worker that an error's text blames."""
    named = [(job, int(index)) for job, index in _TASK.findall(_MESSENGER.sub("", text))]
    blamed = [worker for worker in named if worker in workers and worker != own]
    if not blamed and _TO_THE_LEADER in text:
        blamed = [next(iter(workers))]
    # Of two workers the other one is meant in any case.
    others = blamed or [worker for worker in workers if worker != own]
    if not blamed and len(others) > 1:
        return "another worker"
    job, index = others[0]
    return f"{job} {index} ({workers[job, index]})"
