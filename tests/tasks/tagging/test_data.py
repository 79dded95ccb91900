"""Entities by characters and by tokens, of any text, whole and in windows."""

import laws
import numpy as np
import pytest
import tensorflow as tf
from any_texts import texts
from hypothesis import example, given
from hypothesis import strategies as st

from nezha_tf.data.entity_files import Sentence
from nezha_tf.data.entity_tags import Entity, TagSet
from nezha_tf.serving.text_reader import TextReader
from nezha_tf.serving.windows import windows_on
from nezha_tf.tasks.tagging.data import Unit, WindowedSentences, to_characters, to_units, units_of
from nezha_tf.text.tokenization import FullTokenizer
from nezha_tf.text.vocabulary import SPECIAL_TOKENS, Vocabulary

TAGS = {scheme: TagSet.of_labels({"PER", "LOC"}, scheme) for scheme in ("BIO", "BIOES")}
LABELS = st.sampled_from(("LOC", "PER"))


@pytest.fixture(scope="module")
def readers(vocabulary):
    # The tokens of a syllable; the last one extends beyond it.
    more = Vocabulary([*vocabulary.tokens, "\u1112", "##\u1161", "##\u11ab", "##\u11aba"])
    tokenizers = {
        case: FullTokenizer(vocabulary=more, do_lower_case=case) for case in (True, False)
    }
    return {case: TextReader(tokenizer) for case, tokenizer in tokenizers.items()}


def in_units(reader, text):
    """Returns (list of the units of a text, the places of their first tokens)."""
    units, _ = units_of(reader.tokens(tf.constant([text])))
    pairs = zip(units.starts.numpy().tolist(), units.ends.numpy().tolist(), strict=True)
    return [Unit(*pair) for pair in pairs], units.places.numpy().tolist()


@st.composite
def sentences(draw):
    text = draw(texts(max_parts=10).filter(bool))
    places = sorted(draw(st.sets(st.integers(0, min(len(text), 60)), max_size=8)))
    pairs = zip(places[::2], places[1::2], strict=False)
    return Sentence(text, [Entity(start, end, draw(LABELS)) for start, end in pairs])


def units_by_definition(reader, text):
    """Returns groups of tokens that share characters: (first token, first character, end)."""
    groups, tokens = [], reader.tokens(tf.constant([text]))
    spans = zip(tokens.starts.values.numpy(), tokens.ends.values.numpy(), strict=True)
    for number, (start, end) in enumerate(spans):
        characters = {*range(start, end)}
        if groups and groups[-1][1] & characters:
            groups[-1][1].update(characters)
        else:
            groups.append((number, characters))
    return [(number, min(found), max(found) + 1) for number, found in groups]


@laws.examples(50)
@given(sentence=sentences(), case=st.booleans())
@example(sentence=Sentence("한a", [Entity(1, 2, "PER")]), case=True)
def test_an_entity_takes_the_units_that_hold_its_characters(readers, sentence, case):
    units, places = in_units(readers[case], sentence.text)
    found = [(place, *unit) for place, unit in zip(places, units, strict=True)]
    assert found == units_by_definition(readers[case], sentence.text)
    taken = set()
    found = to_units(sentence.entities, units)
    for entity, on_units in zip(sentence.entities, found, strict=True):
        held = {*range(entity.start, entity.end)}
        own = [n for n, u in enumerate(units) if held & {*range(u.start, u.end)}]
        own = [number for number in own if number not in taken]
        taken.update(own)
        if not own:
            assert on_units is None
            continue
        assert on_units == Entity(own[0], own[-1] + 1, entity.label)
        assert own == [*range(own[0], own[-1] + 1)]
        back = to_characters(on_units, units)
        assert back == Entity(units[own[0]].start, units[own[-1]].end, entity.label)


@laws.examples(25)
@given(
    written=st.lists(sentences(), min_size=1, max_size=3),
    case=st.booleans(),
    scheme=st.sampled_from(("BIO", "BIOES")),
    data=st.data(),
)
def test_tags_of_windows_joined_are_those_of_the_whole(readers, written, case, scheme, data):
    """A model predicts other tags in each window; each unit's tag comes from one window."""
    tag_set, reader = TAGS[scheme], readers[case]
    size = data.draw(st.integers(1, 9))
    stride = data.draw(st.integers(1, size))
    examples = WindowedSentences(written, reader, tag_set, size + 2, stride)
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    lengths = [len(ids) for ids in examples.arrays["input_ids"]]
    outputs = {
        "tag_ids": [rng.integers(0, len(tag_set), length) for length in lengths],
        "probabilities": [rng.random(length) for length in lengths],
    }
    found, first = examples.entities(outputs), 0
    for sentence, entities in zip(written, found, strict=True):
        units, tokens = in_units(reader, sentence.text)
        count = reader.ids([sentence.text]).row_lengths()
        windows = windows_on(count, size, stride, is_last_full=True)
        rows = np.zeros(len(tokens), int)
        best = windows.best(rows, np.array(tokens, int), size, stride).numpy()
        said = []
        for token, window in zip(tokens, best, strict=True):
            place = token - int(windows.starts[window]) + 1
            said.append([outputs[name][first + window][place] for name in outputs])
        expected = [
            (units[e.start].start, units[e.end - 1].end, e.label, min(p for _, p in part))
            for e in tag_set.entities_of([tag for tag, _ in said])
            for part in [said[e.start : e.end]]
        ]
        assert [tuple(entity) for entity in entities] == expected
        ends = [0, *(entity.end for entity in entities)]
        assert all(e.start >= end for e, end in zip(entities, ends, strict=False))
        first += int(windows.counts[0])
    assert first == len(lengths)
    # With the first windows only, just the complete sentences count.
    count = data.draw(st.integers(0, first))
    complete = examples.entities({name: values[:count] for name, values in outputs.items()})
    assert complete == found[: len(complete)]


@laws.examples(25)
@given(
    written=st.lists(sentences(), min_size=1, max_size=3),
    case=st.booleans(),
    scheme=st.sampled_from(("BIO", "BIOES")),
    size=st.integers(1, 9),
    data=st.data(),
)
def test_entities_that_are_learnt_come_back(readers, written, case, scheme, size, data):
    """Except those that are reported as lost, and those moved to the bounds of their tokens."""
    stride = data.draw(st.integers(1, size))
    examples = WindowedSentences(written, readers[case], TAGS[scheme], size + 2, stride)
    arrays = examples.arrays
    assert all(len(ids) <= size + 2 for ids in arrays["input_ids"])
    probabilities = [np.ones(len(ids)) for ids in arrays["input_ids"]]
    found = examples.entities({"tag_ids": arrays["label_ids"], "probabilities": probabilities})
    odd = [(id(s), e) for s, e in examples.moved + examples.lost]
    lost = [(id(s), e) for s, e in examples.lost]
    for sentence, entities in zip(written, found, strict=True):
        exact = {e for e in sentence.entities if (id(sentence), e) not in odd}
        assert exact <= {e.entity for e in entities}
        kept = [e for e in sentence.entities if (id(sentence), e) not in lost]
        assert [e.label for e in entities] == [e.label for e in kept]


def test_rules_by_hand():
    tokens = [*SPECIAL_TOKENS, *"中国北京abc", "ab", "##c"]
    reader = TextReader(FullTokenizer(vocabulary=Vocabulary(tokens)))

    def there_and_back(text, *entities):
        units, _ = in_units(reader, text)
        found = to_units([Entity(*e) for e in entities], units)
        return [tuple(to_characters(entity, units)) for entity in found if entity]

    # A word of two tokens, ab ##c, is two units; an entity inside the first one grows.
    assert there_and_back("北 abc京", (2, 4, "LOC")) == [(2, 4, "LOC")]
    assert there_and_back("北 abc京", (3, 4, "LOC")) == [(2, 4, "LOC")]
    # The first of two entities in one unit gets it, the second one gets the rest.
    assert there_and_back("ab", (0, 1, "LOC"), (1, 2, "PER")) == [(0, 2, "LOC")]
    assert there_and_back("ab京", (0, 1, "LOC"), (1, 3, "PER")) == [(0, 2, "LOC"), (2, 3, "PER")]
    # White space between the tokens of an entity belongs to it, at its ends it does not.
    assert there_and_back("ab 中 ", (0, 5, "LOC")) == [(0, 4, "LOC")]
    assert there_and_back("中 \u200b国", (1, 3, "LOC")) == []
    # A character that no token contains becomes [UNK].
    assert there_and_back("中龘", (1, 2, "PER")) == [(1, 2, "PER")]
