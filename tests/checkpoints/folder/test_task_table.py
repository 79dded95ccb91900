"""The table of tasks: everything that its rows name exists; kinds of models in checkpoints."""

import pytest

from nezha_tf.checkpoints.kinds import kind_of, kind_of_architecture, kinds, task_of
from nezha_tf.checkpoints.task_table import TASKS, part
from nezha_tf.demo.exports import Exported
from nezha_tf.serving.predictor import Predictor
from nezha_tf.serving.saved_model import Serving
from nezha_tf.training.task import Task

LABELS = ("output_weights", "output_bias")
BODY = ("bert/embeddings/word_embeddings",)
POOLER = ("bert/pooler/dense/kernel",)
MASKED_LM = ("cls/predictions/output_bias", "cls/predictions/transform/dense/kernel")


@pytest.mark.parametrize("name", TASKS)
def test_what_a_row_names_is_there(name):
    row = TASKS[name]
    for named, base in (
        (row.training, Task),
        (row.serving, Serving),
        (row.predictor, Predictor),
        (row.exported, Exported),
    ):
        found = part(named) if named else None
        assert not isinstance(found, type) or issubclass(found, base)
        ability = getattr(found, "ability", None)
        assert ability is None or TASKS[ability].tab


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
