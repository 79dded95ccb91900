"""Tells which of several workers was lost, and ends this one with a status of its own.

TensorFlow's coordination service sends heartbeats between the workers. After 10 seconds without
one, or when a connection breaks, it aborts the sums over all workers, which raises an error here.
"""

import contextlib
import os
import re
import tempfile
import time

import tensorflow as tf

from nezha_tf.checkpoints.run_checkpoints import RunCheckpoints
from nezha_tf.util import console, storage
from nezha_tf.util.errors import Terminated, UserError, WorkerLost

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
# The errors of a sum over all workers, or of a heartbeat, that another worker did not answer.
CAUSES = (
    tf.errors.UnavailableError,
    tf.errors.AbortedError,
    tf.errors.DeadlineExceededError,
    tf.errors.CancelledError,
    tf.errors.FailedPreconditionError,
    tf.errors.InternalError,
)
_ABORTED = re.compile("[Cc]ollective|[Cc]oordination|Heartbeat")
# Longer than TensorFlow needs to notice missed heartbeats, from which the other workers learn which
# one is lost. If this worker ended sooner, they would blame it.
_SECONDS_FOR_THE_OTHERS = 12


@contextlib.contextmanager
def told(strategy, folder):
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
        except CAUSES as error:
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
