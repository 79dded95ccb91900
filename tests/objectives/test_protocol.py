"""All losses have the methods that a run needs; R-Drop has those of the loss that it wraps."""

import pytest

from nezha_tf.objectives.bert import Bidirectional
from nezha_tf.objectives.losses import Loss
from nezha_tf.objectives.mixture import ObjectiveMixture
from nezha_tf.objectives.table import OBJECTIVES
from nezha_tf.tasks.classification.loss import ClassificationLoss, MultiLabelLoss, RegressionLoss
from nezha_tf.tasks.finetuning.r_drop import RDrop
from nezha_tf.tasks.reading_comprehension.loss import AnswerSpanLoss
from nezha_tf.tasks.seq2seq.loss import Seq2SeqLoss
from nezha_tf.tasks.tagging.loss import CrfTaggingLoss, TaggingLoss

FINE_TUNED = (
    ClassificationLoss(),
    MultiLabelLoss(),
    RegressionLoss(),
    TaggingLoss(),
    CrfTaggingLoss(),
    AnswerSpanLoss(),
)
PRETRAINED = (
    Bidirectional().loss(),
    Seq2SeqLoss(),
    *(objective.loss(of_pairs=True) for objective in OBJECTIVES.values()),
    ObjectiveMixture(dict.fromkeys(OBJECTIVES, 1.0)).loss(of_pairs=True),
)


@pytest.mark.parametrize("loss", (*FINE_TUNED, *PRETRAINED), ids=lambda loss: type(loss).__name__)
def test_losses_have_the_interface(loss):
    assert isinstance(loss, Loss)
    assert hasattr(loss, "predictions") == (loss in FINE_TUNED)
    if getattr(loss, "distributions", None):
        assert isinstance(RDrop(loss, 1.0), Loss)
