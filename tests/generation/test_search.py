"""Beam search, greedy decoding and sampling against enumeration, a simple search and counting."""

import itertools
import math

import numpy as np
import pytest
import tensorflow as tf
from generation_models import (
    SEP,
    next_logits,
    random_model,
    random_sources,
    vocabulary_of,
)

from nezha_tf.generation.generator import Generator
from nezha_tf.generation.options import GenerationOptions
from nezha_tf.generation.sampling import gumbel
from nezha_tf.generation.sources import pad_left
from nezha_tf.generation.target_format import TargetFormat
from nezha_tf.util.errors import UserError


def generate(
    model, sources, target_format=None, seed=0, jit_compile=False, vocab_size=None, **options
):
    vocabulary = vocabulary_of(vocab_size or model.config.vocab_size)
    options = GenerationOptions(**options)
    generator = Generator(model, vocabulary, target_format or TargetFormat(), options, jit_compile)
    found = generator(*pad_left(sources, max(map(len, sources)) + 1), seed=seed)
    return type(found)(*(part.numpy() for part in found))


def tokens_of(found, example, row):
    return found.ids[example, row, : found.lengths[example, row]].tolist()


def penalised(log_prob, length, alpha):
    return log_prob / ((5 + length) / 6) ** alpha


def log_softmax(logits):
    logits = logits.astype("float64")
    logits = logits - logits.max(-1, keepdims=True)
    return logits - np.log(np.exp(logits).sum(-1, keepdims=True))


def every_target(model, source, target_format, letters, max_length):
    """Yields (tokens, log-probability) of each target over some letters."""
    sums = {(): 0.0}
    for _ in range(max_length):
        prefixes = list(sums)
        steps = log_softmax(next_logits(model, source, prefixes, target_format))
        longer = {}
        for prefix, step in zip(prefixes, steps, strict=True):
            yield [*prefix, SEP], sums[prefix] + step[SEP]
            longer.update({(*prefix, x): sums[prefix] + step[x] for x in letters})
        sums = longer
    yield from ((list(tokens), total) for tokens, total in sums.items())


def has_repeat(tokens, size, exempt=()):
    ngrams = [tuple(tokens[i : i + size]) for i in range(len(tokens) - size + 1)]
    ngrams = [ngram for ngram in ngrams if not set(ngram) & set(exempt)]
    return len(set(ngrams)) < len(ngrams)


@pytest.mark.parametrize(
    "alpha, target_prediction, mode, rules",
    (
        (0.0, "masked", "seq2seq", {}),
        (0.6, "shift", "seq2seq", {}),
        (2.0, "masked", "left_to_right", {}),
        (-1.0, "shift", "left_to_right", {}),
        (0.6, "masked", "seq2seq", {"min_length": 3}),
        (1.0, "shift", "seq2seq", {"no_repeat_ngram_size": 1, "exempt_tokens": ("p6",)}),
    ),
)
def test_a_wide_beam_finds_the_optimum(alpha, target_prediction, mode, rules):
    """The beam is as wide as the number of all continuations: 4 for each of 27 prefixes."""
    model = random_model(vocab_size=8)
    target_format = TargetFormat(mode=mode, target_prediction=target_prediction)
    sources = random_sources(8, (3, 5))
    options = {"max_length": 4, "beam_size": 108, "num_return_sequences": 6}
    found = generate(model, sources, target_format, length_penalty=alpha, **options, **rules)
    size, exempt = rules.get("no_repeat_ngram_size", 9), (6,) if "exempt_tokens" in rules else ()
    for example, source in enumerate(sources):
        ranked = sorted(
            (
                (penalised(total, len(tokens), alpha), total, tokens)
                for tokens, total in every_target(model, source, target_format, (5, 6, 7), 4)
                if len(tokens) >= rules.get("min_length", 1)
                and not has_repeat(tokens, size, exempt)
            ),
            reverse=True,
        )[:6]
        for row, (score, total, tokens) in enumerate(ranked):
            assert tokens_of(found, example, row) == tokens
            np.testing.assert_allclose(found.scores[example, row], score, atol=1e-5)
            np.testing.assert_allclose(found.log_probs[example, row], total, atol=1e-5)


def plain_beam_search(model, source, target_format, beams, max_length, alpha):
    """Beam search for one hypothesis after another, always to the maximum length."""
    running, ended = [(0.0, [])], []
    for length in range(1, max_length + 1):
        steps = log_softmax(
            next_logits(model, source, [tokens for _, tokens in running], target_format)
        )
        candidates = [
            (total + step[token], [*tokens, token])
            for (total, tokens), step in zip(running, steps, strict=True)
            for token in (SEP, *range(5, model.config.vocab_size))
        ]
        candidates.sort(reverse=True)
        ended += [
            (penalised(total, length, alpha), tokens)
            for total, tokens in candidates[:beams]
            if tokens[-1] == SEP
        ]
        running = [pair for pair in candidates if pair[1][-1] != SEP][:beams]
    ended += [(penalised(total, max_length, alpha), tokens) for total, tokens in running]
    return sorted(ended, reverse=True)[:beams]


@pytest.mark.parametrize(
    "alpha, target_prediction, encoding",
    (
        (0.0, "masked", "functional_relative"),
        (1.0, "shift", "learned_relative"),
        (1.0, "masked", "absolute"),
        (0.6, "shift", "rotary"),
    ),
)
def test_a_narrow_beam_equals_a_plain_search(alpha, target_prediction, encoding):
    """The simple search never stops early, so stopping early must lose nothing."""
    model = random_model(encoding, vocab_size=16, scale=0.4)
    model.masked_lm.output_bias.assign(tf.one_hot(SEP, 16) * 2.0)
    target_format = TargetFormat(target_prediction=target_prediction)
    sources = random_sources(16)
    found = generate(
        model,
        sources,
        target_format,
        max_length=7,
        beam_size=3,
        num_return_sequences=3,
        length_penalty=alpha,
    )
    lengths = set()
    for example, source in enumerate(sources):
        expected = plain_beam_search(model, source, target_format, 3, 7, alpha)
        for row, (score, tokens) in enumerate(expected):
            assert tokens_of(found, example, row) == tokens
            np.testing.assert_allclose(found.scores[example, row], score, atol=1e-5)
            lengths.add(len(tokens))
    assert len(lengths) > 1


def test_a_beam_of_one_is_greedy():
    model, sources = random_model(seed=3), random_sources(lengths=(3, 7, 5, 6))
    one = generate(model, sources, method="beam", beam_size=1, max_length=6)
    greedy = generate(model, sources, method="greedy", max_length=6)
    np.testing.assert_array_equal(one.ids, greedy.ids)
    np.testing.assert_array_equal(one.lengths, greedy.lengths)
    np.testing.assert_allclose(one.scores, greedy.scores, atol=1e-5)
    for example, source in enumerate(sources):
        tokens = []
        while len(tokens) < 6 and tokens[-1:] != [SEP]:
            logits = next_logits(model, source, [tokens], TargetFormat())[0]
            logits[[0, 1, 2, 4]] = -np.inf
            tokens.append(int(logits.argmax()))
        assert tokens_of(greedy, example, 0) == tokens


METHODS = (
    {"method": "beam", "beam_size": 4, "num_return_sequences": 4},
    {"method": "greedy"},
    {"method": "sample", "num_return_sequences": 5, "temperature": 0.7},
)


@pytest.mark.parametrize("options", METHODS)
def test_rules_hold(options):
    """With 25 tokens in the vocabulary and 30 rows in the model."""
    model = random_model(scale=0.5)
    # The model's favourites: banned tokens, no tokens, an early end, p5 and p6. It likes p5 most of
    # all, so that a repetition would be seen.
    wishes = [0, 1, 2, 4, 27, SEP, 5, 6, 7]
    likes = tf.reduce_sum(tf.one_hot(wishes, 30) * 4.0, 0) + 2.0 * tf.one_hot(5, 30)
    model.masked_lm.output_bias.assign(likes)
    found = generate(
        model,
        random_sources(25, lengths=(3, 4, 5, 6, 7, 8)),
        **options,
        vocab_size=25,
        max_length=12,
        min_length=6,
        no_repeat_ngram_size=2,
        exempt_tokens=("p5",),
        banned_tokens=("[PAD]", "[UNK]", "[CLS]", "[MASK]", "p7"),
    )
    repeated_exempt = False
    for example, row in itertools.product(*map(range, found.lengths.shape)):
        tokens = tokens_of(found, example, row)
        assert 6 <= len(tokens) <= 12
        assert SEP not in tokens[:-1] and (tokens[-1] == SEP or len(tokens) == 12)
        assert not set(tokens) & {0, 1, 2, 4, 7} and max(tokens) < 25
        assert not has_repeat(tokens, 2, exempt=(5,))
        assert (found.ids[example, row, len(tokens) :] == 0).all()
        repeated_exempt |= has_repeat(tokens, 2)
    assert repeated_exempt
    assert (np.diff(found.scores, axis=1) <= 0).all()
    if options["method"] == "beam":
        for rows in found.ids:
            assert len(np.unique(rows, axis=0)) == len(rows)


@pytest.mark.parametrize("options", METHODS[::2])
def test_a_hypothesis_that_nothing_may_follow_ends(options):
    """Three letters, none may occur twice, and the minimum length is eight."""
    found = generate(
        random_model(vocab_size=8),
        random_sources(8),
        **options,
        max_length=9,
        min_length=8,
        no_repeat_ngram_size=1,
    )
    assert (found.lengths == 4).all() and (found.ids[..., 3] == SEP).all()


def test_fewer_hypotheses_than_asked_for():
    """One of two letters, or none: there are three targets of at most two tokens."""
    found = generate(
        random_model(vocab_size=7), random_sources(7), max_length=1, num_return_sequences=4
    )
    assert (found.lengths == [[1, 1, 1, 0]] * 3).all()
    assert (found.scores[:, 3] == -np.inf).all() and (found.ids[:, 3] == 0).all()
    assert {tuple(row) for row in found.ids[0, :3, 0:1]} == {(SEP,), (5,), (6,)}


@pytest.mark.parametrize("options", METHODS[::2])
def test_compiled_by_xla_or_not(options):
    model, sources = random_model(), random_sources()
    rules = {"max_length": 8, "no_repeat_ngram_size": 2, "min_length": 3, "seed": 3}
    if options["method"] == "sample":
        rules |= {"top_k": 12, "top_p": 0.9}
    plain, compiled = (
        generate(model, sources, jit_compile=jit_compile, **options, **rules)
        for jit_compile in (False, True)
    )
    np.testing.assert_array_equal(plain.ids, compiled.ids)
    np.testing.assert_allclose(plain.scores, compiled.scores, atol=1e-5)


class CountingDecoder:
    """A decoder that counts its steps."""

    def __init__(self, decoder):
        self.start, self._step = decoder.start, decoder.step
        self.steps = tf.Variable(0)

    def step(self, *arguments):
        self.steps.assign_add(1)
        return self._step(*arguments)


@pytest.mark.parametrize("options", METHODS)
def test_the_loop_ends_when_every_example_is_done(options):
    model = random_model()
    model.masked_lm.output_bias.assign(tf.one_hot(SEP, 30) * 30.0)
    options = GenerationOptions(max_length=40, min_length=3, **options)
    generator = Generator(model, vocabulary_of(30), TargetFormat(), options, jit_compile=False)
    generator._decoder = counting = CountingDecoder(generator._decoder)
    generator(*pad_left(random_sources(), 9))
    # Other hypotheses of a beam may end a little later.
    assert 2 <= counting.steps.numpy() <= (2 if options.method == "greedy" else 6)


@pytest.mark.parametrize(
    "options", ({}, {"temperature": 0.5}, {"top_k": 5}, {"top_p": 0.6}, {"top_k": 8, "top_p": 0.8})
)
def test_frequencies_of_samples(options):
    """4,000 first tokens, by chi-square, against the distribution truncated by hand."""
    from scipy.stats import chisquare

    model, source = random_model(scale=0.4), random_sources()[1]
    probs = np.exp(log_softmax(next_logits(model, source, [[]], TargetFormat())[0]))
    probs[[0, 1, 2, 4]] = 0
    probs = probs ** (1 / options.get("temperature", 1)) / np.sum(
        probs ** (1 / options.get("temperature", 1))
    )
    order = np.argsort(-probs)[: options.get("top_k", 30)]
    before = np.cumsum(probs[order] / probs[order].sum()) - probs[order] / probs[order].sum()
    kept = order[(before < options.get("top_p", 1)) & (probs[order] > 0)]
    expected = np.zeros(30)
    expected[kept] = 4000 * probs[kept] / probs[kept].sum()

    draws = generate(
        model,
        [source] * 40,
        **options,
        method="sample",
        num_return_sequences=100,
        max_length=1,
        seed=5,
    ).ids
    counts = np.bincount(draws.ravel(), minlength=30)
    assert counts.sum() == 4000 and not counts[expected == 0].any()
    rare = expected < 5
    groups = [np.append(x[~rare], x[rare].sum()) for x in (counts, expected)]
    observed, right = (group[groups[1] > 0] for group in groups)
    assert chisquare(observed, right).pvalue > 1e-3


def test_samples_are_those_of_their_seed():
    options = GenerationOptions(method="sample", num_return_sequences=3, max_length=8)
    generator = Generator(
        random_model(), vocabulary_of(30), TargetFormat(), options, jit_compile=False
    )
    sources = pad_left(random_sources(), 8)
    first, same, other = (generator(*sources, seed=seed).ids.numpy() for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, same)
    assert (first != other).any()
    # A row has the seed of its number, whatever stands beside it.
    alone = generator(*(array[2:] for array in sources), seed=3).ids.numpy()
    np.testing.assert_array_equal(alone[0], first[2])


def test_noise_of_seeds_and_steps_is_independent():
    """Gumbel noise has the mean and the deviation that it should; no two draws correlate."""
    seeds = tf.range(3)
    draws = np.concatenate([gumbel((10, 10_000), seeds, tf.constant(b)) for b in range(3)])
    draws = draws.reshape(9, -1)
    np.testing.assert_allclose(draws.mean(axis=1), np.euler_gamma, atol=0.02)
    np.testing.assert_allclose(draws.std(axis=1), np.pi / 6**0.5, atol=0.02)
    assert np.abs(np.corrcoef(draws) - np.eye(9)).max() < 0.02
    assert abs(np.corrcoef(draws[0, :-1], draws[0, 1:])[0, 1]) < 0.02


def test_mistakes_are_named():
    for options, message in (
        ({"method": "beams"}, "method must be one of"),
        ({"beam_size": 2, "num_return_sequences": 3}, "at most 2 hypotheses"),
        ({"min_length": 9, "max_length": 8}, "min_length 9 is more than max_length 8"),
        ({"temperature": 0}, "temperature"),
        ({"temperature": 1e-39}, "temperature must be from 1e-06 to 1000000, not 1e-39"),
        ({"temperature": math.inf}, "temperature"),
        ({"temperature": math.nan}, "temperature"),
        ({"top_p": 1.5}, "top_p"),
        ({"banned_tokens": ("p5", "[SEP]")}, r"\[SEP\] ends each target"),
    ):
        with pytest.raises(UserError, match=message):
            GenerationOptions(**options)
    with pytest.raises(UserError, match="mode must be one of"):
        TargetFormat(mode="right_to_left")
    model = random_model("absolute")
    with pytest.raises(UserError, match=r"7 tokens.*target of 34.*max_position_embeddings 40"):
        generate(model, random_sources(), max_length=34)
    generate(model, random_sources(), max_length=33, method="greedy")
    with pytest.raises(UserError, match=r"segments 5 and 6.*has 6"):
        generate(model, random_sources(), TargetFormat(segment_ids=(5, 6)))
    for name in ("banned_tokens", "exempt_tokens"):
        with pytest.raises(UserError, match="'p30', banned or exempt, is no token of the vocab"):
            generate(model, random_sources(), **{name: ("p5", "p30")})
    with pytest.raises(UserError, match="vocabulary has 31 tokens and the model 30"):
        generate(model, random_sources(), vocab_size=31)
