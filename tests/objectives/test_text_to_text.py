"""Property tests of the objectives that predict next tokens: any texts, checked in plain Python."""

import itertools

import laws
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from text_rows import (
    CLS,
    ENDS,
    FIRST_OF_TEXT,
    LENGTH,
    MASK,
    SEP,
    UNUSED,
    VOCABULARY,
    Record,
    batch_of,
    numbers_of,
    records,
)

from nezha_tf.data import schema
from nezha_tf.objectives.objective import ExampleSettings
from nezha_tf.objectives.table import OBJECTIVES
from nezha_tf.util.errors import UserError

EXAMPLES = ExampleSettings(schema.Lengths(LENGTH, 4), VOCABULARY)
TEXT_TO_TEXT = ("span_corruption", "infilling", "mass", "prefix")
SENTINELS = VOCABULARY.ids_of(UNUSED[::-1])
END_IDS = VOCABULARY.ids_of(ENDS)
# A document ends with [SEP], and with it a sentence.
SENTENCE_ENDS = {*END_IDS, SEP}
ROWS = st.lists(records(), min_size=1, max_size=8)
FULL = Record([FIRST_OF_TEXT + 5] * (LENGTH - 2), [], [1] * (LENGTH - 2), 0, 7)
SINGLE = Record([FIRST_OF_TEXT + 5], [], [1], 0, 7)
SHORT = [Record([FIRST_OF_TEXT + n for n in range(size)], [], [1] * size, 0, 7) for size in (2, 3)]


def corrupted(name, rows, seed, examples=EXAMPLES):
    """Returns a dict of NumPy arrays, the examples of an objective."""
    batch = batch_of(rows)
    for transform in OBJECTIVES[name].transforms(examples):
        batch = transform(batch, numbers_of(rows), seed)
    return {name: values.numpy() for name, values in batch.items()}


def parts_of(batch, row):
    """Returns the source and the target of an example, and asserts that its form is right."""
    ids = batch["input_ids"][row].tolist()
    count = int(batch["input_mask"][row].sum())
    assert batch["input_mask"][row].tolist() == [1] * count + [0] * (LENGTH - count)
    assert not any(ids[count:]) and ids[0] == CLS and ids[count - 1] == SEP
    segments = batch["segment_ids"][row].tolist()
    target = segments.index(5)
    assert segments == [4] * target + [5] * (count - target) + [0] * (LENGTH - count)
    assert ids[target - 1] == SEP
    weights = [0.0] * LENGTH
    if count - target > 1:
        weights[target - 1 : count - 1] = [1.0] * (count - target)
    return ids[1 : target - 1], ids[target : count - 1], weights


def is_stretch(part, whole):
    size = len(part)
    return any(whole[n : n + size] == part for n in range(len(whole) - size + 1))


def is_made_of(tokens, sentences):
    """Whether tokens are what is left of sentences in some order."""
    for number, sentence in enumerate(sentences):
        count = 0
        for token in sentence:
            count += count < len(tokens) and token == tokens[count]
        others = sentences[:number] + sentences[number + 1 :]
        if count == len(tokens) or (count and is_made_of(tokens[count:], others)):
            return True
    return not tokens


def sentences_of(text):
    """Returns the sentences of a text as a list of tuples; ends in a row belong to one."""
    sentences, current = [], []
    for token, following in itertools.zip_longest(text, text[1:]):
        current.append(token)
        if (token in SENTENCE_ENDS and following not in SENTENCE_ENDS) or following is None:
            sentences.append(tuple(current))
            current = []
    return sentences


def check_span_corruption(source, target, text):
    """The target fills the sentinels of the source, and the result is a stretch of the text."""
    spans, count = {}, 0
    for token in target:
        if count < len(SENTINELS) and token == SENTINELS[count]:
            spans[token], count = [], count + 1
        else:
            spans[SENTINELS[count - 1]].append(token)
    assert all(spans.values()) and source[-1] == SENTINELS[count - 1]
    assert [token for token in source if token in SENTINELS] == list(spans)
    filled = [token for part in source for token in spans.get(part, [part])]
    assert is_stretch(filled, text)
    noise = sum(map(len, spans.values()))
    assert noise == max(1, round(len(filled) * 0.15)) and count == max(1, round(noise / 3))


def check_infilling(source, target, text):
    """The target is a stretch; what the source keeps of it is in sentences of any order."""
    assert is_stretch(target, text)
    kept = [token for token in source if token != MASK]
    # Inserted [MASK]s may make it longer than a short text, but not than its place.
    assert len(source) <= (LENGTH - 3) // 2 and MASK in source
    assert is_made_of(kept, sentences_of(target))


def check_mass(source, target, text):
    assert is_stretch(target, text) and len(target) == round(len(source) / 2)
    assert any(
        is_stretch(source[:start] + target + source[start + len(target) :], text)
        for start in range(len(source) - len(target) + 1)
    )


def check_prefix(source, target, text):
    assert source and target and is_stretch(source + target, text)
    assert len(source + target) == min(len(text), LENGTH - 3)


CHECKS = {
    "span_corruption": check_span_corruption,
    "infilling": check_infilling,
    "mass": check_mass,
    "prefix": check_prefix,
}


@pytest.mark.parametrize("name", TEXT_TO_TEXT)
@laws.examples(25)
@given(ROWS, st.integers())
@example([FULL, SINGLE, *SHORT], 0)
def test_sources_and_targets_are_made_of_the_text(name, rows, seed):
    batch = corrupted(name, rows, seed)
    for number, row in enumerate(rows):
        if len(row.text) == 1:
            assert not batch["next_token_weights"][number].any()
            continue
        source, target, weights = parts_of(batch, number)
        assert batch["next_token_weights"][number].tolist() == weights
        CHECKS[name](source, target, row.text)


PARTS = st.sampled_from([[FIRST_OF_TEXT + 5], [FIRST_OF_TEXT + 6], END_IDS[:1], [SEP]])


@laws.examples(40)
@given(st.lists(PARTS, min_size=2, max_size=10), st.data(), st.integers(0, 2**62))
@example([[FIRST_OF_TEXT + 5], END_IDS[:1], [SEP]] * 3, None, 2)
def test_without_noise_infilling_only_permutes_sentences(parts, data, number):
    """Documents of one text end with [SEP], which is no word of its own."""
    text = list(itertools.chain(*parts))
    starts = [int(token != SEP) for token in text]
    if data:
        starts = data.draw(st.lists(st.integers(0, 1), min_size=len(text), max_size=len(text)))
    row = Record(text, [], [1, *starts[1:]], 0, number)
    batch = corrupted("infilling", [row], 0, EXAMPLES._replace(noise_density=0.0))
    source, target = infilled_parts_of(batch)
    assert is_stretch(target, text)
    orders = itertools.permutations(sentences_of(target))
    assert any(source == list(itertools.chain(*order)) for order in orders)


def infilled_parts_of(batch):
    """Returns source and target of the first example; both may have a [SEP] inside."""
    segments, ids = batch["segment_ids"][0].tolist(), batch["input_ids"][0].tolist()
    target, count = segments.index(5), int(batch["input_mask"][0].sum())
    return ids[1 : target - 1], ids[target : count - 1]


@laws.examples(25)
@given(ROWS, st.integers())
@example([FULL, SINGLE], 0)
def test_each_token_of_a_text_predicts_the_next_one(rows, seed):
    batch = corrupted("causal", rows, seed)
    for number, row in enumerate(rows):
        tokens = [CLS, *row.text, SEP]
        rest = [0] * (LENGTH - len(tokens))
        assert batch["input_ids"][number].tolist() == tokens + rest
        assert batch["input_mask"][number].tolist() == [1] * len(tokens) + rest
        assert batch["segment_ids"][number].tolist() == [2] * len(tokens) + rest
        weights = [1.0] * (len(tokens) - 1) + [0.0] + rest
        assert batch["next_token_weights"][number].tolist() == weights


@pytest.fixture(scope="module")
def many():
    """Returns a function that corrupts one text of different tokens 4,000 times."""
    text = list(range(FIRST_OF_TEXT + len(ENDS), FIRST_OF_TEXT + len(ENDS) + 14))
    rows = [Record(text, [], [1] * len(text), 0, number) for number in range(4000)]

    def make(name, **settings):
        batch = corrupted(name, rows, 3, EXAMPLES._replace(**settings))
        return [parts_of(batch, row)[:2] for row in range(len(rows))], text

    return make


def is_near(counts, shares):
    """Whether counts are within 4.5 deviations of what shares let expect."""
    total = sum(counts)
    return all(
        abs(count - total * share) <= 4.5 * (total * share * (1 - share)) ** 0.5 + 1e-9
        for count, share in zip(counts, shares, strict=True)
    )


def test_fragments_are_where_mass_draws_them(many):
    """20 % at the start, 20 % at the end, the rest anywhere; 80/10/10 in the source."""
    pairs, text = many("mass")
    starts = [text.index(target[0]) for _, target in pairs]
    anywhere = 0.6 / 8
    shares = [0.2 + anywhere, *[anywhere] * 6, 0.2 + anywhere]
    assert is_near(np.bincount(starts, minlength=8), shares)
    kinds = [0, 0, 0]
    for (source, target), start in zip(pairs, starts, strict=True):
        for own, token in zip(source[start : start + 7], target, strict=True):
            kinds[0 if own == MASK else 1 if own == token else 2] += 1
    chance = 0.1 / len(VOCABULARY)  # that a random token is [MASK], or the token itself
    assert is_near(kinds, [0.8 + chance, 0.1 + chance, 0.1 - 2 * chance])


def test_splits_are_uniform(many):
    pairs, _ = many("prefix")
    assert is_near(np.bincount([len(source) for source, _ in pairs])[1:], [1 / 13] * 13)


def test_infilling_covers_its_share_of_the_words(many):
    """0.3 of ten words are three; [MASK]s stand where the Poisson distribution puts them."""
    pairs, _ = many("infilling")
    assert {len(target) for _, target in pairs} == {10}
    # A source that is too long, because of inserted [MASK]s, loses its end.
    whole = [source for source, _ in pairs if len(source) < 10]
    lost = [10 - sum(token != MASK for token in source) for source in whole]
    # Spans overlap at times, so fewer words than three may be lost.
    assert max(lost) == 3 and np.mean(lost) > 2.7
    single = sum(source.count(MASK) == 1 for source, _ in pairs) / len(pairs)
    # One [MASK]: the first span has three words or more.
    first = np.exp(-3) * np.array([1, 3, 4.5])
    assert abs(single - (1 - first.sum())) < 0.04
    pairs, _ = many("infilling", noise_density=0.6)
    whole = [source for source, _ in pairs if len(source) < 10]
    assert max(10 - sum(token != MASK for token in source) for source in whole) == 6


def test_every_length_of_a_span_is_as_probable_as_t5_draws_it(many):
    """Half of 12 tokens are noise in two spans: the first has 1 to 5 tokens, each as often."""
    pairs, _ = many("span_corruption", noise_density=0.5)
    first = [target.index(SENTINELS[1]) - 1 for _, target in pairs]
    noise = len(pairs[0][1]) - 2
    assert is_near(np.bincount(first)[1:], [1 / (noise - 1)] * (noise - 1))
    kept = [source.index(SENTINELS[0]) for source, _ in pairs]
    assert len(set(kept)) > 3


def test_too_few_sentinels_are_told():
    examples = EXAMPLES._replace(lengths=schema.Lengths(256, 4))
    with pytest.raises(UserError, match=r"needs 11 sentinels .* only 8 "):
        OBJECTIVES["span_corruption"].transforms(examples)
