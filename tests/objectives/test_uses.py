"""The uses of a model by its `task.json`; the first one is the default."""

import pytest

from nezha_tf.objectives.objective import Use
from nezha_tf.objectives.uses import uses_of
from nezha_tf.util.errors import UserError

FILL, GO_ON, WRITE = (
    Use("fill_mask", (0, 1)),
    Use("left_to_right", (2, 2)),
    Use("seq2seq", (4, 5)),
)
SHIFTED = WRITE._replace(target_prediction="shift")
TEXT_TO_TEXT = ("span_corruption", "infilling", "mass", "prefix")


@pytest.mark.parametrize(
    "objectives, expected",
    (
        ("bidirectional", [FILL]),
        ("left_to_right", [GO_ON]),
        ("right_to_left", []),
        ("seq2seq:0.5", [WRITE]),
        # For any order and any shares.
        ("seq2seq:9,left_to_right", [GO_ON, WRITE]),
        ("right_to_left:5,seq2seq:2,left_to_right:1,bidirectional:1", [FILL, GO_ON, WRITE]),
        # Of objectives without [MASK]s, the last token itself predicts the next one.
        ("causal", [GO_ON._replace(target_prediction="shift")]),
        *((name, [SHIFTED]) for name in TEXT_TO_TEXT),
        ("infilling,mass,causal:3", [Use("left_to_right", (2, 2), "shift"), SHIFTED]),
    ),
)
def test_uses_of_a_pretraining_run(objectives, expected):
    found = uses_of({"task": "pretraining", "objectives": objectives})
    assert list(found.values()) == expected
    assert list(found) == [use.ability for use in expected]


def test_uses_of_other_models():
    assert list(uses_of({"task": None}).values()) == [FILL]
    assert uses_of({"task": "classification"}) == {}
    with pytest.raises(UserError, match="objectives=elsewhere: there is no objective 'elsewhere'"):
        uses_of({"task": "pretraining", "objectives": "elsewhere"})
