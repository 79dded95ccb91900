"""Whether the workers of a run were started alike: with the same flags, and seeing the same files.

A worker with another rate or another file would train on with the others, and nobody would see it.
"""

import json
import os
import zlib

from nezha_tf import hub
from nezha_tf.checkpoints.folder import weights_of
from nezha_tf.training import devices
from nezha_tf.util import storage
from nezha_tf.util.errors import UserError
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
      One of `lost_worker.CAUSES`: another worker has ended.
    """
    if devices.num_workers(strategy) < 2:
        return
    said = said_by(settings)
    if _agree(strategy, said):
        return
    if not _agree(strategy, sorted(said)):
        raise UserError("the workers run different programs, or other versions of nezha_tf")
    # The files first: numbers of steps may depend on them.
    for name in sorted(said, key=lambda name: not _is_of_files(name)):
        if not _agree(strategy, said[name]):
            what = "sees other files" if _is_of_files(name) else "has another value"
            raise UserError(
                f"--{name}: another worker {what} (this one: {flags_of(settings)[name]}); "
                "start the same command on all workers, with the same files"
            )


def said_by(settings):
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
    """Returns the names of a flag's files, and (length, checksum of the end) of some of them.

    What cannot be read is an answer, too: this worker must not end while the others ask it.
    """
    if hub.is_name(value):
        return value
    try:
        patterns = [weights_of(value)[0]] if flag == _WEIGHTS else value.split(",")
        paths = sorted({path for pattern in patterns for path in _matches(pattern.strip())})
        opened = paths[:: -(-len(paths) // _OPENED) or 1]
        return [list(map(os.path.basename, paths)), list(map(_end_of, opened))]
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
