"""Laws of searches: enumeration and rules under any settings, on tables of random logits."""

import itertools

import laws
import numpy as np
import tensorflow as tf
from generation_models import SEP, vocabulary_of
from hypothesis import given
from hypothesis import strategies as st
from plain_search import (
    assert_keeps_the_rules,
    every_target,
    has_repeat,
    log_probs_of,
    next_tokens,
    outputs,
    plain_beam_search,
)

from nezha_tf.generation.options import GenerationOptions
from nezha_tf.generation.search import BeamSearch, Rules, Sampling

ROWS = 8  # of the model; the vocabulary may have fewer tokens
LENGTH = 4


class Table:
    """A model without a network: logits drawn anew for each prefix."""

    def __init__(self, seed, scale, bias):
        """The bias is that of [SEP]."""
        self._seed, self._scale, self._known = seed, scale, {}
        self._bias = bias * (np.arange(ROWS) == SEP)

    def __call__(self, prefix):
        """Returns float32 [V]: of each token after a prefix, a tuple of tokens."""
        if prefix not in self._known:
            rng = np.random.default_rng([self._seed, len(prefix), *prefix])
            logits = rng.normal(size=ROWS) * self._scale + self._bias
            self._known[prefix] = logits.astype(np.float32)
        return self._known[prefix]


def searched(search, tables, max_length):
    """Runs a search as `Generator` does, an example for each table; returns `Generated`."""

    def logits(sequences, length):
        rows = [
            [table(tuple(row[:length].tolist())) for row in rows]
            for table, rows in zip(tables, np.asarray(sequences), strict=True)
        ]
        return tf.constant(rows)

    state = search.start(len(tables))
    for length in range(max_length):
        if length and search.is_done(state):
            break
        state, _ = search.advance(state, logits(state.sequences, length))
    found = search.result(state)
    return type(found)(*(part.numpy() for part in found))


TOKENS = [f"p{index}" for index in range(5, ROWS)]
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[MASK]"]


@st.composite
def settings(draw, **fixed):
    """Returns (`GenerationOptions`, tokens of the vocabulary) of any rules that are not fixed."""
    size = draw(st.integers(7, ROWS))
    max_length = draw(st.integers(1, LENGTH))
    # Seldom a special token that may be written: then there is more to enumerate.
    banned = draw(st.sets(st.sampled_from(SPECIAL), max_size=1).map(set(SPECIAL).difference))
    tokens = st.sets(st.sampled_from(TOKENS[: size - 5]), max_size=2)
    values = {
        "max_length": max_length,
        "min_length": draw(st.integers(1, max_length)),
        "length_penalty": draw(st.sampled_from((0.0, 0.6, 1.0, 2.0, -1.0))),
        "repetition_penalty": draw(st.sampled_from((1.0, 1.2, 5.0))),
        "no_repeat_ngram_size": draw(st.integers(0, 3)),
        "exempt_tokens": tuple(sorted(draw(tokens))),
        "banned_tokens": tuple(sorted(banned | draw(tokens))),
    }
    return GenerationOptions(**{**values, **fixed}), size


SCALES, BIASES = st.sampled_from((0.3, 1.0, 3.0)), st.sampled_from((0.0, 2.0))
TABLES = st.builds(Table, st.integers(0, 2**32), SCALES, BIASES)


@laws.examples(40)
@given(settings(beam_size=320, num_return_sequences=6), st.lists(TABLES, min_size=1, max_size=2))
def test_a_beam_as_wide_as_all_hypotheses_finds_the_best(values, tables):
    options, size = values
    search = search_of(options, size)
    found = searched(search, tables, options.max_length)
    assert_keeps_the_rules(found, tables, options, size)
    for example, table in enumerate(tables):
        expected = sorted(every_target(table, options, size), reverse=True)[:6]
        rows = [row[1:] for row in outputs(found) if row[0] == example]
        assert len(rows) == len(expected)
        for (score, _, tokens), (best, _, best_tokens) in zip(rows, expected, strict=True):
            np.testing.assert_allclose(score, best, rtol=1e-5, atol=1e-4)
            # Of scores that are one up to rounding either may go first.
            targets = every_target(table, options, size)
            near = {tokens for other, _, tokens in targets if abs(other - best) < 1e-3}
            assert best_tokens in near and tokens in near


def search_of(options, size, seeds=None):
    vocabulary = vocabulary_of(size)
    rules = Rules(options, vocabulary, ROWS)
    if options.method == "beam":
        return BeamSearch(options, rules, vocabulary)
    return Sampling(options, rules, vocabulary, tf.constant(seeds, tf.int32))


# A penalty at which what is long wins although it is unlikely: to stop early must lose nothing.
FAVOURS_LENGTH = {"length_penalty": 4.0, "min_length": 1, "max_length": LENGTH, "beam_size": 1}
BEAMS = st.integers(1, 4).flatmap(lambda n: settings(beam_size=n, num_return_sequences=n))


@laws.examples(70)
@given(BEAMS | settings(**FAVOURS_LENGTH), TABLES)
def test_a_narrow_beam_is_a_plain_search(values, table):
    """The plain search never stops early."""
    options, size = values
    found = searched(search_of(options, size), [table], options.max_length)
    assert_keeps_the_rules(found, [table], options, size)
    expected = plain_beam_search(table, options, size)
    assert [tokens for *_, tokens in outputs(found)] == [tokens for _, tokens in expected]


@laws.examples(70)
@given(settings(method="greedy"), st.lists(TABLES, min_size=1, max_size=3))
def test_greedy_takes_the_likeliest_token_that_may_come(values, tables):
    options, size = values
    search = search_of(options, size, seeds=[0] * len(tables))
    found = searched(search, tables, options.max_length)
    assert_keeps_the_rules(found, tables, options, size)
    for (_, _, _, tokens), table in zip(outputs(found), tables, strict=True):
        _, of_choice = log_probs_of(table, options)
        for place, token in enumerate(tokens):
            prefix = tokens[:place]
            likeliest = max(next_tokens(prefix, options, size), key=of_choice(prefix).__getitem__)
            assert token == likeliest


@st.composite
def sampling(draw):
    """Settings of sampling with the choice cut in any way."""
    return draw(
        settings(
            method="sample",
            num_return_sequences=draw(st.integers(1, 5)),
            temperature=draw(st.sampled_from((1e-6, 0.2, 1.0, 3.0, 1e6))),
            top_k=draw(st.integers(0, 9)),
            top_p=draw(st.sampled_from((1e-6, 0.3, 0.7, 1.0))),
        )
    )


@laws.examples(30)
@given(sampling(), st.lists(TABLES, min_size=1, max_size=3), st.integers(0, 2**31 - 4))
def test_samples_keep_the_rules_and_the_cut(values, tables, seed):
    options, size = values
    seeds = [seed + number for number in range(len(tables))]
    found = searched(search_of(options, size, seeds), tables, options.max_length)
    assert_keeps_the_rules(found, tables, options, size)
    rows = list(outputs(found))
    assert len(rows) == len(tables) * options.num_return_sequences
    for example, _, _, tokens in rows:
        for place, token in enumerate(tokens):
            assert token in cut(tables[example], tokens[:place], options, size)
    # What is written for an example depends on its own seed alone.
    alone = searched(search_of(options, size, seeds[-1:]), tables[-1:], options.max_length)
    np.testing.assert_array_equal(alone.ids[0], found.ids[-1])


def cut(table, prefix, options, size):
    """Returns the tokens that may be drawn after a prefix, a little more where it is close."""
    tokens = next_tokens(prefix, options, size)
    _, of_choice = log_probs_of(table, options)
    logits = {token: of_choice(prefix)[token] / options.temperature for token in tokens}
    tokens.sort(key=logits.get, reverse=True)
    tokens = tokens[: options.top_k or ROWS]
    weights = {token: np.exp(logits[token] - logits[tokens[0]]) for token in tokens}
    total = sum(weights[token] for token in tokens)
    before = itertools.accumulate((weights[token] / total for token in tokens), initial=0.0)
    kept = [p for p, share in zip(tokens, before, strict=False) if share < options.top_p + 1e-5]
    return kept


@laws.examples(150)
@given(settings(), st.data())
def test_rules_tell_which_tokens_may_come(values, data):
    """Of hypotheses of any tokens: also of those that no rule would have let come so far."""
    options, size = values
    size_of_ngram = options.no_repeat_ngram_size
    exempt = {*vocabulary_of(size).ids_of(options.exempt_tokens)}
    length = data.draw(st.integers(0, options.max_length - 1))
    ids = st.sampled_from([token for token in range(size) if token != SEP])
    row = st.lists(ids, min_size=LENGTH, max_size=LENGTH)
    rows = data.draw(st.lists(row, min_size=2, max_size=2))
    rules = Rules(options, vocabulary_of(size), ROWS)
    allowed = rules.allowed(tf.constant([rows]), tf.constant(length)).numpy()
    for found, row in zip(np.broadcast_to(allowed, (1, 2, ROWS))[0], rows, strict=True):
        prefix = tuple(row[:length])
        # The definition forbids all that follows a repetition.
        if not has_repeat(prefix, size_of_ngram, exempt):
            assert np.flatnonzero(found).tolist() == sorted(next_tokens(prefix, options, size))
