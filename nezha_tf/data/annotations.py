"""The JSON forms in which annotation programs and data sets hold a text with its entities."""

import collections
from collections.abc import Callable
from typing import NamedTuple

from nezha_tf.data import label_studio, span_objects, token_lists
from nezha_tf.data.bad_rows import RowFault
from nezha_tf.data.entity_tags import Entity
from nezha_tf.data.spans import EXCLUSIVE, INCLUSIVE, Reading, entities_of_spans, is_text


class Form(NamedTuple):
    """A form of JSON values that hold a text with its entities.

    Attributes:
      fits: function of a value: whether it has this form.
      read: function of a value that returns `Annotated`, or raises `RowFault`.
      write: function of (value, text, list of `span_objects.Prediction`) that returns a value of
        this form with these entities instead; None: `predictions.jsonl` is in this form.
      readings: how places are counted, for `entities_of_spans`.
      is_export: see `entities_of_spans`.
      unlabelled: what is told of values that nobody has annotated, if these are passed over where
        entities are needed; "": they are faults.
    """

    fits: Callable
    read: Callable
    write: Callable | None
    readings: tuple = EXCLUSIVE
    is_export: bool = True
    unlabelled: str = ""


# The first that fits.
FORMS = (
    Form(span_objects.is_own, span_objects.read_list, None, is_export=False),
    Form(span_objects.is_spacy, span_objects.read_spacy, span_objects.write_spacy),
    Form(
        label_studio.is_task,
        label_studio.read_task,
        label_studio.write_task,
        unlabelled=label_studio.UNLABELLED,
    ),
    Form(label_studio.is_annotation, label_studio.read_annotation, label_studio.write_annotation),
    Form(token_lists.fits, token_lists.read, token_lists.write, is_export=False),
    Form(
        span_objects.is_cluener,
        span_objects.read_cluener,
        span_objects.write_cluener,
        readings=INCLUSIVE,
    ),
    Form(label_studio.is_minimal, label_studio.read_minimal, label_studio.write_minimal),
    Form(span_objects.has_lists, span_objects.read_list, span_objects.write_lists),
    Form(span_objects.is_doccano, span_objects.read_list, span_objects.write_doccano),
    # A text alone, or entities with other names (CMeEE).
    Form(lambda value: isinstance(value, dict), span_objects.read_list, None, is_export=False),
)


class Annotation(NamedTuple):
    """A text of a file and its entities.

    Attributes:
      value: the JSON value.
      form: its `Form`.
      text: str.
      entities: list of `Entity`, in order and without overlap; None: it is not annotated.
      reading: the `Reading` of its places.
      told: `Counter` of what is to be told of it.
      tags: its tags, as they stand in the file; None: it has none.
      is_passed_over: whether it is left out because nobody has annotated it.
    """

    value: object
    form: Form
    text: str
    entities: list[Entity] | None
    reading: Reading
    told: collections.Counter
    tags: list[str] | None
    is_passed_over: bool

    def rewritten(self, found):
        """Returns the value with other entities, in its own form.

        Args:
          found: list of entities with `start`, `end`, `label` and `probability`, by characters.
        """
        predictions = [
            span_objects.Prediction(
                *self.reading.places(self.text, entity.start, entity.end),
                entity.label,
                self.text[entity.start : entity.end],
                round(entity.probability, 6),
                Entity(entity.start, entity.end, entity.label),
            )
            for entity in found
        ]
        write = self.form.write or span_objects.write_dicts
        return write(self.value, self.text, predictions)


def read_annotation(value, is_labelled):
    """Returns the `Annotation` of a JSON value.

    Args:
      value: a value of a file.
      is_labelled: whether it must have a list of entities, which may be empty.

    Raises:
      RowFault: the value has no known form, or is faulty.
    """
    form = next((form for form in FORMS if form.fits(value)), None)
    if form is None:
        raise RowFault('not a JSON object with a text; write {"text": ..., "entities": [...]}')
    text, spans, told, tags = form.read(value)
    if not text.strip():
        raise RowFault("the text is empty")
    if not is_text(text):
        raise RowFault("the text holds half a character (a lone \\ud800 to \\udfff); remove it")
    if spans is None:
        is_passed_over = is_labelled and bool(form.unlabelled)
        if is_labelled and not is_passed_over:
            raise RowFault('"entities" is missing or not a list; write [] if there are none')
        told += collections.Counter([form.unlabelled] * is_passed_over)
        return Annotation(value, form, text, None, form.readings[0], told, tags, is_passed_over)
    found = entities_of_spans(text, spans, form.readings, form.is_export)
    told += found.told
    return Annotation(value, form, text, found.entities, found.reading, told, tags, False)
