"""Tags and entities: against seqeval, conlleval and published taggers on any tags."""

import random

import laws
import pytest
from hypothesis import given
from hypothesis import strategies as st
from seqeval import scheme as schemes
from seqeval.metrics.sequence_labeling import get_entities

from nezha_tf.data.entity_tags import (
    LABEL,
    SCHEMES,
    Entity,
    TagSet,
    entities_of,
    tags_of,
    well_formed,
)
from nezha_tf.util.errors import UserError

LABELS = st.sampled_from(["PER", "LOC", "B-C", "O"]) | st.from_regex(LABEL, fullmatch=True)
THEIRS = {"BIO": schemes.IOB2, "BIOES": schemes.IOBES, "BMES": schemes.IOBES}
SCHEME = st.sampled_from(sorted(SCHEMES))


@st.composite
def entities(draw, max_length=20):
    """Draws (entities that do not overlap, in order; the length of their sequence)."""
    found, end = [], 0
    for gap, width, label in draw(
        st.lists(st.tuples(st.integers(0, 3), st.integers(1, 5), LABELS), max_size=6)
    ):
        if end + gap + width <= max_length:
            found.append(Entity(end + gap, end + gap + width, label))
            end += gap + width
    return found, end + draw(st.integers(0, 3))


def as_seqeval_knows(tags):
    """seqeval does not know M."""
    return [f"I{tag[1:]}" if tag[0] == "M" else tag for tag in tags]


def strict_entities(tags, scheme):
    """Returns the entities as seqeval reads them; in schemes that it lacks, as one reads them."""
    if scheme in THEIRS:
        found = schemes.Tokens(as_seqeval_knows(tags), THEIRS[scheme]).entities
        return [Entity(e.start, e.end, e.tag) for e in found]
    found = []
    if scheme == "BMEO":
        for start, tag in enumerate(tags):
            end = start + 1
            while tag[0] == "B" and tags[end : end + 1] == [f"M-{tag[2:]}"]:
                end += 1
            if tag[0] == "B" and tags[end : end + 1] == [f"E-{tag[2:]}"]:
                found.append(Entity(start, end + 1, tag[2:]))
            elif tag[0] == "B" and end == start + 1:
                found.append(Entity(start, end, tag[2:]))
        return found
    for start, tag in enumerate(tags):
        end = start + 1
        while tag[0] == "B" and end < len(tags) and tags[end] == f"I-{tag[2:]}":
            end += 1
        if tag[0] == "S" or end > start + 1:
            found.append(Entity(start, end, tag[2:]))
    return found


@laws.examples(300)
@given(entities(), SCHEME)
def test_entities_come_back_from_their_tags(values, scheme):
    found, length = values
    tags = tags_of(found, length, scheme)
    assert len(tags) == length
    assert entities_of(tags) == found
    # Another program that reads the tags finds the same entities.
    assert strict_entities(tags, scheme) == found
    labels = {entity.label for entity in found}
    if labels:
        tag_set = TagSet.checked(TagSet.of_labels(labels, scheme).tags, "labels")
        assert tag_set.scheme == scheme and tag_set.labels == labels
        ids = tag_set.ids_of(found, length)
        assert [tag_set.tags[index] for index in ids] == tags
        assert tag_set.entities_of(ids) == found


@laws.examples(300)
@given(st.lists(LABELS, min_size=1, max_size=2, unique=True), SCHEME, st.data())
def test_any_tags_are_read_as_seqeval_reads_them(labels, scheme, data):
    """The loose reading, which is conlleval's, and the strict reading of the scheme."""
    tag_set = TagSet.of_labels(labels, scheme)
    ids = data.draw(st.lists(st.integers(0, len(tag_set) - 1), max_size=12))
    tags = [tag_set.tags[index] for index in ids]
    loose = [
        Entity(start, last + 1, label)
        for label, start, last in get_entities(as_seqeval_knows(tags))
    ]
    assert entities_of(tags) == loose
    assert tag_set.entities_of(ids) == strict_entities(tags, scheme)
    # If it is written again, the loose reading is well-formed.
    assert well_formed(tags_of(loose, len(tags), scheme), scheme) == loose


def test_the_tags_of_a_file():
    for scheme, count in (("BIO", 5), ("BIOS", 7), ("BIOES", 9), ("BMEO", 7), ("BMES", 9)):
        tag_set = TagSet.of_labels({"PER", "LOC"}, scheme)
        again = TagSet.checked(tag_set.tags, "task.json")
        assert again.tags == tag_set.tags and again.scheme == scheme
        assert again.labels == {"PER", "LOC"} and len(again) == count
        entities = [(1, 3, "PER"), (3, 4, "LOC")]
        assert again.entities_of(again.ids_of(entities, 6)) == entities
        # A model with these labels is read alike.
        assert TagSet.of_model(tag_set.tags, "m").entities_of(again.ids_of(entities, 6)) == entities
    for tags, message in (
        (["O", "B-LOC"], "the tag I-LOC is missing or duplicate"),
        (["O", "B-LOC", "I-LOC", "I-LOC"], "the tag I-LOC is missing or duplicate"),
        (["O", ""], "the label '' is no tag of entities"),
        (["O", "LOC"], "the label 'LOC' is no tag of entities"),
        (["O", "B-LOC", "I-LOC", "M-LOC"], "the inside of entities has both I- and M-"),
    ):
        with pytest.raises(UserError, match=f"task.json: {message}"):
            TagSet.checked(tags, "task.json")


CLUENER = ["[PAD]", "O", *(f"{letter}-{name}" for name in ("address", "book") for letter in "BI")]


@pytest.mark.parametrize(
    "labels, tags, expected",
    [
        # uer's tagger: padding is O, and an entity that does not begin as one counts for nothing.
        (CLUENER, "B-book I-book [PAD] B-address O I-book", [(0, 2, "book"), (3, 4, "address")]),
        # BERT-NER's: the rest of a word, and the ends of the text.
        (
            ["B-PER", "I-PER", "O", "X", "[CLS]", "[SEP]"],
            "[CLS] B-PER X B-PER I-PER [SEP]",
            [(1, 2, "PER"), (3, 5, "PER")],
        ),
        (["<pad>", "O", "S-A", "B-A", "E-A"], "B-A E-A <pad> S-A", [(0, 2, "A"), (3, 4, "A")]),
        # Words without kinds, with and without tokens that are in none.
        (["B", "I"], "I I B B I", [(0, 2, ""), (2, 3, ""), (3, 5, "")]),
        (["B", "M", "E", "S"], "S B M E B E", [(0, 1, ""), (1, 4, ""), (4, 6, "")]),
        (["O", "B", "I"], "B I O I B", [(0, 2, ""), (4, 5, "")]),
        # BMES and BILOU are BIOES with other letters.
        (["O", "B-A", "M-A", "E-A", "S-A"], "B-A M-A E-A S-A M-A", [(0, 3, "A"), (3, 4, "A")]),
        (["O", "B-A", "I-A", "L-A", "U-A"], "B-A I-A L-A U-A I-A", [(0, 3, "A"), (3, 4, "A")]),
        # A B- only between neighbours (IOB1), or none: neighbours are one entity.
        (["O", "I-A", "I-C", "B-C"], "I-A I-A O I-C B-C", [(0, 2, "A"), (3, 4, "C"), (4, 5, "C")]),
        (["PER", "LOC", "O"], "PER PER LOC O PER", [(0, 2, "PER"), (2, 3, "LOC"), (4, 5, "PER")]),
    ],
)
def test_labels_of_published_models(labels, tags, expected):
    tag_set = TagSet.of_model(labels, "config.json")
    assert tag_set.tags == labels and tag_set.labels >= {entity[2] for entity in expected}
    assert tag_set.entities_of([labels.index(tag) for tag in tags.split()]) == expected
    assert len(tag_set.ids_of([], 3)) == 3  # of a text without entities, to predict


def test_labels_that_are_no_tags():
    for labels, odd in (
        (["A", "Caa", "I", "Na"], "A"),  # parts of speech, one of which is spelt as a tag
        (["B-NOUN", "I-NOUN", "VERB", "X"], "VERB"),
        (["LABEL_0", "LABEL_1"], "LABEL_0"),
        (["O", "B-A", "A B"], "A B"),
    ):
        with pytest.raises(UserError) as error:
            TagSet.of_model(labels, "config.json")
        message = f"config.json: the label {odd!r} is no tag of entities ("
        assert str(error.value).startswith(message)
        assert "nezha_tf.load gives the scores" in str(error.value)


def test_words_and_entities_are_read_as_ckip_transformers_reads_them():
    """Against its rules, as loops over each sequence (`CkipWordSegmenter`, `CkipNerChunker`)."""
    rng = random.Random(0)
    names = ["O", *(f"{letter}-{name}" for name in ("ORG", "LAW") for letter in "BIES")]
    for _ in range(500):
        tags = rng.choices(["B", "I"], k=rng.randrange(9))
        starts = [i for i, tag in enumerate(tags) if tag == "B" or i == 0]
        words = list(zip(starts, [*starts[1:], len(tags)], strict=False))
        found = TagSet.of_model(["B", "I"], "").entities_of([int(tag == "I") for tag in tags])
        assert [entity[:2] for entity in found] == words
        ids = rng.choices(range(len(names)), k=rng.randrange(9))
        assert TagSet.of_model(names, "").entities_of(ids) == chunks([names[i] for i in ids])


def chunks(tags):
    found, begun, label = [], 0, None
    for place, tag in enumerate(tags):
        letter, _, name = tag.partition("-")
        if letter == "S":
            found.append((place, place + 1, name))
        if letter == "E" and label == name:
            found.append((begun, place + 1, name))
        if letter == "B":
            begun, label = place, name
        elif letter != "I" or label != name:
            label = None
    return found
