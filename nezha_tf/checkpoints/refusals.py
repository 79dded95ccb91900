"""Why weights are refused, in whatever layout they are."""

from nezha_tf.util.errors import UserError

# The types of weights; NumPy has bfloat16 from the package ml_dtypes.
FLOATS = ("float16", "bfloat16", "float32", "float64")


class UnreadableCheckpoint(UserError):
    """The files of a checkpoint are damaged or incomplete."""


def no_float(path, name, dtype):
    """Returns the `UserError` on a weight of integers, truth values or quantised numbers.

    Args:
      path: path of the checkpoint.
      name: the weight's name in it.
      dtype: its type, for the message.
    """
    return UserError(
        f"checkpoint {path}: {name} is of {dtype}; only floating-point weights can be loaded, no "
        "quantised or sparse ones"
    )
