"""R-Drop's loss against SciPy's relative entropy, for each kind of prediction."""

import numpy as np
import pytest
from scipy.special import rel_entr, softmax

from nezha_tf.objectives.losses import weighted
from nezha_tf.tasks.finetuning.r_drop import RDrop
from nezha_tf.util.errors import UserError

B, T, L = 3, 5, 4


class Given:
    """An objective with given predictions and losses."""

    def inputs(self, batch):
        return batch

    def loss_weights(self, batch):
        return {"given_loss": batch["weights"]}

    def losses(self, outputs, batch):
        return {"given_loss": weighted(outputs["losses"], batch["weights"])}

    def metrics(self, outputs, batch):
        return {"given_metric": weighted(outputs["losses"], batch["weights"])}

    def distributions(self, outputs, batch):
        return {"given_loss": outputs["logits"]}


@pytest.mark.parametrize(
    ("weights", "logits"),
    (((B,), (2 * B, L)), ((B, T), (2 * B, T, L)), ((B,), (2 * B, 2, T)), ((B,), (2 * B, L, 2))),
    ids=("classes", "tags", "spans", "labels"),
)
def test_divergence_against_relative_entropy(weights, logits):
    rng = np.random.default_rng(0)
    outputs = {"logits": rng.normal(size=logits).astype("float32")}
    outputs["logits"][..., 2:3] -= 1e9  # masked logits have probability 0, not nan
    batch = {"weights": rng.integers(0, 2, weights).astype("float32"), "x": np.arange(B)}
    batch["weights"].flat[0] = 1
    outputs["losses"] = rng.normal(size=(2 * B, *weights[1:])).astype("float32")
    objective = RDrop(Given(), alpha=3.0)
    np.testing.assert_array_equal(objective.inputs(batch)["x"], [*range(B), *range(B)])

    p, q = softmax(outputs["logits"][:B], -1), softmax(outputs["logits"][B:], -1)
    divergence = 0.5 * (rel_entr(p, q) + rel_entr(q, p)).sum(-1)
    divergence = divergence.reshape(*weights, -1).mean(-1)
    losses = objective.losses(outputs, batch)
    found = losses["r_drop_given_loss"]
    assert float(found.sum) == pytest.approx(3 * (divergence * batch["weights"]).sum(), rel=1e-4)
    assert float(found.sum) > 0
    both = (outputs["losses"][:B] + outputs["losses"][B:]) / 2
    mean = (both * batch["weights"]).sum() / batch["weights"].sum()
    for ratio in (losses["given_loss"], objective.metrics(outputs, batch)["given_metric"]):
        assert float(ratio.over(ratio.weight)) == pytest.approx(mean, rel=1e-4, abs=1e-6)
    # The step divides by the sums of these weights.
    for name, values in objective.loss_weights(batch).items():
        assert float(np.sum(values)) == float(losses[name].weight)


def test_predictions_that_agree_cost_nothing():
    logits = np.random.default_rng(0).normal(size=(B, L)).astype("float32")
    outputs = {"logits": np.concatenate([logits, logits]), "losses": np.ones(2 * B, "float32")}
    losses = RDrop(Given(), 1.0).losses(outputs, {"weights": np.ones(B, "float32")})
    assert float(losses["r_drop_given_loss"].sum) == 0


def test_an_objective_without_distributions_is_refused():
    with pytest.raises(UserError, match="--r_drop_alpha"):
        RDrop(object(), 0.5)
