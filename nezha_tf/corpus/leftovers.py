"""Removes temporary files of processes that were killed, and shards that are worth nothing."""

import contextlib
import glob
import os

from nezha_tf.corpus.shard_files import record_name
from nezha_tf.util import files, storage


def remove(output_file):
    """Removes temporary files of a set whose process, on this machine, has ended."""
    if storage.is_remote(output_file):  # its processes may run on other machines
        return
    stem, extension = map(glob.escape, os.path.splitext(output_file))
    for path in storage.glob(f"{stem}*{extension}*.tmp"):
        process_id = files.writer_of(path)
        if process_id is not None and not _is_alive(process_id):
            _remove(path)


def remove_of(unfinished):
    """Removes the temporary files of killed workers.

    Args:
      unfinished: list of (`ShardJob`, process id).
    """
    for job, process_id in unfinished:
        for path in (job.path, record_name(job.path)):
            _remove(files.temporary_name(path, process_id))


def remove_shard(path):
    """Removes a shard and its summary, if they exist."""
    _remove(path)
    _remove(record_name(path))


def _remove(path):
    with contextlib.suppress(FileNotFoundError):
        storage.remove(path)


def _is_alive(process_id):
    """Whether a process is running; a zombie is not."""
    try:
        with open(f"/proc/{process_id}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        if os.path.isdir("/proc/self"):
            return False
    try:
        os.kill(process_id, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
