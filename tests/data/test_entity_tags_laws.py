"""Property tests of tags: entities are recovered from them, and seqeval finds the same."""

import laws
from hypothesis import given
from hypothesis import strategies as st
from seqeval import scheme as schemes
from seqeval.metrics.sequence_labeling import get_entities

from nezha_tf.data.entity_tags import LABEL, SCHEMES, Entity, TagSet, entities_of, tags_of

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
