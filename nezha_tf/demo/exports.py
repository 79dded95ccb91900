"""What an export (`tools/export_saved_model.py`) can do: the same functions as of predictors."""

import tensorflow as tf
import tensorflow_text  # noqa: F401  (its operations are in the graphs)

from nezha_tf.errors import UserError, first_line
from nezha_tf.model_folder.task_table import TASKS, part
from nezha_tf.serving.predictor import Classes, Found
from nezha_tf.text.vocabulary import MASK


class Exported:
    """A SavedModel with a signature on raw texts.

    Attributes:
      ability: as of `serving.predictor.Predictor`.
      outputs: names of what it puts out, by which it is known, as no other export has them all; a
        set for each form that there is of it.
    """

    ability: str
    outputs: tuple[frozenset, ...]

    def __init__(self, loaded):
        """Args:
        loaded: of `tf.saved_model.load`.
        """
        self._loaded = loaded  # Its functions alone do not keep the weights.
        self._serve = loaded.signatures["serving_default"]

    def _outputs(self, **texts):
        """Returns the outputs for one example, dict of name to NumPy value.

        Raises:
          UserError: a text is empty.
        """
        for name, text in texts.items():
            if not (text or "").strip():
                raise UserError(f"the {name.replace('_', ' ')} is empty; write something there")
        found = self._serve(**{name: tf.constant([text]) for name, text in texts.items()})
        return {name: values[0].numpy() for name, values in found.items()}


class ExportedClassifier(Exported):
    """As `tasks.classification.predictor.Classifier`."""

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
    """As `tasks.tagging.predictor.EntityFinder`."""

    ability = "tagging"
    outputs = (frozenset({"num_entities"}),)

    def __call__(self, text):
        found = self._outputs(text=text)
        names = ("start", "end", "entity", "probability", "label")
        rows = zip(*(found[name][: found["num_entities"]] for name in names), strict=True)
        return [_found(*row) for row in rows]


class ExportedAnswerFinder(Exported):
    """As `AnswerFinder` of its task, but for the candidates beside the best one."""

    ability = "reading_comprehension"
    outputs = (frozenset({"answer"}),)

    def __call__(self, question, passage):
        found = self._outputs(question=question, passage=passage)
        return [_found(*(found[name] for name in ("start", "end", "answer", "probability")))]


class ExportedBlankFiller(Exported):
    """As `inference.fill.BlankFiller`."""

    ability = "fill_mask"
    outputs = (frozenset({"num_masks"}),)

    def __call__(self, text):
        found = self._outputs(text=text)
        count = found["num_masks"]
        if not count:
            raise UserError(f"no {MASK} in the text; write one for each piece to be filled in")
        pairs = zip(found["candidates"][:count], found["probabilities"][:count], strict=True)
        return [list(zip(_texts(pieces), p.tolist(), strict=True)) for pieces, p in pairs]


class ExportedWriter(Exported):
    """As `tasks.seq2seq.predictor.Writer`."""

    ability = "seq2seq"
    outputs = (frozenset({"texts", "scores"}),)

    def __call__(self, source):
        found = self._outputs(text=source)
        return list(zip(_texts(found["texts"]), found["scores"].tolist(), strict=True))


class ExportedContinuer(Exported):
    """As `tasks.pretraining.predictor.PretrainedWriter` of "left_to_right"."""

    ability = "left_to_right"
    outputs = (frozenset({"continuations"}),)

    def __call__(self, prompt):
        found = self._outputs(text=prompt)
        pairs = zip(_texts(found["continuations"]), found["scores"].tolist(), strict=True)
        return list(pairs)


def predictors_of_export(path):
    """Returns dict of ability to its object.

    Raises:
      UserError: the folder is damaged, or of an export that there is no tab for.
    """
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
        f"{path} is an export that the page has no use for; export a model with a task "
        "(tools/export_saved_model.py)"
    )


def _found(start, end, text, probability, label=None):
    if start < 0:
        return Found(None, None, "", float(probability))
    label = label if label is None else label.decode()
    return Found(int(start), int(end), text.decode(), float(probability), label)


def _texts(values):
    return [value.decode() for value in values]
