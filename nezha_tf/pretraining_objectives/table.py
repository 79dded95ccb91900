"""The table of objectives: the names of --objectives."""

import difflib

from nezha_tf.errors import UserError
from nezha_tf.pretraining_objectives.unilm import (
    Bidirectional,
    LeftToRight,
    RightToLeft,
    SequenceToSequence,
)

# Name to `Objective`. One of another package joins by an assignment; docs/en/extending.md shows it.
# Of several uses of a model the first in this order is what it is exported as.
OBJECTIVES = {
    "bidirectional": Bidirectional(),
    "left_to_right": LeftToRight(),
    "right_to_left": RightToLeft(),
    "seq2seq": SequenceToSequence(),
}


def objective_named(name, said):
    """Returns the `Objective` of a name.

    Args:
      name: what the user has written.
      said: the whole of it, for the message.

    Raises:
      UserError: there is none of this name.
    """
    if name not in OBJECTIVES:
        close = difflib.get_close_matches(name, OBJECTIVES, n=1)
        meant = f"is {close[0]!r} meant?" if close else f"they are {', '.join(OBJECTIVES)}"
        raise UserError(f"{said}: there is no objective {name!r}; {meant}")
    return OBJECTIVES[name]
