"""The options of a search: its method and its restrictions."""

import dataclasses

from nezha_tf.config import SEARCH_METHODS
from nezha_tf.text.vocabulary import CLS, MASK, PAD, SEP, UNK
from nezha_tf.util.errors import UserError

# Tokens that readers do not want in a text.
BANNED_TOKENS = (PAD, UNK, CLS, MASK)
# Far beyond these, float32 has no more numbers for the quotients: all tokens would be alike.
LEAST_TEMPERATURE, MOST_TEMPERATURE = 1e-6, 1e6
# Far beyond this, float32 has no more numbers for the products.
MOST_PENALTY = 1e6
_COUNTS = ("max_length", "min_length", "beam_size", "num_return_sequences")


@dataclasses.dataclass(frozen=True, kw_only=True)
class GenerationOptions:
    """The options of a search.

    All lengths are numbers of tokens and include the final [SEP].

    Attributes:
      method: "beam", "greedy" (the most probable token at each step) or "sample".
      max_length: T, the most tokens of a target; hypotheses that have not ended are cut off there.
      min_length: fewest tokens; before that, [SEP] comes only if no other token is allowed.
      beam_size: number of hypotheses in beam search.
      num_return_sequences: number of hypotheses to return for each example: at most `beam_size`
        for "beam", any number for "sample", one for "greedy".
      length_penalty: alpha; a hypothesis's score is its log-probability divided by
        ((5 + length) / 6)^alpha (Wu et al., arXiv 1609.08144 §7).
      temperature: for "sample": the divisor of the logits.
      top_k: for "sample": only the k most probable tokens can be drawn; 0: all.
      top_p: for "sample": only the most probable tokens that together have this probability can
        be drawn, after temperature and `top_k`.
      repetition_penalty: divisor of the positive logits, and factor of the negative ones, of the
        tokens that a hypothesis already has (Keskar et al., arXiv 1909.05858 §4.1), from 1 on; 1:
        off. The tokens of the source or prompt do not count.
      no_repeat_ngram_size: n; no n-gram occurs twice in a hypothesis; 0: off.
      exempt_tokens: n-grams with one of these tokens may be repeated.
      banned_tokens: tokens that are never written. Leave [UNK] out if it will be replaced by
        text from the source.

    Raises:
      UserError: a value is impossible; the message names it.
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
    repetition_penalty: float = 1.0
    no_repeat_ngram_size: int = 0
    exempt_tokens: tuple[str, ...] = ()
    banned_tokens: tuple[str, ...] = BANNED_TOKENS

    def __post_init__(self):
        most = {"beam": self.beam_size, "greedy": 1}.get(self.method, self.num_return_sequences)
        coldest, hottest = LEAST_TEMPERATURE, MOST_TEMPERATURE
        is_warm = coldest <= self.temperature <= hottest
        for name, is_right, bound in (
            ("method", self.method in SEARCH_METHODS, f"one of {', '.join(SEARCH_METHODS)}"),
            *((name, getattr(self, name) >= 1, "at least 1") for name in _COUNTS),
            ("temperature", is_warm, f"from {coldest} to {hottest:.0f}"),
            ("top_p", 0 < self.top_p <= 1, "above 0 and at most 1"),
            ("top_k", self.top_k >= 0, "at least 0"),
            (
                "repetition_penalty",
                1 <= self.repetition_penalty <= MOST_PENALTY,
                f"from 1 to {MOST_PENALTY:.0f}",
            ),
            ("no_repeat_ngram_size", self.no_repeat_ngram_size >= 0, "at least 0"),
        ):
            if not is_right:
                raise UserError(f"{name} must be {bound}, not {getattr(self, name)!r}")
        if self.min_length > self.max_length:
            raise UserError(
                f"min_length {self.min_length} is more than max_length {self.max_length}"
            )
        if SEP in self.banned_tokens:
            raise UserError(f"{SEP} ends each target, so it cannot be banned; leave it out")
        if self.num_return_sequences > most:
            raise UserError(
                f"method {self.method!r} returns at most {most} hypotheses, but "
                f"num_return_sequences is {self.num_return_sequences}"
            )

    @property
    def num_hypotheses(self) -> int:
        """The number of hypotheses of an example that the search extends at a time."""
        return self.beam_size if self.method == "beam" else self.num_return_sequences


def options_of(values, tokenizer):
    """Returns the `GenerationOptions` of a dict of `SearchSettings` and `max_target_length`.

    A `UserError` if a word is not in the vocabulary, or a banned one is not a single token.
    """
    exempt = [
        t for word in values["exempt_words"] for t in _tokens("exempt_words", word, tokenizer)
    ]
    # [UNK] is allowed, because the source often shows what it means.
    banned = [token for token in BANNED_TOKENS if token != UNK]
    for word in values["banned_words"]:
        tokens = _tokens("banned_words", word, tokenizer)
        if len(tokens) != 1:
            raise UserError(
                f"--banned_words: {word!r} has {len(tokens)} tokens ({' '.join(tokens)}), but only "
                "single tokens can be banned"
            )
        banned += tokens
    names = ("beam_size", "num_return_sequences", "length_penalty", "temperature", "top_k", "top_p")
    return GenerationOptions(
        method=values["decoding"],
        max_length=values["max_target_length"],
        min_length=values["min_target_length"],
        # Folders of older runs do not have it.
        repetition_penalty=values.get("repetition_penalty", 1.0),
        no_repeat_ngram_size=values["no_repeat_ngram_size"],
        exempt_tokens=tuple(exempt),
        banned_tokens=tuple(banned),
        **{name: values[name] for name in names},
    )


def _tokens(flag, word, tokenizer):
    """Returns the tokens of a word; an entry of the vocabulary ([UNK], ##s) is one token."""
    if word in tokenizer.vocabulary:
        return [word]
    tokens = tokenizer.tokenize(word)
    if UNK in tokens:  # It stands for every unknown word.
        raise UserError(f"--{flag}: {word!r} is not in the vocabulary; leave it out")
    return tokens
