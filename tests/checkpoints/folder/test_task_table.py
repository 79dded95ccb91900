"""The table of tasks: everything that its rows name exists; kinds of models in checkpoints."""

import pytest

from nezha_tf.checkpoints.kinds import kind_of, kind_of_architecture, kinds, task_of
from nezha_tf.serving.page import all_tabs

LABELS = ("output_weights", "output_bias")
BODY = ("bert/embeddings/word_embeddings",)
POOLER = ("bert/pooler/dense/kernel",)
MASKED_LM = ("cls/predictions/output_bias", "cls/predictions/transform/dense/kernel")


def test_an_export_belongs_to_one_tab():
    outputs = [names for tab in all_tabs() for names in tab.outputs]
    assert not [(a, b) for a in outputs for b in outputs if a < b]


@pytest.mark.parametrize(
    ("heads", "said", "expected"),
    (
        ((), None, "encoder"),
        ((), "classification", "encoder"),
        (POOLER, None, "encoder"),
        (MASKED_LM, None, "masked_lm"),
        (MASKED_LM, "pretraining", "masked_lm"),
        (("cls/seq_relationship/output_bias",), None, "pretraining"),
        ((*MASKED_LM, "cls/seq_relationship/output_bias"), "masked_lm", "pretraining"),
        ((*MASKED_LM, "query_stream/embedding"), None, "permutation"),
        ((*LABELS, *POOLER), None, "classification"),
        (LABELS, None, "tagging"),
        (LABELS[1:], None, "tagging"),
        (LABELS, "classification", "classification"),
        ((*LABELS, *POOLER), "tagging", "tagging"),
        ((*LABELS, *POOLER), "crf_tagging", "tagging"),
        ((*LABELS, *POOLER, "crf/transitions"), "tagging", "crf_tagging"),
        (("crf/transitions",), None, "crf_tagging"),
        (("cls/squad/output_weights", *POOLER), None, "reading_comprehension"),
        (("cls/squad/output_weights", *MASKED_LM), None, "reading_comprehension"),
    ),
)
def test_the_kind_of_a_checkpoint(heads, said, expected):
    names = {*BODY, *heads, "global_step"}
    assert kind_of(names, said and kinds()[said]).name == expected


def test_kinds_by_the_classes_of_transformers():
    """transformers' classes for BERT that we also have, and others."""
    for name, expected in (
        ("BertForPreTraining", "pretraining"),
        ("BertForMaskedLM", "masked_lm"),
        ("BertForSequenceClassification", "classification"),
        ("NezhaForTokenClassification", "tagging"),
        ("NezhaForQuestionAnswering", "reading_comprehension"),
        ("BertModel", "encoder"),
        ("BertForMultipleChoice", "multiple_choice"),
        ("BertForNextSentencePrediction", None),
        ("", None),
    ):
        kind = kind_of_architecture(name)
        assert (kind and kind.name) == expected
    assert task_of(kinds()["crf_tagging"]) == "tagging"
    assert task_of(kinds()["encoder"]) is None
