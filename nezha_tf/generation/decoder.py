"""Incremental decoding: keys and values are computed once for each token, and cached.

Sources are padded on the left. So every target begins at the place S, and the difference of two
places is the distance of their tokens in every example. If only distances matter, places serve as
positions, the same for the whole batch. Other positions are counted from a source's first token,
so they differ between examples.

The source is cached once for each example; the queries of all beams attend to it in one product.
In the target, each place has one token for each beam, which is never moved: when a hypothesis
moves to another beam, `ancestors` tells which token of each place belongs to it.
"""

from typing import NamedTuple

import tensorflow as tf
from keras import ops

from nezha_tf.modeling import attention_mask


class SourceCache(NamedTuple):
    """The cache of the sources."""

    keys_and_values: list  # of a pair (keys, values) for each layer, each [B, N, S, H]
    input_mask: tf.Tensor  # int32 [B, S], 0 for the padding on the left


class Cache(NamedTuple):
    """The cache of the targets that are written so far."""

    keys_and_values: list  # of a pair (keys, values) for each layer, each [B, N, T, beams, H]
    ancestors: tf.Tensor  # int32 [B, beams, T], the beam that has a hypothesis's token at a place
    length: tf.Tensor  # int32 [], the number of written places

    def follow(self, parents):
        """Returns the cache for hypotheses that continue the old `parents`, int32 [B, beams]."""
        return self._replace(ancestors=tf.gather(self.ancestors, parents, batch_dims=1))


class Decoder:
    """Computes the logits of the next token of a `NezhaForMaskedLM` with a cache."""

    def __init__(self, model, target_format, mask_id):
        self._encoder, self._head = model.encoder, model.masked_lm
        self._target_format = target_format
        self._mask_id = mask_id

    def start(self, source_ids, source_mask, beams, max_length):
        """Reads the sources, int32 [B, S], padded on the left.

        Returns:
          (logits of the first token, float32 [B, V]; `SourceCache`; an empty `Cache` with
          `max_length` places for so many beams of each example).
        """
        batch, length = ops.shape(source_ids)
        first, second = self._target_format.segment_ids
        blanks = int(self._target_format.is_masked)

        def with_blank(source, value):
            return tf.pad(source, [[0, 0], [0, blanks]], constant_values=value)

        input_mask = with_blank(source_mask, 1)
        ranks = self._target_format.ranks(length, blanks)
        inputs = {
            "input_ids": with_blank(source_ids, self._mask_id),
            "input_mask": input_mask,
            "segment_ids": with_blank(tf.fill((batch, length), first), second),
            "attention_mask": attention_mask.from_ranks(ranks, input_mask),
        }
        positions = self._encoder.positions
        if not positions.is_relative:
            places = tf.range(length + blanks)
            inputs["position_ids"] = position_ids(positions, source_mask, places)
        outputs = self._encoder(inputs, all_outputs=True)
        logits = self._logits(outputs, length + blanks - 1, 1)[:, 0]
        kept = [tuple(part[:, :, :length] for part in pair) for pair in outputs["keys_and_values"]]
        config = self._encoder.config
        shape = (batch, config.num_attention_heads, max_length, beams, config.head_size)
        empty = tf.zeros(shape, self._encoder.compute_dtype)
        cache = Cache(
            [(empty, empty)] * config.num_hidden_layers,
            tf.zeros((batch, beams, max_length), tf.int32),
            tf.constant(0),
        )
        return logits, SourceCache(kept, source_mask), cache

    def step(self, source, cache, tokens):
        """Appends to each hypothesis its last token, int32 [B, beams].

        Returns:
          (logits of the next token, float32 [B, beams, V]; the cache with `tokens`).
        """
        batch, beams = ops.shape(tokens)
        queries = 1 + int(self._target_format.is_masked)
        blanks = tf.fill((batch, (queries - 1) * beams), self._mask_id)
        input_ids = tf.concat([tokens, blanks], axis=1)
        length = ops.shape(source.input_mask)[1]
        places = length + cache.length + tf.range(queries)
        of_cache = length + tf.range(cache.ancestors.shape[2])
        positions = self._encoder.positions
        of_queries, of_source, of_target = (
            position_ids(positions, source.input_mask, part)
            for part in (places, tf.range(length), tf.concat([of_cache, places], axis=0))
        )
        outputs = self._encoder(
            {
                "input_ids": input_ids,
                "segment_ids": tf.fill(ops.shape(input_ids), self._target_format.segment_ids[1]),
                "attention_mask": attention_mask.of_beams(
                    source.input_mask, cache.ancestors, cache.length, queries
                ),
                "position_ids": tf.repeat(of_queries, beams, axis=-1),
                "past_key_values": [
                    (read, tuple(_places_and_beams(part) for part in written))
                    for read, written in zip(
                        source.keys_and_values, cache.keys_and_values, strict=True
                    )
                ],
            },
            positions=positions.of_beams(of_queries, of_source, of_target, beams),
            all_outputs=True,
        )
        logits = self._logits(outputs, (queries - 1) * beams, beams)
        return logits, _written(cache, outputs["keys_and_values"], beams)

    def _logits(self, outputs, first, count):
        """Returns the logits [B, count, V] of the queries from `first` on."""
        states = outputs["sequence_output"]
        positions = tf.tile(first + tf.range(count)[None], (ops.shape(states)[0], 1))
        return self._head(states, positions, self._encoder.embeddings.word_embeddings)


def position_ids(positions, source_mask, places):
    """Returns the positions of places, int32 [T]: the places, if only distances matter.

    Otherwise they are counted from the first token of each source, int32 [B, T]; `source_mask`,
    [B, S], is 0 for the padding on the left, which gets the position of another token.
    """
    if positions.is_relative:
        return places
    padding = tf.reduce_sum(1 - source_mask, axis=1, keepdims=True)
    longest = positions.longest(positions.config) or places.dtype.max
    return tf.clip_by_value(places[None] - padding, 0, longest - 1)


def _places_and_beams(part):
    """Reshapes [B, N, T, beams, H] to [B, N, T * beams, H]."""
    batch, heads, places, beams, size = ops.shape(part)
    return tf.reshape(part, (batch, heads, places * beams, size))


def _written(cache, keys_and_values, beams):
    """Returns the cache with the new tokens' keys and values; those of [MASK]s are dropped."""
    begin = (0, 0, cache.length, 0, 0)
    kept = [
        tuple(
            ops.slice_update(part, begin, own[:, :, None, :beams])
            for part, own in zip(pair, own_pair, strict=True)
        )
        for pair, own_pair in zip(cache.keys_and_values, keys_and_values, strict=True)
    ]
    is_this = tf.range(cache.ancestors.shape[2]) == cache.length
    ancestors = tf.where(is_this, tf.range(beams)[:, None], cache.ancestors)
    return Cache(kept, ancestors, cache.length + 1)
