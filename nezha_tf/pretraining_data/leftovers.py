"""Temporary files of processes that were killed."""

import contextlib
import glob
import os

from nezha_tf import files, storage
from nezha_tf.pretraining_data.shard_files import record_name


def remove(output_file):
    """Removes what processes that are gone from this machine left of a set's files."""
    if storage.is_remote(output_file):  # whose processes may be elsewhere
        return
    stem, extension = map(glob.escape, os.path.splitext(output_file))
    for path in storage.glob(f"{stem}*{extension}*.tmp"):
        process_id = files.writer_of(path)
        if process_id is not None and not _is_alive(process_id):
            _remove(path)


def remove_of(unfinished):
    """Removes what killed workers left.

    Args:
      unfinished: list of (`ShardJob`, process id).
    """
    for job, process_id in unfinished:
        for path in (job.path, record_name(job.path)):
            _remove(files.temporary_name(path, process_id))


def _remove(path):
    with contextlib.suppress(FileNotFoundError):
        storage.remove(path)


def _is_alive(process_id):
    """Whether a process runs; one that has ended and is not waited for does not."""
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
