"""Beam search, greedy decoding and sampling against enumeration, a simple search and counting."""

import functools
import math

import numpy as np
import pytest
import tensorflow as tf
from generation_models import (
    SEP,
    as_graph,
    next_logits,
    random_model,
    random_sources,
    vocabulary_of,
)
from plain_search import assert_keeps_the_rules, every_target, outputs, plain_beam_search
from scipy.special import log_softmax

from nezha_tf.generation.generator import PART, Generator
from nezha_tf.generation.options import GenerationOptions
from nezha_tf.generation.search import Rules, gumbel
from nezha_tf.generation.sources import pad_left
from nezha_tf.generation.target_format import TargetFormat
from nezha_tf.util.errors import UserError


def generate(
    model, sources, target_format=None, seed=0, jit_compile=False, vocab_size=None, **options
):
    vocabulary = vocabulary_of(vocab_size or model.config.vocab_size)
    options = GenerationOptions(**options)
    generator = Generator(model, vocabulary, target_format or TargetFormat(), options, jit_compile)
    return arrays(generator(*pad_left(sources, max(map(len, sources)) + 1), seed=seed))


def arrays(generated):
    """Returns a `Generated` of NumPy arrays."""
    return type(generated)(*(part.numpy() for part in generated))


def tables_of(model, sources, target_format):
    """Returns the tables of `plain_search`, from full passes over source and prefix."""

    full_pass = as_graph(model)

    def table_of(source):
        return functools.cache(
            lambda prefix: next_logits(full_pass, source, [prefix], target_format)[0]
        )

    return [table_of(source) for source in sources]


def test_a_wide_beam_finds_the_optimum():
    """The beam is as wide as the number of all continuations: 4 for each of 27 prefixes."""
    model, sources = random_model(vocab_size=8), random_sources(8, (3, 5))
    target_format = TargetFormat(mode="left_to_right")
    options = {"max_length": 4, "min_length": 3, "length_penalty": 2.0, "exempt_tokens": ("p6",)}
    options |= {"no_repeat_ngram_size": 2, "beam_size": 108, "num_return_sequences": 6}
    options["repetition_penalty"] = 1.5
    found = generate(model, sources, target_format, **options)
    options, tables = GenerationOptions(**options), tables_of(model, sources, target_format)
    assert_keeps_the_rules(found, tables, options, 8)
    rows = list(outputs(found))
    for example, table in enumerate(tables):
        expected = sorted(every_target(table, options, 8), reverse=True)[:6]
        assert [row[3] for row in rows if row[0] == example] == [row[2] for row in expected]


@pytest.mark.parametrize(
    "alpha, repetition_penalty, target_prediction, encoding",
    ((1.0, 1.0, "masked", "absolute"), (0.6, 2.0, "shift", "functional_relative")),
)
def test_a_narrow_beam_equals_a_plain_search(
    alpha, repetition_penalty, target_prediction, encoding
):
    """The simple search never stops early, so stopping early must lose nothing."""
    model = random_model(encoding, vocab_size=16, scale=0.4)
    model.masked_lm.output_bias.assign(tf.one_hot(SEP, 16) * 2.0)
    target_format = TargetFormat(target_prediction=target_prediction)
    sources = random_sources(16)
    options = {"max_length": 7, "beam_size": 3, "num_return_sequences": 3, "length_penalty": alpha}
    options["repetition_penalty"] = repetition_penalty
    found = generate(model, sources, target_format, **options)
    options, tables = GenerationOptions(**options), tables_of(model, sources, target_format)
    assert_keeps_the_rules(found, tables, options, 16)
    searched = [plain_beam_search(table, options, 16) for table in tables]
    expected = [tokens for rows in searched for _, tokens in rows]
    assert [tokens for *_, tokens in outputs(found)] == expected
    assert len(set(map(len, expected))) > 1


METHODS = (
    {"method": "beam", "beam_size": 4, "num_return_sequences": 4},
    {"method": "greedy"},
    {"method": "sample", "num_return_sequences": 5, "temperature": 0.7},
)


def test_samples_keep_the_rules():
    """With 25 tokens in the vocabulary and 30 rows in the model."""
    model = random_model(scale=0.5)
    # The model's favourites: banned tokens, no tokens, an early end, p5 and p6. It likes p5 most of
    # all, so that a repetition would be seen.
    wishes = [0, 1, 2, 4, 27, SEP, 5, 5, 6, 7]
    model.masked_lm.output_bias.assign(np.bincount(wishes, minlength=30) * 4.0)
    options = METHODS[2] | {"max_length": 6, "min_length": 5, "no_repeat_ngram_size": 2}
    options["banned_tokens"] = ("[PAD]", "[UNK]", "[CLS]", "[MASK]", "p7")
    sources = random_sources(25)
    found = generate(model, sources, vocab_size=25, **options)
    tables = tables_of(model, sources, TargetFormat())
    assert_keeps_the_rules(found, tables, GenerationOptions(**options), 25)
    assert len(list(outputs(found))) == 15


@pytest.mark.parametrize("options", METHODS[::2])
def test_compiled_by_xla_or_not(options):
    model, sources = random_model(), random_sources()
    rules = {"max_length": 5, "no_repeat_ngram_size": 2, "min_length": 3, "seed": 3}
    rules["repetition_penalty"] = 1.5
    if options["method"] == "sample":
        rules |= {"top_k": 12, "top_p": 0.9}
    plain, compiled = (
        generate(model, sources, jit_compile=jit_compile, **options, **rules)
        for jit_compile in (False, True)
    )
    np.testing.assert_array_equal(plain.ids, compiled.ids)
    np.testing.assert_allclose(plain.scores, compiled.scores, atol=1e-5)


def test_repeated_tokens_are_penalized_as_written_down():
    """By hand: positive logits are divided, negative ones multiplied, others stay."""
    options = GenerationOptions(repetition_penalty=2.0, banned_tokens=())
    rules = Rules(options, vocabulary_of(8), 8)
    logits = tf.constant([[[0.0, 0, 0, 0, 0, 3, -3, 1]] * 2])
    sequences = tf.constant([[[5, 6, 7], [7, 7, 5]]])
    of_model, of_choice = rules.next_log_probs(logits, sequences, tf.constant(2))
    np.testing.assert_allclose(of_model, log_softmax(logits, axis=-1), atol=1e-6)
    # The third token is not written yet.
    expected = [[0, 0, 0, 0, 0, 1.5, -6, 1], [0, 0, 0, 0, 0, 3, -3, 0.5]]
    np.testing.assert_allclose(of_choice[0], log_softmax(expected, axis=-1), atol=1e-6)


@pytest.mark.parametrize("options", METHODS)
@pytest.mark.parametrize("max_length", (1, 10))
def test_parts_grow_to_the_whole(options, max_length):
    model, sources = random_model(scale=0.4), random_sources()
    rules = {"max_length": max_length, "min_length": max_length, "repetition_penalty": 1.5}
    options = GenerationOptions(**rules, **options)
    generator = Generator(model, vocabulary_of(30), TargetFormat(), options, jit_compile=False)
    ids, mask = pad_left(sources, 9)
    seeds = tf.constant([3, 4, 5])
    parts = list(generator.in_parts(tf.constant(ids), tf.constant(mask), seeds))
    for found, expected in zip(parts[-1], generator(ids, mask, seed=3), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-5)
    longest = [part.lengths.numpy().max() for part in parts]
    assert longest[:-1] == [1 + PART * number for number in range(1, len(parts))]
    assert len(parts) == (1 if max_length == 1 else 3)
    whole = [tokens for *_, tokens in outputs(arrays(parts[-1]))]
    if options.method != "beam":  # which changes its mind
        for part in parts:
            begun = [tokens for *_, tokens in outputs(arrays(part))]
            assert all(any(t[: len(tokens)] == tokens for t in whole) for tokens in begun)


class CountingDecoder:
    """A decoder that counts its steps."""

    def __init__(self, decoder):
        self.start, self._step = decoder.start, decoder.step
        self.steps = tf.Variable(0)

    def step(self, *arguments):
        self.steps.assign_add(1)
        return self._step(*arguments)


@pytest.mark.parametrize("options", METHODS[:2])
def test_the_loop_ends_when_every_example_is_done(options):
    model = random_model()
    model.masked_lm.output_bias.assign(tf.one_hot(SEP, 30) * 30.0)
    options = GenerationOptions(max_length=40, min_length=3, **options)
    generator = Generator(model, vocabulary_of(30), TargetFormat(), options, jit_compile=False)
    generator._decoder = counting = CountingDecoder(generator._decoder)
    generator(*pad_left(random_sources(), 9))
    # Other hypotheses of a beam may end a little later.
    assert 2 <= counting.steps.numpy() <= (2 if options.method == "greedy" else 6)


@pytest.mark.parametrize("options", ({"temperature": 0.5, "top_k": 5}, {"top_k": 12, "top_p": 0.6}))
def test_frequencies_of_samples(options):
    """4,000 first tokens, by chi-square, against the distribution truncated by hand."""
    from scipy.stats import chisquare

    model, source = random_model(scale=0.4), random_sources()[1]
    probs = np.exp(log_softmax(next_logits(model, source, [[]], TargetFormat())[0].astype(float)))
    probs[[0, 1, 2, 4]] = 0
    probs **= 1 / options.get("temperature", 1)
    probs /= probs.sum()
    order = np.argsort(-probs)[: options.get("top_k", 30)]
    before = np.cumsum(probs[order] / probs[order].sum()) - probs[order] / probs[order].sum()
    kept = order[(before < options.get("top_p", 1)) & (probs[order] > 0)]
    expected = np.zeros(30)
    expected[kept] = 4000 * probs[kept] / probs[kept].sum()

    options |= {"method": "sample", "num_return_sequences": 100, "max_length": 1}
    draws = generate(model, [source] * 40, **options, seed=5).ids
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
        ({"repetition_penalty": 0.9}, "repetition_penalty must be from 1 to 1000000, not 0.9"),
        ({"repetition_penalty": math.nan}, "repetition_penalty"),
        ({"repetition_penalty": math.inf}, "repetition_penalty"),
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
