"""What is masked together: the policies as data, for arrays of NumPy and for the graph alike.

A policy says what a unit is and how long the run of units is that an anchor draws. The rest is
common to all: the units of a sequence are shuffled, each is an anchor in turn, and a run that
would overrun the budget or touch what is already chosen is passed over. No unit holds or
crosses a special piece, and no run does.
"""

import dataclasses

import numpy as np

from nezha_tf.errors import UserError

# In the place of a policy's name: the records are masked when they are read.
UNMASKED = "none"
DEFAULT_MASKED_LM_PROB = 0.15

# What stands in the place of a predicted piece (BERT, arXiv 1810.04805 §3.1); the rest is kept.
MASKED_SHARE = 0.8
RANDOM_SHARE = 0.1


@dataclasses.dataclass(frozen=True)
class MaskingPolicy:
    """What is chosen together.

    Attributes:
      of_words: whether a unit is a word, else it is a piece.
      run_shares: float64, the shares of anchors that draw 1, 2, 3 ... units from the anchor on.
      draws_once: whether a run is masked, replaced or kept as a whole, else each piece for itself.
      of_entities: whether an entity of the user's dictionary is one word, whatever is in it.
    """

    of_words: bool = True
    run_shares: tuple[float, ...] = (1.0,)
    draws_once: bool = False
    of_entities: bool = False

    @property
    def run_ends(self):
        """The ends of the runs' shares in [0, 1), float64: a draw of u gives 1 + (ends <= u)."""
        shares = np.array(self.run_shares, np.float64)
        return np.cumsum(shares / shares.sum())[:-1]


def _geometric(p, most):
    """Returns the shares of the lengths 1 to `most` of a geometric distribution cut there."""
    return tuple(p * (1 - p) ** (length - 1) for length in range(1, most + 1))


POLICIES = {
    # NEZHA, arXiv 1909.00204 §3.2.
    "whole_word": MaskingPolicy(),
    # BERT, arXiv 1810.04805 §3.1.
    "token": MaskingPolicy(of_words=False),
    # UniLM, arXiv 1905.03197 §2.3: a bigram or a trigram one time in five, of words here.
    "ngram": MaskingPolicy(run_shares=(0.8, 0.1, 0.1)),
    # SpanBERT, arXiv 1907.10529 §3.1: lengths in words, 3.8 in the mean.
    "span": MaskingPolicy(run_shares=_geometric(0.2, 10), draws_once=True),
    # ERNIE, arXiv 1904.09223 §3.2.2 and §3.2.3: phrases and entities are units; what is in none
    # is masked by words, as NEZHA has it, where ERNIE takes characters.
    "entity": MaskingPolicy(of_entities=True),
}


def replacements(pieces, shares, random_ids, mask_id, where=np.where):
    """Returns what stands in the place of predicted pieces: [MASK], a random one or the same.

    Args:
      pieces: int [...], those that stood there.
      shares: float [...], random numbers in [0, 1).
      random_ids: int [...], random pieces.
      mask_id: the id of [MASK].
      where: `np.where`, or `tf.where` in the graph.
    """
    found = where(shares < MASKED_SHARE + RANDOM_SHARE, random_ids, pieces)
    return where(shares < MASKED_SHARE, mask_id, found)


def check_share(masked_lm_prob):
    """Raises a `UserError` where a share of predicted pieces is none, as every example has one."""
    if not 0 < masked_lm_prob <= 1:
        raise UserError(
            f"--masked_lm_prob={masked_lm_prob} must be above 0 and at most 1; at least one piece "
            "of each example is predicted, whatever the share"
        )


def budgets(max_seq_length, masked_lm_prob, max_predictions_per_seq):
    """Returns how many pieces of a sequence are predicted at most, by its length.

    Args:
      max_seq_length: the longest length T, special pieces counted.
      masked_lm_prob: share of the sequence that is predicted.
      max_predictions_per_seq: bound on the predictions.

    Returns:
      int32 [T + 1]; halves are rounded to even numbers, as in the originals.
    """
    wanted = np.rint(np.arange(max_seq_length + 1) * masked_lm_prob).astype(np.int32)
    return np.minimum(max_predictions_per_seq, np.maximum(1, wanted))
