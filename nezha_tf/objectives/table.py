"""The table of objectives: the names of --objectives."""

import difflib

from nezha_tf.objectives.bart import Infilling
from nezha_tf.objectives.bert import Bidirectional
from nezha_tf.objectives.causal import Causal
from nezha_tf.objectives.electra import ReplacedTokens
from nezha_tf.objectives.mass import Fragment
from nezha_tf.objectives.prefix import Prefix
from nezha_tf.objectives.t5 import SpanCorruption
from nezha_tf.objectives.text_to_text import TextToText
from nezha_tf.objectives.unilm import LeftToRight, RightToLeft, SequenceToSequence
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
    "span_corruption": TextToText(SpanCorruption),
    "infilling": TextToText(Infilling),
    "mass": TextToText(Fragment),
    "prefix": TextToText(Prefix),
    "permutation": Permutation(),
    "replaced_tokens": ReplacedTokens(),
}


def objective_named(name, source):
    """Returns the `Objective` with a name, or raises a `UserError`.

    `source` is the user's flag and its value, for the message.
    """
    if name not in OBJECTIVES:
        close = difflib.get_close_matches(name, OBJECTIVES, n=1)
        advice = f"is {close[0]!r} meant?" if close else f"they are {', '.join(OBJECTIVES)}"
        raise UserError(f"{source}: there is no objective {name!r}; {advice}")
    return OBJECTIVES[name]
