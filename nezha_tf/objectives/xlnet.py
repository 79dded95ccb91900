"""The permutation language model of XLNet (arXiv 1906.08237 §2.2 and §2.3)."""

import numpy as np
import tensorflow as tf

from nezha_tf.data import draws, schema
from nezha_tf.modeling.pretraining import NezhaForPermutationLM
from nezha_tf.objectives.objective import Objective, Transform
from nezha_tf.objectives.terms import MASKED_LM
from nezha_tf.objectives.texts import compacted, smallest
from nezha_tf.util.errors import UserError

RANKS = schema.Feature("permutation_ranks", np.int64, "max_seq_length")
MOST_IN_A_SPAN = 5
# A span of n tokens lies in a context of 6 n tokens (mask_alpha and mask_beta of XLNet).
CONTEXT = 6


class PermutationOrder(Transform):
    """Chooses tokens to predict, and draws a factorization order.

    It follows `_sample_mask` and `_local_perm` of XLNet's data_utils.py. The tokens stay as they
    are; `permutation_ranks` says what sees what.
    """

    reads = schema.UNMASKED_FEATURES
    gives = (*schema.FEATURES, RANKS)
    at_once = 256

    def __init__(self, vocabulary, max_seq_length, num_predict):
        """`num_predict` of `max_seq_length` tokens are predicted; in shorter examples fewer."""
        if num_predict >= max_seq_length:
            raise UserError(
                f"--num_predict={num_predict} does not fit into examples of {max_seq_length} "
                "tokens: other tokens must be left to predict from; XLNet takes a sixth"
            )
        self._special_ids = (vocabulary.cls_id, vocabulary.sep_id)
        self._num_predict = num_predict
        counts = np.arange(max_seq_length + 1)
        goals = np.rint(counts * (num_predict / max_seq_length))
        self._goals = np.maximum(1, goals).astype("int32")

    def __call__(self, batch, numbers, seed):
        ids, is_token = batch["input_ids"], batch["input_mask"] > 0
        is_special = is_token & tf.reduce_any(ids[..., None] == self._special_ids, axis=-1)
        keys = draws.graph_keys("permutation", seed, numbers)
        chosen = self._choose(batch, is_special, draws.graph_bits(keys, 0))
        is_lowest = _not_empty(is_token & ~is_special & ~chosen)
        shares = draws.graph_uniform(draws.graph_bits(keys, 1)[:, None], _places(ids))
        shuffle = tf.argsort(shares, axis=1)
        places = tf.broadcast_to(tf.range(ids.shape[1])[None], tf.shape(ids))
        positions, count = compacted(places, chosen & ~is_special, self._num_predict)
        is_there = tf.range(self._num_predict)[None] < count[:, None]
        labels = tf.gather(ids, positions, batch_dims=1) * tf.cast(is_there, tf.int32)
        return {
            **{name: values for name, values in batch.items() if name != "word_starts"},
            "masked_lm_positions": positions,
            "masked_lm_ids": labels,
            "masked_lm_weights": tf.cast(is_there, tf.float32),
            RANKS.name: factorization_ranks(is_lowest, shuffle),
        }

    def _choose(self, batch, is_special, keys):
        ids, counts = batch["input_ids"], tf.reduce_sum(batch["input_mask"], axis=1)
        goals = tf.gather(self._goals, counts)
        is_start = (batch["word_starts"] > 0) | is_special
        shares = [
            draws.graph_uniform(draws.graph_bits(keys, number)[:, None], _places(ids))
            for number in range(3)
        ]
        chosen, left = choose_spans(is_start, counts, goals, *shares[:2])
        return chosen | smallest(shares[2], (batch["input_mask"] > 0) & ~chosen, left)


def choose_spans(is_start, counts, goals, sizes, contexts):
    """Chooses spans of tokens until a row's goal or end is reached.

    A span has 1 to 5 tokens, n with a probability proportional to 1/n. It lies anywhere in a
    context of 6 n tokens but begins with a word, and the next context begins after this one.

    Args:
      is_start: bool [B, T], whether a token begins a word.
      counts, goals: int32 [B], how many tokens there are and how many to choose.
      sizes, contexts: float64 [B, T], random numbers in [0, 1): those of a row's first span, of its
        second, and so on, choose its size and its place in the context.

    Returns:
      (bool [B, T], the chosen tokens; int32 [B], how many are missing to the goal).
    """
    shape = tf.shape(is_start)
    places = tf.broadcast_to(tf.range(shape[1])[None], shape)
    starts = tf.sort(tf.where(is_start, places, shape[1]), axis=1)
    ends = tf.constant(np.cumsum(1 / np.arange(1, MOST_IN_A_SPAN)) / _harmonic(MOST_IN_A_SPAN))
    spans = 1 + tf.searchsorted(ends, tf.reshape(sizes, [-1]), side="right")
    spans = tf.reshape(spans, shape)

    def goes_on(number, first, left, chosen):
        return tf.reduce_any(left > 0) & tf.reduce_any(first < counts) & (number < shape[1])

    def choose(number, first, left, chosen):
        size = tf.minimum(spans[:, number], left)
        context = size * CONTEXT
        before = tf.cast(contexts[:, number] * tf.cast(context, tf.float64), tf.int32)
        index = tf.searchsorted(starts, (first + before)[:, None])
        begin = tf.gather(
            tf.pad(starts, [[0, 0], [0, 1]], constant_values=shape[1]), index, batch_dims=1
        )[:, 0]
        end = begin + size
        # As in XLNet, a span that reaches the end of the row is the first one that is left out.
        fits = (first < counts) & (left > 0) & (end < counts)
        own = (places >= begin[:, None]) & (places < end[:, None]) & fits[:, None]
        after = tf.where(fits, end + context - before, counts)
        return number + 1, after, left - tf.where(fits, size, 0), chosen | own

    start = (0, tf.zeros_like(counts), goals, tf.zeros(shape, tf.bool))
    _, _, left, chosen = tf.while_loop(goes_on, choose, start)
    return chosen, left


def factorization_ranks(is_lowest, shuffle):
    """Returns the attention ranks of a factorization order, int32 [B, T].

    A token sees what does not rank above it, and a prediction what ranks below its place. With
    these ranks this is `_local_perm` of XLNet.

    Args:
      is_lowest: bool [B, T], the tokens that everything sees: text that is not predicted.
      shuffle: int32 [B, S], a permutation of 0 to S - 1, where S divides T; each S tokens in turn
        have this order, and the later ones rank above the earlier ones.
    """
    size, length = shuffle.shape[1], is_lowest.shape[1]
    blocks = tf.range(0, length, size)[None, :, None]
    order = tf.reshape(blocks + shuffle[:, None], (-1, length))
    return tf.where(is_lowest, 0, 1 + order)


def _not_empty(is_lowest):
    """Adds the first token, [CLS], to rows, bool [B, T], that have no lowest token.

    Where all text of a short example is predicted, the first prediction would see nothing: its
    softmax would be over all keys, its own token among them. XLNet's masks have this hole.
    """
    is_first = tf.range(is_lowest.shape[1])[None] == 0
    return is_lowest | is_first & ~tf.reduce_any(is_lowest, axis=1, keepdims=True)


def _harmonic(count):
    return np.sum(1 / np.arange(1, count + 1))


def _places(ids):
    return tf.range(ids.shape[1], dtype=tf.int64)[None]


class Permutation(Objective):
    """Some tokens are predicted from those before them in an order that is drawn.

    A prediction knows its place but not the token there: a second stream of states makes it. No
    token is replaced by [MASK].
    """

    reads = schema.UNMASKED_FEATURES
    model = NezhaForPermutationLM
    has_query_stream = has_memory = True
    options = ("num_predict",)

    def transforms(self, examples):
        vocabulary = examples.required_vocabulary("permutation")
        return (PermutationOrder(vocabulary, *self.lengths(examples)),)

    def lengths(self, examples):
        length = examples.lengths.max_seq_length
        num_predict = examples.num_predict or max(1, length // CONTEXT)
        return schema.Lengths(length, num_predict)

    def ranks(self, batch):
        return batch[RANKS.name]

    def terms(self, of_pairs):
        return (MASKED_LM,)
