"""What a model folder can do, one object for each ability: functions from text to results."""

from typing import NamedTuple

import tensorflow as tf

from nezha_tf.data.entity_files import Sentence
from nezha_tf.data.entity_tags import TagSet
from nezha_tf.data.rows import Row
from nezha_tf.data.squad import Question
from nezha_tf.errors import UserError
from nezha_tf.export.fill_mask import TOP_K
from nezha_tf.generation.target_format import TargetFormat
from nezha_tf.inference.fill import BlankFiller
from nezha_tf.modeling.pretraining import NezhaForMaskedLM
from nezha_tf.objectives.tagging import CrfTaggingLoss, TaggingLoss
from nezha_tf.pictures import attention_maps
from nezha_tf.pictures.visualize import encoder_of, objective_of
from nezha_tf.pretraining_objectives.uses import uses_of
from nezha_tf.tasks.classification.label_types import LABEL_TYPES, THRESHOLD
from nezha_tf.tasks.finetuning.packing import TextPacking
from nezha_tf.tasks.pretraining.predictor import writers_of
from nezha_tf.tasks.reading_comprehension.answers import AnswerSearch
from nezha_tf.tasks.reading_comprehension.windows import Windowing
from nezha_tf.tasks.seq2seq.packing import Packing
from nezha_tf.tasks.seq2seq.writing import TargetWriter, options_of
from nezha_tf.tasks.tagging.examples import WindowedSentences


class Classes(NamedTuple):
    """What a classifier says of a text: probabilities by label, or a number.

    Attributes:
      probabilities: dict of label to float; None of regression.
      predicted: list of labels.
      value: float; None of classes.
    """

    probabilities: dict | None
    predicted: list
    value: float | None = None


class Found(NamedTuple):
    """A stretch text[start:end] of a text, an entity or an answer, and its probability.

    The label of an answer is None, and so are the ends of no answer, whose text is "".
    """

    start: int | None
    end: int | None
    text: str
    probability: float
    label: str | None = None


class Classifier:
    """Gives the `Classes` of a text, or of a pair where `is_pair`."""

    def __init__(self, folder, model):
        """Args:
        folder: `ModelFolder`.
        model: of `folder.make_model`.
        """
        task = folder.task
        self.is_pair = task["is_pair"]
        self._tokenizer, self._model, self._kind = folder.tokenizer, model, task["label_type"]
        self._labels = task["labels"]
        self._predictions = LABEL_TYPES[self._kind].objective().predictions
        self._packing = TextPacking(
            folder.tokenizer.vocabulary, task["max_seq_length"], self.is_pair
        )

    def __call__(self, text, text_pair=None):
        """Raises `UserError` where a text holds no piece."""
        sides = [_pieces(self._tokenizer, text, "the text")]
        if self.is_pair:
            sides.append(_pieces(self._tokenizer, text_pair, "the second text"))
        found = self._predictions(_outputs(self._model, *self._packing(*sides)))
        if self._kind == "regression":
            return Classes(None, [], float(found["value"][0]))
        return classes_of(self._labels, found["probabilities"][0].numpy(), self._kind)


def classes_of(labels, probabilities, kind):
    """Returns the `Classes` of probabilities [L]; `kind` is a key of `LABEL_TYPES`."""
    by_label = dict(zip(labels, map(float, probabilities), strict=True))
    if kind == "multi":
        return Classes(by_label, [name for name, p in by_label.items() if p >= THRESHOLD])
    return Classes(by_label, [max(by_label, key=by_label.get)])


class EntityFinder:
    """Gives a list of `Found` for a text: its entities, in order."""

    def __init__(self, folder, model):
        """Arguments as for `Classifier`."""
        task = folder.task
        self._tokenizer, self._model = folder.tokenizer, model
        self._objective = CrfTaggingLoss() if task["crf"] else TaggingLoss()
        self._tag_set = TagSet(task["labels"])
        self._lengths = (task["max_seq_length"], task["window_stride"])

    def __call__(self, text):
        """Raises `UserError` where the text holds no piece."""
        _pieces(self._tokenizer, text, "the text")
        sentences = WindowedSentences(
            [Sentence(text, None)], self._tokenizer, self._tag_set, *self._lengths
        )
        names = ("input_ids", "segment_ids", "label_mask")
        outputs = {"tag_ids": [], "probabilities": []}
        for ids, segment_ids, label_mask in zip(*map(sentences.arrays.get, names), strict=True):
            model_outputs = _outputs(self._model, ids, segment_ids, label_mask=[label_mask])
            for name, values in self._objective.predictions(model_outputs).items():
                outputs[name].append(values[0].numpy())
        (entities,) = sentences.entities(outputs)
        return [
            Found(start, end, text[start:end], probability, label)
            for start, end, label, probability in entities
        ]


class AnswerFinder:
    """Gives a list of `Found` for a question and a passage: the prediction, then the others."""

    def __init__(self, folder, model):
        """Arguments as for `Classifier`."""
        task = folder.task
        self._model = model
        lengths = (task[name] for name in ("max_seq_length", "max_query_length", "doc_stride"))
        self._windowing = Windowing(folder.tokenizer, *lengths)
        self._tokenizer = folder.tokenizer
        has_impossible = task["version_2_with_negative"]
        self._search = AnswerSearch(
            task["n_best_size"],
            task["max_answer_length"],
            task["null_score_diff_threshold"] if has_impossible else None,
        )

    def __call__(self, question, passage):
        """Raises `UserError` where a text holds no piece."""
        _pieces(self._tokenizer, question, "the question")
        _pieces(self._tokenizer, passage, "the passage")
        windows = self._windowing([Question("", passage, question, ())])
        outputs = [
            _outputs(self._model, ids, segment_ids)
            for ids, segment_ids in zip(
                windows.arrays["input_ids"], windows.arrays["segment_ids"], strict=True
            )
        ]
        logits = ([o[name][0].numpy() for o in outputs] for name in ("start_logits", "end_logits"))
        prediction = self._search(windows.examples[0], *logits)
        best = prediction.best
        ordered = [best, *(c for c in prediction.candidates if c.text != best.text)]
        return [Found(c.start, c.end, c.text, c.probability) for c in ordered]


class Writer:
    """Gives a list of (text, score) for a source, best first."""

    def __init__(self, folder, model):
        """Arguments as for `Classifier`."""
        task, tokenizer = folder.task, folder.tokenizer
        self._tokenizer = tokenizer
        lengths = (task["max_source_length"], task["max_target_length"], task["truncate_source"])
        self._packing = Packing(tokenizer, *lengths)
        target_format = TargetFormat(target_prediction=task["target_prediction"])
        options = options_of({**task, "num_return_sequences": _hypotheses(task)}, tokenizer)
        # XLA would take longer to compile than a page is looked at.
        self._write = TargetWriter(
            model, tokenizer, target_format, options, 1, seed=1, jit_compile=False
        )

    def __call__(self, source):
        """Raises `UserError` where the source holds no piece, or does not fit in."""
        _pieces(self._tokenizer, source, "the text")
        rows = [Row({"src": source}, "", 1)]
        (hypotheses,) = self._write(rows, self._packing.pack(rows))
        return [(hypothesis.text, hypothesis.score) for hypothesis in hypotheses]


def _hypotheses(task):
    """Returns how many texts are shown: all that a search has found anyway."""
    return {"beam": task["beam_size"], "greedy": 1}.get(
        task["decoding"], task["num_return_sequences"]
    )


class AttentionPainter:
    """Gives (matplotlib figure, a line or "") for a sentence or a pair."""

    def __init__(self, folder, model):
        """Arguments as for `Classifier`."""
        self._encoder, self._tokenizer = encoder_of(model), folder.tokenizer
        self._objective = objective_of(folder)
        config = folder.config
        self.num_layers, self.num_heads = config.num_hidden_layers, config.num_attention_heads

    def __call__(self, text, text_pair, layers, heads):
        """Arguments and errors as for `attention_maps.draw`."""
        return attention_maps.draw(
            self._encoder, self._tokenizer, text, text_pair, layers, heads, self._objective
        )


def predictors_of(folder):
    """Returns dict of ability to its object, of all that a `ModelFolder` can do.

    Raises:
      UserError: as for `ModelFolder.make_model`.
    """
    model, task = folder.make_model(), folder.task["task"]
    own = {
        "classification": Classifier,
        "tagging": EntityFinder,
        "reading_comprehension": AnswerFinder,
        "seq2seq": Writer,
    }
    found = {task: own[task](folder, model)} if task in own else {}
    if task in (None, "pretraining") and isinstance(model, NezhaForMaskedLM):
        found |= writers_of(folder, model)
        if "fill_mask" in uses_of(folder.task):
            found["fill_mask"] = BlankFiller(model, folder.tokenizer, TOP_K)
    return {**found, "attention": AttentionPainter(folder, model)}


def _pieces(tokenizer, text, name):
    """Returns the ids of a text; raises `UserError` where there is none."""
    ids = tokenizer.convert_tokens_to_ids(tokenizer.tokenize(text or ""))
    if not ids:
        raise UserError(f"{name} holds no piece; write something there")
    return ids


def _outputs(model, ids, segment_ids, **others):
    """Returns a model's outputs for one example, ids and segment ids of [T]."""
    return model(
        {
            "input_ids": tf.constant([ids], tf.int32),
            "input_mask": tf.ones((1, len(ids)), tf.int32),
            "segment_ids": tf.constant([segment_ids], tf.int32),
            **{name: tf.constant(values) for name, values in others.items()},
        },
        training=False,
    )
