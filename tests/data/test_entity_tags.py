"""Tags and entities: against seqeval's strict reading and conlleval's on random tags."""

import random

import pytest
from seqeval import scheme as schemes
from seqeval.metrics.sequence_labeling import get_entities

from nezha_tf.data.entity_tags import TagSet, entities_of, tags_of, well_formed
from nezha_tf.errors import UserError


def random_tags(scheme, count=3000):
    rng = random.Random(0)
    tags = TagSet.of_labels({"A", "B-C"}, scheme).tags
    # Twice the probability of continuing with the same label, so that there are long entities.
    for _ in range(count):
        chosen = []
        for _ in range(rng.randrange(9)):
            same = [t for t in tags if chosen and t[2:] == chosen[-1][2:]]
            chosen.append(rng.choice(same if same and rng.random() < 0.5 else tags))
        yield chosen


THEIRS = {"BIO": schemes.IOB2, "BIOES": schemes.IOBES, "BMES": schemes.IOBES}


@pytest.mark.parametrize("scheme, theirs", THEIRS.items())
def test_reading_tags_as_seqeval_and_conlleval(scheme, theirs):
    faulty = 0
    for tags in random_tags(scheme):
        loose = entities_of(tags)
        # seqeval does not know M.
        known = [tag.replace("M-", "I-") for tag in tags]
        assert [(e.label, e.start, e.end - 1) for e in loose] == get_entities(known)
        strict = well_formed(tags, scheme)
        found = schemes.Tokens(known, theirs).entities
        assert [(e.start, e.end, e.label) for e in strict] == [
            (e.start, e.end, e.tag) for e in found
        ]
        # If it is written again, the loose reading is well-formed.
        mended = tags_of(loose, len(tags), scheme)
        assert well_formed(mended, scheme) == loose
        faulty += strict != loose
    assert faulty > 500


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
