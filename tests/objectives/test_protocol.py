"""All losses have the methods that a run needs; R-Drop has those of the loss that it wraps."""

import pytest

from nezha_tf.objectives.classification import ClassificationLoss, MultiLabelLoss, RegressionLoss
from nezha_tf.objectives.pretraining import MaskedLMLoss
from nezha_tf.objectives.protocol import ComparableLoss, Loss, PredictingLoss
from nezha_tf.objectives.r_drop import RDrop
from nezha_tf.objectives.seq2seq import Seq2SeqLoss
from nezha_tf.objectives.span import AnswerSpanLoss
from nezha_tf.objectives.tagging import CrfTaggingLoss, TaggingLoss
from nezha_tf.pretraining_objectives.mixture import ObjectiveMixture
from nezha_tf.pretraining_objectives.table import OBJECTIVES

FINE_TUNED = (
    ClassificationLoss(),
    MultiLabelLoss(),
    RegressionLoss(),
    TaggingLoss(),
    CrfTaggingLoss(),
    AnswerSpanLoss(),
)
PRETRAINED = (
    MaskedLMLoss(),
    Seq2SeqLoss(),
    *(objective.loss(of_pairs=True) for objective in OBJECTIVES.values()),
    ObjectiveMixture(dict.fromkeys(OBJECTIVES, 1.0)).loss(of_pairs=True),
)


@pytest.mark.parametrize("loss", (*FINE_TUNED, *PRETRAINED), ids=lambda loss: type(loss).__name__)
def test_losses_have_the_interface(loss):
    assert isinstance(loss, Loss)
    assert isinstance(loss, PredictingLoss) == (loss in FINE_TUNED)
    if isinstance(loss, ComparableLoss) and loss.distributions:
        assert isinstance(RDrop(loss, 1.0), Loss)
