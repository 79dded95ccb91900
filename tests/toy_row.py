"""A task that the package does not know: its head, its row, and all that the row names.

It is the task of `toy_task` with another head.
"""

import tensorflow as tf
from toy_task import LABELS, ToyTask

from nezha_tf.checkpoints.task_row import NAMES, Head, Kind, Tab, TaskRow
from nezha_tf.modeling.finetuning import NezhaForSequenceClassification
from nezha_tf.serving.signature import Serving, as_graphs
from nezha_tf.serving.text_reader import INPUT_MEANINGS, of_ids, text_spec

NAME, MARKS = "marks", ["first", "second"]
NAME_TABLE_ROW = ("marks/", "marks/", None)
SPECIAL_TOKENS = 2


class NezhaForMarks(NezhaForSequenceClassification):
    """Scores the marks."""

    head_name = "marks"

    def __init__(self, config, max_seq_length=None, layer_mix=False, **kwargs):
        super().__init__(config, LABELS, max_seq_length, layer_mix, **kwargs)


class MarksTask(ToyTask):
    """Trains a `NezhaForMarks`."""

    def task_file_settings(self):
        return {"task": NAME, "marks": MARKS}


MEANINGS = {**INPUT_MEANINGS, "mark": "the likelier mark", "scores": "of each mark"}


class MarksServing(Serving):
    """Finds the mark in each text."""

    meanings = MEANINGS
    about = "Tells which of two marks stands in a text."
    example = 'text=tf.constant(["丂丄"])'

    def __init__(self, folder, model):
        super().__init__(model, folder.tokenizer)
        self._marks = folder.task["marks"]
        self._room = folder.task["max_seq_length"] - SPECIAL_TOKENS

    def signatures(self):
        def of_texts(text):
            return self._found(self._reader.packed(self._reader.ids(text)[:, : self._room]))

        functions = {"serving_default": (of_texts, [text_spec("text")])}
        return as_graphs({**functions, "from_ids": of_ids(self._found)})

    def _found(self, inputs):
        scores = self._model(inputs)
        return {"mark": tf.gather(self._marks, tf.argmax(scores, axis=-1)), "scores": scores}


def marks_tab(tabs, models):
    """Makes the contents of the tab."""

    def find(model, text):
        found = model(text=text)
        return [[[found["mark"], f"{max(found['scores']):.3f}"]]], ""

    box, table = tabs.text_box("Text", "丂丄"), tabs.table("mark", "score")
    tabs.fill_tab(models, "Find", [box], [table], find)


ROW = TaskRow(
    settings={"marks": NAMES},
    kinds=(
        Kind(
            NAME,
            NezhaForMarks,
            (Head("marks/", {"logits": "logits"}, from_pooler=True),),
            arguments=("max_seq_length",),
        ),
    ),
    serving=MarksServing,
    tab=Tab("Marks", marks_tab, ({"mark", "scores"},)),
)
