"""T5's span corruption: spans of a text become sentinels, and the target tells what stood there."""

import numpy as np
import tensorflow as tf

from nezha_tf.data import draws
from nezha_tf.objectives.text_to_text import SPECIAL_TOKENS, Corruption
from nezha_tf.objectives.texts import TokenRows, compacted, smallest
from nezha_tf.text.vocabulary import UNUSED_TOKEN
from nezha_tf.util.errors import UserError


class SpanCorruption(Corruption):
    """T5's objective (arXiv 1910.10683 §3.1.4, `span_corruption` of its preprocessors.py).

    The numbers of noise tokens and of spans depend only on the length of the text, and the lengths
    of spans are drawn. A text begins with tokens that stay and ends with noise. In the source, a
    sentinel stands for each span of noise; in the target, each span follows its sentinel. Sentinels
    are the vocabulary's [unusedN] tokens, the highest N first; a `UserError` says if there are too
    few.
    """

    name = "span_corruption"
    options = ("noise_density", "mean_span_length")

    def __init__(self, vocabulary, max_seq_length, noise_density=0.15, mean_span_length=3.0):
        """Both numbers count tokens: the share that is noise, and the mean length of a span."""
        super().__init__(vocabulary, max_seq_length)
        counts = np.arange(max_seq_length + 1)
        self._noise, self._spans = span_counts(counts, noise_density, mean_span_length)
        most = int(self._spans[self.fits(counts)].max())
        self._sentinels = sentinels_of(vocabulary)
        if len(self._sentinels) < most:
            raise UserError(
                f"span_corruption needs {most} sentinels for examples of {max_seq_length} tokens, "
                f"but the vocabulary has only {len(self._sentinels)} [unusedN] tokens; add some, "
                "lower --noise_density, or raise --mean_span_length"
            )

    def fits(self, counts):
        # Each span has a sentinel in the source and one in the target.
        return counts + 2 * self._spans[counts] + SPECIAL_TOKENS <= self.max_seq_length

    def corrupted(self, rows, keys):
        width = rows.ids.shape[1]
        noise, spans = (tf.gather(table, rows.counts) for table in (self._noise, self._spans))
        most = max(int(self._spans[: width + 1].max()), 1)
        lengths = [
            segment_lengths(
                _drawn_starts(draws.graph_bits(keys, number), items, spans, width), most
            )
            for number, items in enumerate((rows.counts - noise, noise))
        ]
        is_noise = noise_mask(*lengths, width) & rows.is_token
        return with_sentinels(rows, is_noise, self._sentinels)


def sentinels_of(vocabulary):
    """Returns the ids of the [unusedN] tokens, int32, the highest N first."""
    found = {
        int(match[1]): number
        for number, token in enumerate(vocabulary.tokens)
        if (match := UNUSED_TOKEN.fullmatch(token))
    }
    return np.array([found[number] for number in sorted(found, reverse=True)], np.int32)


def span_counts(counts, noise_density, mean_span_length):
    """Returns the numbers of noise tokens and of spans, int32 [n] each, in texts of int [n] tokens.

    As `random_spans_noise_mask` of T5: halves are rounded to even numbers.
    """
    counts = np.asarray(counts)
    noise = np.rint(counts.astype(np.float32) * np.float32(noise_density)).astype(np.int32)
    counts = counts.astype(np.int32)
    noise = np.clip(noise, 1, np.maximum(counts - 1, 1))
    spans = np.rint(noise.astype(np.float32) / np.float32(mean_span_length)).astype(np.int32)
    # Unlike in T5, there are never more spans than tokens that separate them.
    return noise, np.clip(spans, 1, np.maximum(np.minimum(noise, counts - noise), 1))


def segment_lengths(starts, most):
    """Returns the lengths of at most `most` segments, int32 [B, most].

    `starts`, int32 [B, n], is 1 at the first item of a segment, 0 at its other items, and -1 where
    there is no item.
    """
    is_item = starts >= 0
    segment = tf.cumsum(tf.maximum(starts, 0), axis=1) - 1
    is_in = (segment[:, :, None] == tf.range(most)) & is_item[:, :, None]
    return tf.reduce_sum(tf.cast(is_in, tf.int32), axis=1)


def noise_mask(kept_lengths, noise_lengths, width):
    """Returns bool [B, width], whether a place lies in a span of noise.

    `kept_lengths` and `noise_lengths`, int32 [B, K], are those of spans in turns, first a kept one.
    """
    interleaved = tf.stack([kept_lengths, noise_lengths], axis=2)
    ends = tf.cumsum(tf.reshape(interleaved, (-1, 2 * kept_lengths.shape[1])), axis=1)
    places = tf.tile(tf.range(width)[None], (tf.shape(ends)[0], 1))
    return tf.searchsorted(ends, places, side="right") % 2 == 1


def with_sentinels(rows, is_noise, sentinels):
    """Returns (source, target), both `TokenRows`, of texts whose noise, bool [B, n], is known.

    `sentinels`, int32 [K], are those of the first span, the second, and so on.
    """
    sides = []
    for replaced in (is_noise, ~is_noise):
        before = tf.pad(replaced, [[0, 0], [1, 0]])[:, :-1]
        begins = replaced & ~before & rows.is_token
        number = tf.cumsum(tf.cast(begins, tf.int32), axis=1) - 1
        sentinel = tf.gather(sentinels, tf.clip_by_value(number, 0, len(sentinels) - 1))
        ids = tf.where(begins, sentinel, rows.ids)
        is_kept = rows.is_token & (begins | ~replaced)
        sides.append(TokenRows(*compacted(ids, is_kept, 2 * rows.ids.shape[1])))
    return tuple(sides)


def _drawn_starts(keys, items, segments, width):
    """Draws where segments begin, int32 [B, width]; see `segment_lengths`."""
    places = tf.range(width)[None]
    shares = draws.graph_uniform(keys[:, None], tf.cast(places, tf.int64))
    is_item = places < items[:, None]
    begins = smallest(shares, is_item & (places > 0), segments - 1) | (places == 0)
    return tf.where(is_item, tf.cast(begins, tf.int32), -1)
