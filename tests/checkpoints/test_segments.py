"""A checkpoint with two segments in a model with six."""

import numpy as np
import pytest
from conftest import GOLDEN
from helpers import load_golden_model

from nezha_tf import NezhaForPreTraining, checkpoints
from nezha_tf.util.errors import UserError

CHECKPOINT = GOLDEN / "bert_tiny" / "model.ckpt"


@pytest.fixture(scope="module")
def golden_model():
    return load_golden_model("bert_tiny")


def of_segments(golden_model, rows):
    values = {**golden_model.config.to_dict(), "type_vocab_size": rows}
    return NezhaForPreTraining(type(golden_model.config).from_dict(values))


def test_two_rows_become_six_and_bert_computes_the_same(golden_model, golden):
    model = of_segments(golden_model, 6)
    report = checkpoints.load_tf1_checkpoint(model, CHECKPOINT, extend_segments=True)
    old = golden_model.encoder.embeddings.token_type_embeddings.numpy()
    new = model.encoder.embeddings.token_type_embeddings.numpy()
    for row, origin in enumerate((0, 1, 0, 0, 0, 1)):
        np.testing.assert_array_equal(new[row], old[origin])
    assert "extended to six" in report.extended and not report.missing and not report.unused
    figures = golden("bert_tiny/forward")
    inputs = {name[3:]: value for name, value in figures.items() if name.startswith("in.")}
    found, expected = (
        m(inputs, all_outputs=True)["sequence_output"] for m in (model, golden_model)
    )
    np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize("rows, extend", [(6, False), (5, True), (7, True)])
def test_other_sizes_are_refused(golden_model, rows, extend):
    model = of_segments(golden_model, rows)
    with pytest.raises(UserError, match=r"token_type_embeddings has shape \[2, "):
        checkpoints.load_tf1_checkpoint(model, CHECKPOINT, extend_segments=extend)


def test_a_table_that_fits_is_taken_as_it_is(golden_model):
    report = checkpoints.load_tf1_checkpoint(golden_model, CHECKPOINT, extend_segments=True)
    assert report == ([], [], "")
