"""What a search may write, and how it looks for it."""

import dataclasses

from nezha_tf.errors import UserError
from nezha_tf.text.vocabulary import CLS, MASK, PAD, UNK

METHODS = ("beam", "greedy", "sample")
# No reader wants them, and a hypothesis that holds one is seldom the better for it.
BANNED_PIECES = (PAD, UNK, CLS, MASK)


@dataclasses.dataclass(frozen=True, kw_only=True)
class GenerationOptions:
    """The rules of a search.

    A length is a number of pieces, the final [SEP] among them.

    Attributes:
      method: "beam", "greedy" (the likeliest piece at each step) or "sample".
      max_length: most pieces of a target, T. What has not ended by then is cut off there.
      min_length: fewest pieces; before that [SEP] comes only where no other piece may.
      beam_size: hypotheses that beam search follows.
      num_return_sequences: hypotheses returned of each example: at most `beam_size` of "beam",
        any number of "sample", one of "greedy".
      length_penalty: alpha; a hypothesis's score is its log-probability divided by
        ((5 + length) / 6)^alpha (Wu et al., arXiv 1609.08144 §7).
      temperature: of "sample": logits are divided by it.
      top_k: of "sample": only the k likeliest pieces are drawn from; 0 for all.
      top_p: of "sample": only the likeliest pieces that together have this probability are
        drawn from, after temperature and `top_k`.
      no_repeat_ngram_size: n; no hypothesis holds an n-gram twice; 0 for no such rule.
      exempt_pieces: an n-gram that holds one of them may be repeated.
      banned_pieces: pieces that are never written. Leave [UNK] out where a reader is to fill it
        in from the source.

    Raises:
      UserError: a value that makes no sense; the message names it.
    """

    method: str = "beam"
    max_length: int = 64
    min_length: int = 1
    beam_size: int = 4
    num_return_sequences: int = 1
    length_penalty: float = 0.0
    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    no_repeat_ngram_size: int = 0
    exempt_pieces: tuple[str, ...] = ()
    banned_pieces: tuple[str, ...] = BANNED_PIECES

    def __post_init__(self):
        if self.method not in METHODS:
            raise UserError(f"method must be one of {', '.join(METHODS)}, not {self.method!r}")
        for name in ("max_length", "min_length", "beam_size", "num_return_sequences"):
            if getattr(self, name) < 1:
                raise UserError(f"{name} must be at least 1, not {getattr(self, name)}")
        if self.min_length > self.max_length:
            raise UserError(
                f"min_length {self.min_length} is more than max_length {self.max_length}"
            )
        if self.temperature <= 0:
            raise UserError(f"temperature must be above 0, not {self.temperature}")
        if not 0 < self.top_p <= 1:
            raise UserError(f"top_p must be above 0 and at most 1, not {self.top_p}")
        for name in ("top_k", "no_repeat_ngram_size"):
            if getattr(self, name) < 0:
                raise UserError(f"{name} must be at least 0, not {getattr(self, name)}")
        most = {"beam": self.beam_size, "greedy": 1}.get(self.method)
        if most is not None and self.num_return_sequences > most:
            raise UserError(
                f"method {self.method!r} returns at most {most} hypotheses, and "
                f"num_return_sequences is {self.num_return_sequences}"
            )

    @property
    def num_hypotheses(self):
        """How many hypotheses of an example are followed at a time."""
        return self.beam_size if self.method == "beam" else self.num_return_sequences
