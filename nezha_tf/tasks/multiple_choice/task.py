"""The task of `run_multiple_choice.py`."""

import numpy as np

from nezha_tf.data.lines import BadRows
from nezha_tf.modeling.finetuning import NO_CHOICE
from nezha_tf.tasks.finetuning.data_sets import files_of
from nezha_tf.tasks.finetuning.task import FineTuning
from nezha_tf.tasks.multiple_choice.data_sets import data_set_of
from nezha_tf.tasks.multiple_choice.loss import MultipleChoiceLoss
from nezha_tf.tasks.multiple_choice.packing import BlankPacking, QuestionPacking, pack


class MultipleChoiceTask(FineTuning):
    """Fine-tuning on questions with choices, with `MultipleChoiceSettings`."""

    def __init__(self, settings):
        self._data_set = data_set_of(settings)
        super().__init__(settings)

    def read(self, part):
        settings, has_blanks = self.settings, self._data_set.has_blanks
        if not has_blanks:
            self.require_segments("questions")
        kind = BlankPacking if has_blanks else QuestionPacking
        packing = kind(self.tokenizer.vocabulary, settings.max_seq_length)
        paths = files_of(self._data_set, part, settings)
        bad_rows = BadRows(settings.skip_bad_rows)
        needs_answers = part != "predict"
        of_files = [self._data_set.read(path, needs_answers, bad_rows) for path in paths]
        if not needs_answers:  # predictions are told apart by their ids
            of_files = _with_own_ids(paths, of_files, bad_rows)
        questions = [question for of_file in of_files for question in of_file]
        examples, note = pack(questions, packing, self.reader, paths, bad_rows)
        if part == "train":
            self.sequences_per_example = len(examples.arrays["input_ids"][0])
        self.notes.append(note)
        return examples

    def task_file_settings(self):
        found = {"task": "multiple_choice", "has_blanks": self._data_set.has_blanks}
        return found | ({"ascii_punctuation": True} if self._data_set.ascii_punctuation else {})

    def make_objective(self, label_smoothing):
        return MultipleChoiceLoss(label_smoothing)

    def measure(self, part, outputs):
        chosen = self._chosen(part, outputs)
        answers = [question.answer for question in self.examples[part].rows[: len(chosen)]]
        return {} if None in answers else {"accuracy": float(np.mean(chosen == answers))}

    def write_predictions(self, outputs):
        questions = self.examples["predict"].rows
        found = self._chosen("predict", outputs)
        entries = [
            {
                "id": question.id,
                "prediction": int(index),
                "choice": question.choices[index],
                "answer": question.answer,
                "probabilities": values[: len(question.choices)].tolist(),
            }
            for question, index, values in zip(
                questions, found, outputs["probabilities"], strict=True
            )
        ]
        self.write_entries(entries)

    def _chosen(self, part, outputs):
        """Returns the indices of the choices, int [n]; with --max_eval_steps n may be smaller."""
        logits = np.stack(outputs["logits"])
        questions = self.examples[part].rows[: len(logits)]
        are_different = self.settings.different_choices
        return chosen(logits, [q.group for q in questions] if are_different else None)


def _with_own_ids(paths, of_files, bad_rows):
    """Returns the lists of questions of files, so that no two have the same id.

    A question whose id another one of its file has is a bad row. If two files have an id in
    common, each id gets the path of its file in front.
    """
    own = [{} for _ in of_files]
    for found, questions in zip(own, of_files, strict=True):
        for question in questions:
            other = found.setdefault(question.id, question)
            if other is not question:
                bad_rows.add(
                    f"{question.place}: the id {question.id!r} is used twice, also at "
                    f"{other.place}; give each question its own id"
                )
    if len(set().union(*own)) == sum(map(len, own)):
        return [list(found.values()) for found in own]
    return [
        [question._replace(id=f"{path}:{question.id}") for question in found.values()]
        for path, found in zip(paths, own, strict=True)
    ]


def chosen(logits, groups=None):
    """Returns the index of the choice for each question, int [n].

    The blanks of a group get different choices: the pair of blank and choice with the highest
    score comes first, then the highest of the pairs that are left
    (`logits_matrix_to_array` of CLUE's program for ChID). Blanks for which no choice is left get
    their most probable one.

    Args:
      logits: float [n, C], `NO_CHOICE` where a question has no such choice.
      groups: for each question its group, or None if it has none; None: no question has one.
    """
    best = np.argmax(logits, axis=-1)
    members = {}
    for index, group in enumerate(groups or ()):
        if group is not None:
            members.setdefault(group, []).append(index)
    for rows in members.values():
        if len(rows) > 1:
            best[rows] = _different(logits[rows], best[rows])
    return best


def _different(logits, best):
    found = best.copy()
    blanks, choices = set(range(len(logits))), set(range(logits.shape[1]))
    for place in np.argsort(-logits, axis=None, kind="stable"):
        blank, choice = divmod(int(place), logits.shape[1])
        if blank in blanks and choice in choices and logits[blank, choice] > NO_CHOICE:
            found[blank] = choice
            blanks.remove(blank)
            choices.remove(choice)
    return found
