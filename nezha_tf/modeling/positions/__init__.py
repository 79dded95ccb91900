"""Position encodings; each one is a class."""

from nezha_tf.config import POSITION_ENCODINGS
from nezha_tf.modeling.positions.base import Positions
from nezha_tf.modeling.rows import class_of


def of(config):
    """Returns the class of a configuration's position encoding, a subclass of `Positions`.

    Raises:
      UserError: its row of `POSITION_ENCODINGS` does not name such a class.
    """
    encoding = config.position_encoding
    where = POSITION_ENCODINGS[encoding].implementation
    return class_of("position_encoding", encoding, where, Positions)
