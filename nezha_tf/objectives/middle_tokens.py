"""Draws the tokens that the middle layers compute in training."""

import math

import numpy as np
import tensorflow as tf

from nezha_tf.data import draws, schema
from nezha_tf.objectives.objective import Transform
from nezha_tf.util.errors import UserError


class MiddleTokens(Transform):
    """Draws K tokens of each example for each layer between the first and the last (random-LTD).

    As in Yao et al. (arXiv 2211.11586 §3), each layer has a draw of its own, no token is treated
    in another way than others, and the order of the tokens stays. Padding comes in only where an
    example has fewer tokens. K is the same in the whole run; the paper raises it step by step,
    which would compile the step anew each time.
    """

    def __init__(self, config, length, share, features):
        """Args:
        config: the `NezhaConfig`.
        length: T, the length of the examples.
        share: K as a share of T, rounded up.
        features: the `schema.Feature`s of the batch.

        Raises:
          UserError: the share is not above 0, or no layer lies between the first and the last.
        """
        self._num_layers = config.num_hidden_layers - 2
        if self._num_layers < 1:
            raise UserError(
                f"--middle_tokens={share:g} is for the layers between the first and the last, and "
                f"the model has {config.num_hidden_layers} layers; leave it out"
            )
        if not share:
            raise UserError(
                f"--middle_tokens={share:g} must be above 0; layers without a token learn nothing"
            )
        self._length, self.count = length, math.ceil(share * length)
        size = self._num_layers * self.count
        self.reads = features
        self.gives = (*features, schema.Feature("middle_positions", np.int64, size))

    def __call__(self, batch, numbers, seed):
        is_token = batch["input_mask"][:, None, :] > 0
        keys = draws.graph_keys("middle_tokens", seed, numbers)[:, None, None]
        counters = tf.range(self._num_layers * self._length, dtype=tf.int64)
        counters = tf.reshape(counters, (1, self._num_layers, self._length))
        turns = tf.bitcast(draws.graph_shifted(draws.graph_bits(keys, counters), 1), tf.int64)
        turns = tf.where(is_token, turns, tf.int64.max)
        chosen = tf.sort(tf.argsort(turns, axis=-1, stable=True)[..., : self.count], axis=-1)
        size = self._num_layers * self.count
        return {**batch, "middle_positions": tf.reshape(chosen, (-1, size))}
