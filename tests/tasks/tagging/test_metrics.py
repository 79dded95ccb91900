"""Scores of entities: computed by hand, and seqeval's own for the tags."""

import pytest
from seqeval import scheme as schemes
from seqeval.metrics import f1_score, precision_score, recall_score

from nezha_tf.data.entity_files import Sentence
from nezha_tf.data.entity_tags import Entity, tags_of
from nezha_tf.tasks.tagging.metrics import ALL, measure

SENTENCES = [
    Sentence("甲" * 8, [Entity(0, 2, "PER"), Entity(2, 5, "LOC"), Entity(7, 8, "LOC")]),
    Sentence("乙" * 4, [Entity(0, 4, "ORG")]),
    Sentence("丙" * 3, []),
]
# One right entity, one too short, one with another label, one that does not exist.
FOUND = [
    [Entity(0, 2, "PER"), Entity(2, 4, "LOC"), Entity(7, 8, "PER")],
    [],
    [Entity(1, 2, "PER")],
]


@pytest.mark.parametrize("written, theirs", {"BIO": schemes.IOB2, "BIOES": schemes.IOBES}.items())
def test_scores_by_hand_and_by_seqeval(written, theirs):
    scores = measure(SENTENCES, FOUND)
    assert list(scores) == ["LOC", "ORG", "PER", ALL]
    assert scores["LOC"] == scores["ORG"]._replace(support=2) == (0.0, 0.0, 0.0, 2)
    assert scores["PER"] == pytest.approx((1 / 3, 1.0, 0.5, 1))
    assert scores[ALL] == pytest.approx((1 / 4, 1 / 4, 1 / 4, 4))
    tags = [
        [tags_of(entities, len(s.text), written) for s, entities in zip(SENTENCES, of, strict=True)]
        for of in ([s.entities for s in SENTENCES], FOUND)
    ]
    for function, value in zip(
        (precision_score, recall_score, f1_score), scores[ALL], strict=False
    ):
        assert function(*tags, mode="strict", scheme=theirs) == value


def test_sentences_without_entities():
    assert measure(SENTENCES[2:], [[]]) == {ALL: (0.0, 0.0, 0.0, 0)}
    assert measure(SENTENCES[:1], [[]])[ALL] == (0.0, 0.0, 0.0, 3)
    assert measure(SENTENCES[2:], FOUND[2:])[ALL] == (0.0, 0.0, 0.0, 0)
