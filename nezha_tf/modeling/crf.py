"""A conditional random field over the tags of a sequence (Lafferty et al. 2001).

The score of a path of tags is the sum of its tokens' logits, of the transitions from tag to tag,
and of the start and end scores of its first and last tag. Its probability is the softmax over all
paths. Tokens without a tag of their own are skipped, wherever they are.
"""

from typing import NamedTuple

import keras
from keras import ops

# Added to the logits of tags that are impossible.
RULED_OUT = -1e9


class Chain(NamedTuple):
    """The scores of all paths through the tags of each sequence.

    Attributes:
      logits: float32 [B, T, L].
      has_tag: bool [B, T], whether a token is on the path.
      start, end: float32 [L], the score of each tag as the first and as the last one.
      transitions: float32 [L, L], the score from a tag (row) to the next tag (column).
    """

    logits: object
    has_tag: object
    start: object
    transitions: object
    end: object

    @property
    def is_first(self):
        """Bool [B, T], whether a token is the first on its path."""
        return self.has_tag & ops.equal(ops.cumsum(ops.cast(self.has_tag, "int32"), axis=1), 1)

    @property
    def goes_on(self):
        """Bool [B, T], whether a token is on the path, but not first."""
        return self.has_tag & ops.logical_not(self.is_first)


@keras.saving.register_keras_serializable("nezha_tf")
class LinearChain(keras.layers.Layer):
    """The scores of L tags as the first and last ones, and of their transitions, in float32."""

    def __init__(self, num_labels, **kwargs):
        super().__init__(**{**kwargs, "dtype": "float32"})
        self.num_labels = num_labels

    def build(self, input_shape=None):
        zeros, count = {"initializer": "zeros"}, self.num_labels
        self.start = self.add_weight(name="start_transitions", shape=(count,), **zeros)
        self.transitions = self.add_weight(name="transitions", shape=(count, count), **zeros)
        self.end = self.add_weight(name="end_transitions", shape=(count,), **zeros)
        self.built = True

    def call(self, logits, label_mask):
        """Returns the `Chain` of logits [B, T, L] and label_mask int [B, T] (0: off the path)."""
        tables = (v.value for v in (self.start, self.transitions, self.end))
        return Chain(ops.cast(logits, "float32"), ops.cast(label_mask, "bool"), *tables)


def log_likelihoods(chain, tag_ids):
    """Returns the log-probability of paths tag_ids int [B, T]: float32 [B], 0 for empty paths."""
    others = 1.0 - ops.one_hot(tag_ids, chain.logits.shape[-1], dtype="float32")
    only = chain._replace(logits=chain.logits + RULED_OUT * others)
    return log_partitions(only) - log_partitions(chain)


def log_partitions(chain):
    """Returns the logarithm of the sum over all paths of exp(score), float32 [B].

    XLA cannot differentiate a loop over a dynamic length. So the gradients, which are the expected
    counts of tags and transitions, are computed explicitly.
    """
    fixed = Chain(*(ops.stop_gradient(values) for values in chain))
    alphas, sums = _forward(fixed, ops.logsumexp)
    tags, pairs = _expectations(fixed, alphas)
    is_first = ops.cast(chain.is_first, "float32")[..., None]
    last = ops.softmax(alphas[:, -1] + fixed.end)
    linear = (
        ops.sum(tags * chain.logits, axis=(1, 2))
        + ops.sum(ops.sum(is_first * tags, axis=1) * chain.start, axis=1)
        + ops.sum(pairs * chain.transitions, axis=(1, 2))
        + ops.sum(last * chain.end, axis=1)
    )
    values = ops.sum(sums, axis=1) + ops.logsumexp(alphas[:, -1] + fixed.end, axis=-1)
    exact = linear + ops.stop_gradient(values - linear)
    return ops.where(ops.any(chain.has_tag, axis=1), exact, 0.0)


def marginals(chain):
    """Returns each tag's probability at each token, float32 [B, T, L]; 0 off the path."""
    alphas, _ = _forward(chain, ops.logsumexp)
    return _expectations(chain, alphas)[0]


def viterbi(chain):
    """Returns the tag ids of the best path, int32 [B, T]; 0 for tokens off the path."""
    alphas, _ = _forward(chain, ops.max)
    # At tokens off the path and at the first token on it, the previous tag is the tag itself.
    best = ops.argmax(_before(alphas)[..., None] + chain.transitions, axis=2)
    itself = ops.arange(chain.transitions.shape[0], dtype="int32")
    sources = ops.where(chain.goes_on[..., None], ops.cast(best, "int32"), itself)

    def step(tag, inputs):
        (sources,) = inputs
        return ops.take_along_axis(sources, tag[:, None], axis=1)[:, 0], tag

    last = ops.cast(ops.argmax(alphas[:, -1] + chain.end, axis=-1), "int32")
    path = _scan(step, last, (sources,), reverse=True)
    return path * ops.cast(chain.has_tag, "int32")


def _forward(chain, reduce):
    """Returns the scores of the paths up to each token, by the token's tag, normalised.

    `reduce`, `ops.logsumexp` or `ops.max`, combines paths. The result is (scores [B, T, L] minus
    their own `reduce`, the subtracted values [B, T]), whose sum belongs to the whole path.
    """

    def step(alpha, inputs):
        logits, has_tag, is_first = inputs
        onward = reduce(alpha[:, :, None] + chain.transitions, axis=1)
        reached = ops.where(is_first[:, None], chain.start, onward) + logits
        scores = ops.where(has_tag[:, None], reached, alpha)
        return scores - reduce(scores, axis=1, keepdims=True), scores

    inputs = (chain.logits, chain.has_tag, chain.is_first)
    # The initial zeros are normalised, so nothing is subtracted before the first token.
    none = ops.zeros_like(chain.logits[:, 0])
    none -= reduce(none, axis=1, keepdims=True)
    scores = _scan(step, none, inputs)
    sums = reduce(scores, axis=2)
    return scores - sums[..., None], sums


def _backward(chain):
    """Returns the scores of the paths after each token, by its tag, up to a constant: [B, T, L]."""

    def step(beta, inputs):
        logits, goes_on = inputs
        scores = ops.logsumexp(chain.transitions + (logits + beta)[:, None, :], axis=2)
        scores -= ops.max(scores, axis=1, keepdims=True)
        return ops.where(goes_on[:, None], scores, beta), beta

    inputs = (chain.logits, chain.goes_on)
    end = ops.zeros_like(chain.logits[:, 0]) + chain.end
    return _scan(step, end, inputs, reverse=True)


def _scan(step, initial, inputs, reverse=False):
    """Returns the values that `ops.scan` over the T tokens collects, [B, T, ...].

    The inputs, [B, T, ...], are not passed to `ops.scan`, because it fails in TensorFlow for
    several inputs of dynamic length. `step` gets their values of one token.
    """

    def at(state, place):
        return step(state, [ops.take(values, place, axis=1) for values in inputs])

    places = ops.arange(ops.shape(inputs[0])[1], dtype="int32")
    _, found = ops.scan(at, initial, places, reverse=reverse)
    return ops.swapaxes(found, 0, 1)


def _expectations(chain, alphas):
    """Returns the expected (tags [B, T, L], transitions [B, L, L]) over all paths."""
    betas = _backward(chain)
    has_tag = ops.cast(chain.has_tag, "float32")
    tags = ops.softmax(alphas + betas, axis=-1) * has_tag[..., None]
    onward = (chain.logits + betas)[:, :, None, :]
    scores = _before(alphas)[..., None] + chain.transitions + onward
    pairs = ops.exp(scores - ops.logsumexp(scores, axis=(2, 3), keepdims=True))
    goes_on = ops.cast(chain.goes_on, "float32")
    return tags, ops.sum(pairs * goes_on[..., None, None], axis=1)


def _before(alphas):
    """Returns the scores up to the token before each token; those of the first are arbitrary."""
    return ops.concatenate([alphas[:, :1], alphas[:, :-1]], axis=1)
