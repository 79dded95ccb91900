"""Searches by their definition: one hypothesis after the other, on a table of probabilities.

A table is a function from a prefix, a tuple of tokens, to float32 [V], the log-probabilities of the
next token; `size` is the number of tokens of the vocabulary.
"""

import itertools

import numpy as np
from generation_models import SEP, vocabulary_of


def has_repeat(tokens, size, exempt):
    """Whether an n-gram without an exempt token is there twice."""
    ngrams = [tokens[i : i + size] for i in range(len(tokens) - size + 1)]
    ngrams = [ngram for ngram in ngrams if not set(ngram) & exempt]
    return bool(size) and len({*ngrams}) < len(ngrams)


def next_tokens(prefix, options, size):
    """Returns the tokens that may follow a prefix, by the rules as the options tell them."""
    vocabulary = vocabulary_of(size)
    banned = {*vocabulary.ids_of(options.banned_tokens), SEP}
    exempt = {*vocabulary.ids_of(options.exempt_tokens)}
    others = [
        token
        for token in range(size)
        if token not in banned
        and not has_repeat((*prefix, token), options.no_repeat_ngram_size, exempt)
    ]
    may_end = len(prefix) + 1 >= options.min_length or not others
    return others + [SEP] * may_end


def penalty(length, options):
    return ((5 + length) / 6) ** options.length_penalty


def every_target(table, options, size):
    """Yields (score, log-probability, tokens) of all targets that the rules allow."""
    running = [((), 0.0)]
    for length in range(1, options.max_length + 1):
        steps = [
            ((*prefix, token), total + float(table(prefix)[token]))
            for prefix, total in running
            for token in next_tokens(prefix, options, size)
        ]
        running = [step for step in steps if step[0][-1] != SEP]
        ended = [step for step in steps if step[0][-1] == SEP]
        ended += running if length == options.max_length else []
        yield from ((total / penalty(length, options), total, tokens) for tokens, total in ended)


def plain_beam_search(table, options, size):
    """Beam search one hypothesis after the other, to the maximum length whatever happens."""
    running, ended = [(0.0, ())], []
    for length in range(1, options.max_length + 1):
        steps = [
            (total + float(table(prefix)[token]), (*prefix, token))
            for total, prefix in running
            for token in next_tokens(prefix, options, size)
        ]
        steps.sort(reverse=True)
        likely, divisor = steps[: options.beam_size], penalty(length, options)
        ended += [(total / divisor, tokens) for total, tokens in likely if tokens[-1] == SEP]
        running = [step for step in steps if step[1][-1] != SEP][: options.beam_size]
    ended += [(total / divisor, tokens) for total, tokens in running]
    return sorted(ended, reverse=True)[: options.num_return_sequences]


def outputs(found):
    """Yields (example, score, log-probability, tokens) of the hypotheses that there are."""
    for example, row in itertools.product(*map(range, found.lengths.shape)):
        length = found.lengths[example, row]
        if not length:
            assert found.scores[example, row] == -np.inf and not found.ids[example, row].any()
        if length:
            assert not found.ids[example, row, length:].any()
            tokens = tuple(found.ids[example, row, :length].tolist())
            yield example, found.scores[example, row], found.log_probs[example, row], tokens


def assert_keeps_the_rules(found, tables, options, size):
    """Asserts of each output what must hold of it by itself."""
    for example, score, log_prob, tokens in outputs(found):
        total, length = 0.0, len(tokens)
        for place, token in enumerate(tokens):
            assert token in next_tokens(tokens[:place], options, size)
            total += float(tables[example](tokens[:place])[token])
        assert SEP not in tokens[:-1] and (tokens[-1] == SEP or length == options.max_length)
        np.testing.assert_allclose(log_prob, total, atol=1e-4)
        np.testing.assert_allclose(score, total / penalty(length, options), rtol=1e-5, atol=1e-4)
    assert (found.scores[:, 1:] <= found.scores[:, :-1]).all()
