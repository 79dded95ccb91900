"""Searches by their definition: one hypothesis after the other, on a table of logits.

A table is a function from a prefix, a tuple of tokens, to float32 [V], the logits of the next
token; `size` is the number of tokens of the vocabulary.
"""

import functools
import itertools

import numpy as np
from generation_models import SEP, vocabulary_of
from scipy.special import log_softmax


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


def log_probs_of(table, options):
    """Returns two functions of a prefix to the log-probabilities of the next token, float64 [V].

    The first is of the model, the second has the repetition penalty, by which searches choose.
    """

    def of_choice(prefix):
        logits = table(prefix).astype(float)
        for token in set(prefix):
            factor = options.repetition_penalty
            logits[token] = logits[token] / factor if logits[token] > 0 else logits[token] * factor
        return log_softmax(logits)

    of_model = functools.cache(lambda prefix: log_softmax(table(prefix).astype(float)))
    return of_model, functools.cache(of_choice)


def penalty(length, options):
    return ((5 + length) / 6) ** options.length_penalty


def every_target(table, options, size):
    """Yields (score, log-probability, tokens) of all targets that the rules allow."""
    of_model, of_choice = log_probs_of(table, options)
    running = [((), 0.0, 0.0)]
    for length in range(1, options.max_length + 1):
        steps = [
            ((*prefix, token), total + of_choice(prefix)[token], own + of_model(prefix)[token])
            for prefix, total, own in running
            for token in next_tokens(prefix, options, size)
        ]
        running = [step for step in steps if step[0][-1] != SEP]
        ended = [step for step in steps if step[0][-1] == SEP]
        ended += running if length == options.max_length else []
        divisor = penalty(length, options)
        yield from ((total / divisor, own, tokens) for tokens, total, own in ended)


def plain_beam_search(table, options, size):
    """Beam search one hypothesis after the other, to the maximum length whatever happens."""
    _, of_choice = log_probs_of(table, options)
    running, ended = [(0.0, ())], []
    for length in range(1, options.max_length + 1):
        steps = [
            (total + of_choice(prefix)[token], (*prefix, token))
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
    functions = [log_probs_of(table, options) for table in tables]
    for example, score, log_prob, tokens in outputs(found):
        totals, length = np.zeros(2), len(tokens)
        for place, token in enumerate(tokens):
            assert token in next_tokens(tokens[:place], options, size)
            totals += [function(tokens[:place])[token] for function in functions[example]]
        assert SEP not in tokens[:-1] and (tokens[-1] == SEP or length == options.max_length)
        total, of_choice = totals
        np.testing.assert_allclose(log_prob, total, atol=1e-4)
        ranked = of_choice if options.method == "beam" else total
        np.testing.assert_allclose(score, ranked / penalty(length, options), rtol=1e-5, atol=1e-4)
    assert (found.scores[:, 1:] <= found.scores[:, :-1]).all()
