"""Entities by characters and by tokens, on random texts, whole and in windows."""

import itertools
import random

import numpy as np
import pytest

from nezha_tf.data.entity_files import Sentence
from nezha_tf.data.entity_tags import Entity, TagSet
from nezha_tf.tasks.tagging import data as alignment
from nezha_tf.tasks.tagging.data import WindowedSentences
from nezha_tf.text.tokenization import FullTokenizer
from nezha_tf.text.vocabulary import Vocabulary

# Known and unknown Chinese, Latin, digits, white space, dropped characters, accents, combining
# marks, syllables that decompose, capitals that become longer, kana, and beyond 16 bits.
CHARACTERS = "中国北京龘𠮷abcABC129 \t\u3000\u200b\x00\ufffdéÄe\u0301서울İカー，.-😀"
TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"中国北京abc129，.-e서", "##b", "##c"]
TOKENS += ["##2", "##9", "ab", "##ab", "##e", *map(chr, (0x1109, 0x1165))]
TOKENS += [f"##{chr(code)}" for code in (0x1165, 0x110B, 0x116E, 0x11AF)]
TAGS = TagSet.of_labels({"PER", "LOC"}, "BIO")


@pytest.fixture(scope="module")
def tokenizer():
    return FullTokenizer(vocabulary=Vocabulary(TOKENS))


def random_text(rng, length):
    return "".join(rng.choice(CHARACTERS) for _ in range(length))


def random_entities(rng, length):
    places = sorted(rng.sample(range(length + 1), min(length + 1, 2 * rng.randrange(4))))
    pairs = zip(places[::2], places[1::2], strict=False)
    return [Entity(start, end, rng.choice(("PER", "LOC"))) for start, end in pairs]


def test_there_and_back_on_random_texts(tokenizer):
    rng = random.Random(1)
    kinds = {"exact": 0, "moved": 0, "lost": 0, "shared": 0}
    for _ in range(2000):
        text = random_text(rng, rng.randrange(1, 14))
        tokens = tokenizer.tokenize_with_offsets(text)
        units = alignment.units_of(tokens)
        # Each token is in one unit, and units are contiguous.
        assert [u.token for u in units] == sorted({u.token for u in units})
        assert all(a.end <= b.start for a, b in itertools.pairwise(units))
        covered = {c for u in units for c in range(u.start, u.end)}
        assert covered == {c for token in tokens for c in range(token.start, token.end)}
        kinds["shared"] += len(units) < len(tokens)

        entities = random_entities(rng, len(text))
        on_units = [e for e in alignment.to_units(entities, units) if e]
        assert TAGS.entities_of(TAGS.ids_of(on_units, len(units))) == on_units
        back = {alignment.to_characters(entity, units) for entity in on_units}
        assert len(back) == len(on_units)
        for entity in entities:
            inner = [u for u in units if u.start < entity.end and entity.start < u.end]
            others = [e for e in entities if e != entity]
            if any(u.start < e.end and e.start < u.end for u in inner for e in others):
                continue  # A unit of two entities belongs to the first one.
            if not inner:
                assert not any(b.start < entity.end and entity.start < b.end for b in back)
                kinds["lost"] += 1
                continue
            grown = Entity(inner[0].start, inner[-1].end, entity.label)
            assert grown in back
            # At the ends, only characters without tokens are left out.
            assert not covered & {*range(entity.start, grown.start), *range(grown.end, entity.end)}
            kinds["exact" if grown == entity else "moved"] += 1
    assert min(kinds.values()) > 50, kinds


def test_rules_by_hand(tokenizer):
    def there_and_back(text, *entities):
        units = alignment.units_of(tokenizer.tokenize_with_offsets(text))
        found = alignment.to_units([Entity(*e) for e in entities], units)
        return [tuple(alignment.to_characters(entity, units)) for entity in found if entity]

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


def test_windows_cover_and_show_most():
    rng = random.Random(2)
    for _ in range(300):
        size = rng.randrange(1, 12)
        stride, length = rng.randrange(1, size + 1), rng.randrange(60)
        starts = alignment.window_starts(length, size, stride)
        ends = [min(start + size, length) for start in starts]
        assert starts[0] == 0 and ends[-1] == length and starts == sorted(set(starts))
        assert all(b - a <= stride for a, b in itertools.pairwise(starts))
        best = alignment.best_windows(length, size, starts)
        for place, window in enumerate(best):
            margins = [min(place - s, e - 1 - place) for s, e in zip(starts, ends, strict=True)]
            assert margins[window] == max(margins) >= 0


@pytest.mark.parametrize("max_seq_length, stride", ((6, 2), (6, 4), (9, 3), (60, 30)))
def test_entities_across_windows_are_recovered(tokenizer, max_seq_length, stride):
    """If the learnt tags are taken as predictions, the entities are those of the text."""
    rng = random.Random(3)
    sentences = []
    for _ in range(60):
        text = random_text(rng, rng.randrange(1, 60))
        sentences.append(Sentence(text, random_entities(rng, len(text))))
    sentences.append(Sentence("\x00\t", []))
    examples = WindowedSentences(sentences, tokenizer, TAGS, max_seq_length, stride)
    arrays = examples.arrays
    assert max(map(len, arrays["input_ids"])) == max_seq_length or max_seq_length == 60
    for ids, label_ids, label_mask in zip(
        *(arrays[name] for name in ("input_ids", "label_ids", "label_mask")), strict=True
    ):
        assert (ids[0], ids[-1]) == (2, 3) and len(ids) == len(label_ids) == len(label_mask)
        assert label_mask[0] == label_mask[-1] == 0 and not label_ids[label_mask == 0].any()
    # Predictions for tokens without a tag must not matter.
    outputs = {
        "tag_ids": [
            np.where(mask, ids, rng.randrange(5))
            for ids, mask in zip(arrays["label_ids"], arrays["label_mask"], strict=True)
        ],
        "probabilities": [np.full(len(ids), 0.5) for ids in arrays["input_ids"]],
    }
    found = examples.entities(outputs)
    odd = {(id(sentence), entity) for sentence, entity in examples.moved + examples.lost}
    assert len(found) == len(sentences) and 0 < len(odd) < sum(len(s.entities) for s in sentences)
    for sentence, entities in zip(sentences, found, strict=True):
        right = {entity for entity in sentence.entities if (id(sentence), entity) not in odd}
        moved = [e for s, e in examples.moved if s is sentence]
        assert right <= {e.entity for e in entities} and len(entities) == len(right) + len(moved)
        assert all(e.probability == 0.5 for e in entities)
    # With the first windows only, just the complete sentences count.
    first = {name: values[:20] for name, values in outputs.items()}
    assert examples.entities(first) == found[: len(examples.entities(first))]
