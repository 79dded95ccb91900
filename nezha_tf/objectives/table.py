"""The table of objectives: the names of --objectives."""

import difflib

from nezha_tf.objectives.electra import ReplacedTokens
from nezha_tf.objectives.next_tokens import (
    Causal,
    FragmentObjective,
    InfillingObjective,
    PrefixObjective,
    SpanCorruptionObjective,
)
from nezha_tf.objectives.unilm import Bidirectional, LeftToRight, RightToLeft, SequenceToSequence
from nezha_tf.objectives.xlnet import Permutation
from nezha_tf.util.errors import UserError

# Name to `Objective`. Other packages add theirs by assignment, see docs/en/extending.md. The order
# decides the default: a model with several uses is exported for the first one.
OBJECTIVES = {
    "bidirectional": Bidirectional(),
    "left_to_right": LeftToRight(),
    "right_to_left": RightToLeft(),
    "seq2seq": SequenceToSequence(),
    "causal": Causal(),
    "span_corruption": SpanCorruptionObjective(),
    "infilling": InfillingObjective(),
    "mass": FragmentObjective(),
    "prefix": PrefixObjective(),
    "permutation": Permutation(),
    "replaced_tokens": ReplacedTokens(),
}


def objective_named(name, said):
    """Returns the `Objective` with a name.

    Args:
      name: the name.
      said: the user's flag and its value, for the message.

    Raises:
      UserError: there is no objective with this name.
    """
    if name not in OBJECTIVES:
        close = difflib.get_close_matches(name, OBJECTIVES, n=1)
        meant = f"is {close[0]!r} meant?" if close else f"they are {', '.join(OBJECTIVES)}"
        raise UserError(f"{said}: there is no objective {name!r}; {meant}")
    return OBJECTIVES[name]
