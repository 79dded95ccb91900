"""The masking policies as data, for NumPy arrays and for the graph.

A policy says what a unit is, and how many units the run of an anchor has. The rest is the same for
all policies: the units of a sequence are shuffled, each is an anchor in turn, and a run that
exceeds the budget or overlaps a chosen run is skipped. Units and runs never contain a special
token.
"""

import dataclasses

import numpy as np

from nezha_tf.util.errors import UserError

# The value of --masking for records that are masked only when they are read.
UNMASKED = "none"
DEFAULT_MASKED_LM_PROB = 0.15

# Shares of the predicted tokens that become [MASK] or a random token; the others stay unchanged
# (BERT, arXiv 1810.04805 §3.1).
MASKED_SHARE = 0.8
RANDOM_SHARE = 0.1


@dataclasses.dataclass(frozen=True)
class MaskingPolicy:
    """Which tokens are chosen together.

    Attributes:
      of_words: whether a unit is a word; if False, it is a token.
      run_shares: floats, the shares of anchors whose run has 1, 2, 3 ... units.
      draws_once: whether all tokens of a run are masked, replaced or kept together, or each alone.
      of_entities: whether each entity of the user's dictionary is one word.
    """

    of_words: bool = True
    run_shares: tuple[float, ...] = (1.0,)
    draws_once: bool = False
    of_entities: bool = False

    @property
    def run_ends(self):
        """The cumulative shares but the last, float64.

        A number u drawn from [0, 1) gives a run of 1 + sum(ends <= u) units.
        """
        shares = np.array(self.run_shares, np.float64)
        return np.cumsum(shares / shares.sum())[:-1]


def _geometric(p, most):
    """Returns the shares of lengths 1 to `most` in a geometric distribution truncated there."""
    return tuple(p * (1 - p) ** (length - 1) for length in range(1, most + 1))


POLICIES = {
    # NEZHA, arXiv 1909.00204 §3.2.
    "whole_word": MaskingPolicy(),
    # BERT, arXiv 1810.04805 §3.1.
    "token": MaskingPolicy(of_words=False),
    # UniLM, arXiv 1905.03197 §2.3: a bigram or a trigram in one of five cases; here of words.
    "ngram": MaskingPolicy(run_shares=(0.8, 0.1, 0.1)),
    # SpanBERT, arXiv 1907.10529 §3.1: lengths in words, 3.8 on average when they are drawn. Long
    # runs are skipped more often: about 2.5 are left in 128 tokens with 20 predictions, and 3.3 in
    # 512 with 77.
    "span": MaskingPolicy(run_shares=_geometric(0.2, 10), draws_once=True),
    # ERNIE, arXiv 1904.09223 §3.2.2 and §3.2.3: phrases and entities are units. Other text is
    # masked by words, as in NEZHA, while ERNIE masks single characters.
    "entity": MaskingPolicy(of_entities=True),
}


def replacements(tokens, shares, random_ids, mask_id, where=np.where):
    """Returns the replacements of predicted tokens: [MASK], a random token or the token itself.

    `shares` are random numbers in [0, 1), `random_ids` random tokens; `where` is that of NumPy or
    of TensorFlow. All are of one shape.
    """
    unmasked = where(shares < MASKED_SHARE + RANDOM_SHARE, random_ids, tokens)
    return where(shares < MASKED_SHARE, mask_id, unmasked)


def check_share(masked_lm_prob):
    """Raises a `UserError` if the share of predicted tokens is not in (0, 1]."""
    if not 0 < masked_lm_prob <= 1:
        raise UserError(
            f"--masked_lm_prob={masked_lm_prob} must be above 0 and at most 1; the smallest share "
            "still lets one token of each example be predicted"
        )


def budgets(max_seq_length, masked_lm_prob, max_predictions_per_seq):
    """Returns the most tokens to predict for each length of a sequence, int32 [T + 1].

    Special tokens are counted in the length, of which T, `max_seq_length`, is the longest. Halves
    are rounded to even numbers, as in the originals.
    """
    wanted = np.rint(np.arange(max_seq_length + 1) * masked_lm_prob).astype(np.int32)
    return np.minimum(max_predictions_per_seq, np.maximum(1, wanted))


class Masking:
    """What masking by a policy knows, on arrays and in the graph."""

    def __init__(self, vocabulary, policy, lengths, masked_lm_prob):
        """Args:
        vocabulary: the `Vocabulary` that the examples are made with.
        policy: a `MaskingPolicy`.
        lengths: the `schema.Lengths` of the masked examples.
        masked_lm_prob: share of a sequence's tokens, special ones included, to predict.
        """
        self._mask_id = vocabulary.mask_id
        self._vocab_size = len(vocabulary)
        self._policy = policy
        self._length, self._predictions = lengths
        self._budgets = budgets(self._length, masked_lm_prob, self._predictions)
