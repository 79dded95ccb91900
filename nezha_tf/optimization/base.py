"""What a run needs of each optimizer: weight decay with exceptions, rates by layer, its state."""

import math
import re

import keras
from keras import ops

# Patterns of variable paths: the scales and biases of norms, all biases, and the mixture of layers,
# whose gamma is such a scale.
EXCLUDE_FROM_WEIGHT_DECAY = ("LayerNorm", "RMSNorm", "layer_norm", "bias", "layer_mix")

# A layer, or a group of layers that share their weights.
LAYER = re.compile(r"/(?:layer|group)_(\d+)/")
# What lies below the layers; relative positions have their tables outside the embeddings.
_EMBEDDINGS = ("/embeddings/", "/positions/")


class RunOptimizer(keras.optimizers.Optimizer):
    """The base of all optimizers of runs, beside the class of Keras that makes the update.

    Weight decay is decoupled (arXiv 1711.05101): weights shrink by rate * decay before the update.

    Attributes:
      metrics: names of what `update_step` reports of each variable; a run logs it.
      slot_names: dict of Keras's names of slots to those in TF1 checkpoints, where they follow the
        weight's name and a slash.
    """

    metrics: tuple[str, ...] = ()
    slot_names: dict[str, str] = {}  # noqa: RUF012

    def __init__(
        self,
        learning_rate=1e-4,
        weight_decay_rate=0.01,
        exclude_from_weight_decay=EXCLUDE_FROM_WEIGHT_DECAY,
        layer_decay=1.0,
        rate_factors=None,
        **kwargs,
    ):
        """Args:
        learning_rate: a number or a Keras schedule; update s (from 0) uses schedule(s).
        weight_decay_rate: decay of the weights; Keras's name of the argument, `weight_decay`, means
          the same.
        exclude_from_weight_decay: patterns of the paths of variables without decay.
        layer_decay: the rate of a layer is that of the layer above it times this.
        rate_factors: dict of a part of variable paths to the factor of their rate.
        **kwargs: those of the class of Keras.
        """
        decay = kwargs.get("weight_decay")
        super().__init__(learning_rate=learning_rate, **kwargs)
        # Keras would decay the weights once more.
        self.weight_decay = None
        self.weight_decay_rate = weight_decay_rate if decay is None else decay
        self.exclude_patterns = tuple(exclude_from_weight_decay)
        self.layer_decay = layer_decay
        self.rate_factors = dict(rate_factors or {})
        self._slots = {}

    def build(self, variables):
        if self.built:
            return
        super().build(variables)
        self._decays = [self._has_decay(variable) for variable in variables]
        paths = [_path(variable) for variable in variables]
        self._factors = [
            factor * math.prod(f for part, f in self.rate_factors.items() if part in path)
            for path, factor in zip(paths, _rate_factors(paths, self.layer_decay), strict=True)
        ]

    def _has_decay(self, variable):
        # The model's own name is removed, because it may match a pattern.
        path = _path(variable).split("/", 1)[-1]
        return self._use_weight_decay(variable) and not any(
            re.search(pattern, path) for pattern in self.exclude_patterns
        )

    def add_variable_from_reference(self, reference_variable, name=None, **kwargs):
        slot = super().add_variable_from_reference(reference_variable, name, **kwargs)
        # Keras numbers the names of several optimizers, so the class names its slots.
        own = self.slot_names.get(name, f"{type(self).__name__.lower()}_{name}")
        self._slots.setdefault(self._var_key(reference_variable), {})[own] = slot
        return slot

    def trace_updates(self, trace):
        """Lets a run `trace` (a function of a function of tensors) what several variables share."""

    def slots_of(self, variable):
        """Returns a dict of the name in TF1 checkpoints to the slot of a variable."""
        return self._slots.get(self._var_key(variable), {})

    def state(self):
        """Returns a dict of names in a checkpoint to the variables beside slots and step."""
        known = {id(slot) for slots in self._slots.values() for slot in slots.values()}
        known |= {id(self.iterations), id(self._learning_rate)}
        others = [variable for variable in self.variables if id(variable) not in known]
        return {f"nezha_tf/optimizer_{n}": variable.value for n, variable in enumerate(others)}

    def rate_and_decay(self, variable, learning_rate):
        """Returns (learning rate of a variable, its rate of decay), a tensor and a float."""
        index = self._get_variable_index(variable)
        rate = ops.cast(learning_rate, variable.dtype) * self._factors[index]
        return rate, self.weight_decay_rate if self._decays[index] else 0.0

    def update_step(self, gradient, variable, learning_rate):
        """Updates one variable and its slots; returns the figure of `metrics`, or 1.

        The gradient is summed and clipped already.
        """
        rate, decay = self.rate_and_decay(variable, learning_rate)
        if decay:
            self.assign_sub(variable, rate * decay * variable)
        super().update_step(gradient, variable, rate)
        return ops.ones((), variable.dtype)

    def get_config(self):
        config = super().get_config()
        del config["weight_decay"]
        for name in ("weight_decay_rate", "layer_decay", "rate_factors"):
            config[name] = getattr(self, name)
        config["exclude_from_weight_decay"] = list(self.exclude_patterns)
        return config


class MomentOptimizer(RunOptimizer):
    """LAMB and AdamW: keeps two moments of each gradient; a subclass computes the step from them.

    All arithmetic is in the variables' dtype (float32). `variants` are the ways to compute it.
    """

    variants: tuple[str, ...] = ()

    def __init__(self, learning_rate, variant, beta_1=0.9, beta_2=0.999, epsilon=1e-6, **kwargs):
        if variant not in self.variants:
            raise ValueError(f"variant must be one of {self.variants}, not {variant!r}")
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.variant = variant
        self.beta_1 = beta_1
        self.beta_2 = beta_2
        self.epsilon = epsilon
        self._moved = self.moved

    def build(self, variables):
        if self.built:
            return
        super().build(variables)
        self._m, self._v = self.add_optimizer_variables(variables, list(self.slot_names))

    def trace_updates(self, trace):
        self._moved = trace(self.moved)

    def update_step(self, gradient, variable, learning_rate):
        index = self._get_variable_index(variable)
        weights = ops.convert_to_tensor(variable)
        rate, decay = self.rate_and_decay(variable, learning_rate)
        weights, m, v, trust_ratio = self._moved(
            weights,
            ops.cast(_dense(gradient), weights.dtype),
            self._m[index],
            self._v[index],
            rate,
            self.iterations,
            decay,
        )
        self.assign(self._m[index], m)
        self.assign(self._v[index], v)
        self.assign(variable, weights)
        return trust_ratio

    def moved(self, weights, gradient, m, v, rate, count, decay):
        """Returns (weights, m, v, trust ratio) after a step; it changes no state.

        `weights`, `gradient`, `m` and `v` are of one shape; `rate` is the variable's learning rate,
        `count` the number of steps before this one, and `decay` 0.0 for an excluded variable.
        """
        m = self.beta_1 * m + (1.0 - self.beta_1) * gradient
        v = self.beta_2 * v + (1.0 - self.beta_2) * ops.square(gradient)
        step, trust_ratio = self._step(weights, gradient, m, v, count, decay)
        return weights - rate * trust_ratio * step, m, v, trust_ratio

    def _corrected(self, m, v, count):
        """Returns the moments with correction of their bias towards the initial zeros."""
        # In bfloat16 0.999 is 1, and v would be divided by 0.
        count = ops.cast(count + 1, keras.backend.result_type(m.dtype, "float32"))
        first, second = (1.0 - ops.power(beta, count) for beta in (self.beta_1, self.beta_2))
        return m / ops.cast(first, m.dtype), v / ops.cast(second, v.dtype)

    def _step(self, weights, gradient, m, v, count, decay):
        """Returns (step, trust ratio), the factors of the learning rate."""
        raise NotImplementedError("MomentOptimizer is abstract: use Lamb or AdamWeightDecay")

    def get_config(self):
        names = ("variant", "beta_1", "beta_2", "epsilon")
        return {**super().get_config(), **{name: getattr(self, name) for name in names}}


def _dense(gradient):
    """Returns a gradient as a tensor: of an embedding, TensorFlow has only the rows that count."""
    if keras.backend.backend() != "tensorflow":
        return gradient
    import tensorflow as tf

    return tf.convert_to_tensor(gradient)


def _path(variable):
    return getattr(variable, "path", variable.name)


def _rate_factors(paths, layer_decay):
    """Returns the factor of each variable's learning rate.

    As in ELECTRA's `_get_layer_lrs`, it is layer_decay ** (n + 2 - depth) for n layers: the
    embeddings are at depth 0, the layer i (from 0) at i + 1, and the heads at n + 2, so no layer
    has n + 1. The pooler counts as a head, and tables of positions as embeddings.
    """
    matches = [LAYER.search(path) for path in paths]
    num_layers = 1 + max((int(match[1]) for match in matches if match), default=-1)
    factors = []
    for path, match in zip(paths, matches, strict=True):
        is_embedding = any(part in path for part in _EMBEDDINGS)
        depth = int(match[1]) + 1 if match else 0 if is_embedding else num_layers + 2
        factors.append(layer_decay ** (num_layers + 2 - depth))
    return factors
