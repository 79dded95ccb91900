"""Predictors that run an export (a SavedModel of `tools/export_saved_model.py`)."""

import tensorflow as tf
import tensorflow_text  # noqa: F401  (its operations are in the graphs)

from nezha_tf.checkpoints.task_table import TASKS, part
from nezha_tf.data.choices import ONE_BLANK
from nezha_tf.serving.predictor import Classes, Found
from nezha_tf.serving.saved_model import require_loadable
from nezha_tf.tasks.multiple_choice.predictor import NO_BLANK, checked_choices, choice_classes
from nezha_tf.text.vocabulary import MASK
from nezha_tf.util.errors import UserError, first_line


class Exported:
    """A function from text to a result, computed by a SavedModel that takes raw text.

    Attributes:
      ability: as of `serving.predictor.Predictor`.
      outputs: tuple of sets of output names. An export that has all names of one of the sets is of
        this class, because exports of other classes do not have them all.
    """

    ability: str
    outputs: tuple[frozenset, ...]

    def __init__(self, loaded):
        """Args:
        loaded: as returned by `tf.saved_model.load`.
        """
        self._loaded = loaded  # Without it, the weights of its functions would be deleted.
        self._serve = loaded.signatures["serving_default"]

    def _outputs(self, **texts):
        """Returns the outputs for one example: dict of name to NumPy value.

        Args:
          **texts: dict of the names of the inputs to texts, or to lists of texts.

        Raises:
          UserError: a text is empty.
        """
        for name, text in texts.items():
            if not isinstance(text, list) and not (text or "").strip():
                raise UserError(f"the {name.replace('_', ' ')} is empty; write something there")
        found = self._serve(**{name: tf.constant([text]) for name, text in texts.items()})
        return {name: values[0].numpy() for name, values in found.items()}


class ExportedClassifier(Exported):
    """Does what `tasks.classification.predictor.Classifier` does."""

    ability = "classification"
    outputs = (
        frozenset({"label", "probabilities"}),
        frozenset({"labels_on", "probabilities"}),
        frozenset({"value"}),
    )

    def __init__(self, loaded):
        super().__init__(loaded)
        self.is_pair = "text_pair" in self._serve.structured_input_signature[1]
        if "labels" in loaded.signatures:
            self._labels = _texts(loaded.signatures["labels"]()["labels"].numpy())

    def __call__(self, text, text_pair=None):
        found = self._outputs(text=text, **({"text_pair": text_pair} if self.is_pair else {}))
        if "value" in found:
            return Classes(None, [], float(found["value"]))
        probabilities = dict(zip(self._labels, found["probabilities"].tolist(), strict=True))
        if "labels_on" in found:
            pairs = zip(self._labels, found["labels_on"], strict=True)
            return Classes(probabilities, [name for name, is_on in pairs if is_on])
        return Classes(probabilities, [found["label"].decode()])


class ExportedEntityFinder(Exported):
    """Does what `tasks.tagging.predictor.EntityFinder` does."""

    ability = "tagging"
    outputs = (frozenset({"num_entities"}),)

    def __call__(self, text):
        found = self._outputs(text=text)
        names = ("start", "end", "entity", "probability", "label")
        rows = zip(*(found[name][: found["num_entities"]] for name in names), strict=True)
        return [_found(*row) for row in rows]


class ExportedAnswerFinder(Exported):
    """Gives the best answer of `tasks.reading_comprehension.predictor.AnswerFinder`."""

    ability = "reading_comprehension"
    outputs = (frozenset({"answer"}),)

    def __call__(self, question, passage):
        found = self._outputs(question=question, passage=passage)
        return [_found(*(found[name] for name in ("start", "end", "answer", "probability")))]


class ExportedChoiceFinder(Exported):
    """Does what `tasks.multiple_choice.predictor.ChoiceFinder` does."""

    ability = "multiple_choice"
    outputs = (frozenset({"choice", "probabilities"}),)

    def __init__(self, loaded):
        super().__init__(loaded)
        self.has_blanks = "question" not in self._serve.structured_input_signature[1]

    def __call__(self, context, question, choices):
        texts = checked_choices(choices)
        if self.has_blanks and (context or "").strip() and ONE_BLANK not in context:
            raise UserError(NO_BLANK)
        given = {"context": context, **({} if self.has_blanks else {"question": question})}
        return choice_classes(texts, self._outputs(**given, choices=texts)["probabilities"])


class ExportedBlankFiller(Exported):
    """Does what `generation.fill.BlankFiller` does."""

    ability = "fill_mask"
    outputs = (frozenset({"num_masks"}),)

    def __call__(self, text):
        found = self._outputs(text=text)
        count = found["num_masks"]
        if not count:
            raise UserError(f"no {MASK} in the text; write one for each token to fill in")
        pairs = zip(found["candidates"][:count], found["probabilities"][:count], strict=True)
        return [list(zip(_texts(tokens), p.tolist(), strict=True)) for tokens, p in pairs]


class ExportedWriter(Exported):
    """Does what `tasks.seq2seq.predictor.Writer` does."""

    ability = "seq2seq"
    outputs = (frozenset({"texts", "scores"}),)

    def __call__(self, source):
        found = self._outputs(text=source)
        return list(zip(_texts(found["texts"]), found["scores"].tolist(), strict=True))


class ExportedContinuer(Exported):
    """Does what `tasks.pretraining.predictor.PretrainedWriter` of "left_to_right" does."""

    ability = "left_to_right"
    outputs = (frozenset({"continuations"}),)

    def __call__(self, prompt):
        found = self._outputs(text=prompt)
        pairs = zip(_texts(found["continuations"]), found["scores"].tolist(), strict=True)
        return list(pairs)


def predictors_of_export(path):
    """Returns dict of ability to predictor, with one entry.

    Args:
      path: path of the SavedModel's folder.

    Raises:
      UserError: the folder is damaged, or the page has no tab for this export.
    """
    require_loadable(path, "model_folder")
    try:
        loaded = tf.saved_model.load(path)
    except (OSError, ValueError, tf.errors.OpError) as error:
        raise UserError(f"{path} cannot be read as an export: {first_line(error)}") from error
    if "serving_default" in loaded.signatures:
        outputs = set(loaded.signatures["serving_default"].structured_outputs)
        rows = [part(task.exported) for task in TASKS.values() if task.exported]
        for kind in (*rows, ExportedBlankFiller, ExportedContinuer):
            if any(names <= outputs for names in kind.outputs):
                return {kind.ability: kind(loaded)}
    raise UserError(
        f"{path} is an export for which the page has no tab; name an export of another task, or "
        "the folder of its model"
    )


def _found(start, end, text, probability, label=None):
    """Returns the `Found` of an export's outputs; `start` below 0 stands for no answer."""
    if start < 0:
        return Found(None, None, "", float(probability))
    label = label if label is None else label.decode()
    return Found(int(start), int(end), text.decode(), float(probability), label)


def _texts(values):
    """Returns bytes as list of str."""
    return [value.decode() for value in values]
