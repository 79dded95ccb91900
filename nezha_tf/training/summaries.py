"""The summaries of a run for TensorBoard, which is needed to view them but not to write them."""

import os

import tensorflow as tf
from google.protobuf import struct_pb2

from nezha_tf.training.records import Record
from nezha_tf.util.settings import flag_text

FOLDER = "summaries"
# The metadata of TensorBoard's own functions. Its parts for scalars and texts need no content.
_SCALAR = tf.compat.v1.SummaryMetadata(
    plugin_data={"plugin_name": "scalars"}, data_class="DATA_CLASS_SCALAR"
)
_TEXT = tf.compat.v1.SummaryMetadata(
    plugin_data={"plugin_name": "text"}, data_class="DATA_CLASS_TENSOR"
)
# Of tensorboard/plugins/hparams/plugin_data.proto: fields of `HParamsPluginData`, and the
# `SessionEndInfo` of a success.
_START, _END = 3, 4
_SUCCESS = b"\x08\x01"


class Summaries(Record):
    """Writes scalars, the flags that are not the defaults as text, and all flags as HParams."""

    def __init__(self, changed_flags):
        """Args:
        changed_flags: lines of a flag file with the flags that differ from the defaults.
        """
        self._changed_flags = changed_flags
        self._writer = None

    def start(self, folder, flags, step):
        self._folder, self._flags, self._step = folder, flags, step

    def scalars(self, step, values):
        if self._writer is None:  # A run that has nothing left to train writes no file.
            self._writer = tf.summary.create_file_writer(os.path.join(self._folder, FOLDER))
            self._write_flags()
        with self._writer.as_default(step):
            for name, value in values.items():
                tf.summary.write(name, tf.constant(value, tf.float32), metadata=_SCALAR)
        self._writer.flush()

    def end(self, results, error):
        if self._writer is None:
            return
        if error is None:
            # TensorBoard takes the first one that it finds; a run that failed may still succeed.
            self._write_session("session_end_info", _field(_END, _SUCCESS))
        self._writer.close()

    def _write_flags(self):
        # Markdown shows indented lines as they are.
        text = "".join(f"    {line}\n" for line in self._changed_flags)
        with self._writer.as_default(self._step):
            tf.summary.write("flags", tf.constant(text), metadata=_TEXT)
        self._write_session("session_start_info", session_start(self._flags))

    def _write_session(self, tag, content):
        """Writes an `HParamsPluginData`, which stands in the metadata of an empty summary."""
        metadata = tf.compat.v1.SummaryMetadata(
            plugin_data={"plugin_name": "hparams", "content": content}
        )
        with self._writer.as_default(self._step):
            tf.summary.write(f"_hparams_/{tag}", tf.zeros([0]), metadata=metadata)


def session_start(flags):
    """Returns what begins a session of TensorBoard's HParams: an `HParamsPluginData`, as bytes.

    The message classes are TensorBoard's, so the bytes are put together here: the dict of flags has
    the same type and number in `SessionStartInfo` as in `google.protobuf.Struct`.

    Args:
      flags: dict of name to value.
    """
    hparams = struct_pb2.Struct()
    for name, value in flags.items():
        is_plain = isinstance(value, bool | int | float)
        hparams[name] = value if is_plain else flag_text(value)
    return _field(_START, hparams.SerializeToString(deterministic=True))


def _field(number, content):
    """Returns a field of a protocol buffer whose content has a length."""
    rest, size = len(content), []
    while rest >= 0x80:
        size.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes([number << 3 | 2, *size, rest]) + content
