"""The common base of LAMB and AdamW: two moments, and weight decay with exceptions."""

import math
import re

import keras
from keras import ops

# Patterns of variable paths: LayerNorm's gamma and beta, all biases, and the mixture of layers,
# whose gamma is such a scale.
EXCLUDE_FROM_WEIGHT_DECAY = ("LayerNorm", "layer_norm", "bias", "layer_mix")

# A layer, or a group of layers that share their weights.
_LAYER = re.compile(r"/(?:layer|group)_(\d+)/")
# What lies below the layers; relative positions have their tables outside the embeddings.
_EMBEDDINGS = ("/embeddings/", "/positions/")


class MomentOptimizer(keras.optimizers.Optimizer):
    """Keeps the moments of each gradient; a subclass computes the step from them."""

    # Names of the two moments in TF1 checkpoints.
    slot_names = None

    def __init__(
        self,
        learning_rate=1e-4,
        weight_decay_rate=0.01,
        beta_1=0.9,
        beta_2=0.999,
        epsilon=1e-6,
        exclude_from_weight_decay=EXCLUDE_FROM_WEIGHT_DECAY,
        layer_decay=1.0,
        rate_factors=None,
        **kwargs,
    ):
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.weight_decay_rate = weight_decay_rate
        self.beta_1 = beta_1
        self.beta_2 = beta_2
        self.epsilon = epsilon
        self.exclude_patterns = tuple(exclude_from_weight_decay)
        self.layer_decay = layer_decay
        # {part of a variable's path: factor of its learning rate}
        self.rate_factors = dict(rate_factors or {})

    def build(self, variables):
        if self.built:
            return
        super().build(variables)
        self._m, self._v = self.add_optimizer_variables(variables, list(self.slot_names))
        self._has_decay = [self._decays(variable) for variable in variables]
        paths = [_path(variable) for variable in variables]
        self._rate_factors = [
            factor * math.prod(f for part, f in self.rate_factors.items() if part in path)
            for path, factor in zip(paths, _rate_factors(paths, self.layer_decay), strict=True)
        ]

    def _decays(self, variable):
        # The model's own name is removed, because it may match a pattern.
        path = _path(variable).split("/", 1)[-1]
        return not any(re.search(pattern, path) for pattern in self.exclude_patterns)

    def slots(self):
        """Returns a list of (m, v) for each variable, in the order of `build`."""
        return list(zip(self._m, self._v, strict=True))

    def update_step(self, gradient, variable, learning_rate, moved=None):
        """Updates one variable and its moments; returns LAMB's trust ratio, or 1.

        Args:
          gradient: of the variable's shape.
          variable: one that the optimizer was built with.
          learning_rate: a number or a scalar tensor.
          moved: a replacement of `self.moved`, such as a compiled form of it.
        """
        index = self._get_variable_index(variable)
        weights = ops.convert_to_tensor(variable)
        weights, m, v, trust_ratio = (moved or self.moved)(
            weights,
            ops.cast(gradient, weights.dtype),
            self._m[index],
            self._v[index],
            ops.cast(learning_rate, weights.dtype) * self._rate_factors[index],
            self.iterations,
            self.weight_decay_rate if self._has_decay[index] else 0.0,
        )
        self.assign(self._m[index], m)
        self.assign(self._v[index], v)
        self.assign(variable, weights)
        return trust_ratio

    def moved(self, weights, gradient, m, v, rate, count, decay):
        """Returns (weights, m, v, trust ratio) after a step; it changes no state.

        Args:
          weights, gradient, m, v: tensors or variables of one shape.
          rate: scalar tensor, the variable's learning rate.
          count: scalar, int64, the number of steps before this one.
          decay: rate of weight decay; 0.0 for an excluded variable.
        """
        m = self.beta_1 * m + (1.0 - self.beta_1) * gradient
        v = self.beta_2 * v + (1.0 - self.beta_2) * ops.square(gradient)
        step, trust_ratio = self._step(weights, gradient, m, v, count, decay)
        return weights - rate * trust_ratio * step, m, v, trust_ratio

    def _corrected(self, m, v, count):
        """Returns the moments with correction of their bias towards the initial zeros."""
        count = ops.cast(count + 1, m.dtype)
        return m / (1.0 - ops.power(self.beta_1, count)), v / (1.0 - ops.power(self.beta_2, count))

    def _step(self, weights, gradient, m, v, count, decay):
        """Returns (step, trust ratio), factors of the learning rate; `decay` is 0 if excluded."""
        raise NotImplementedError("MomentOptimizer is abstract: use Lamb or AdamWeightDecay")

    def get_config(self):
        config = super().get_config()
        for name in (
            "weight_decay_rate",
            "beta_1",
            "beta_2",
            "epsilon",
            "layer_decay",
            "rate_factors",
        ):
            config[name] = getattr(self, name)
        config["exclude_from_weight_decay"] = list(self.exclude_patterns)
        return config


def _path(variable):
    return getattr(variable, "path", variable.name)


def _rate_factors(paths, layer_decay):
    """Returns the factor of each variable's learning rate.

    As in ELECTRA's `_get_layer_lrs`, the factor is layer_decay ** (n + 2 - depth) for n layers: the
    embeddings are at depth 0, the layer i (from 0) at i + 1, and the heads at n + 2, so no layer
    has n + 1. The pooler, which ELECTRA lacks, counts as a head, and tables of positions as
    embeddings. A group of layers that share their weights counts as one layer.
    """
    found = [_LAYER.search(path) for path in paths]
    num_layers = 1 + max((int(match[1]) for match in found if match), default=-1)
    factors = []
    for path, match in zip(paths, found, strict=True):
        is_embedding = any(part in path for part in _EMBEDDINGS)
        depth = int(match[1]) + 1 if match else 0 if is_embedding else num_layers + 2
        factors.append(layer_decay ** (num_layers + 2 - depth))
    return factors
