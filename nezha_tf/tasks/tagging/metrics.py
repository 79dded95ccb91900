"""Precision, recall and F1 of whole entities, by seqeval in its strict mode."""

from typing import NamedTuple

from nezha_tf.data.entity_tags import tags_of
from nezha_tf.util.errors import require_modules

NAMES = ("precision", "recall", "f1")
ALL = "all"


class Scores(NamedTuple):
    """Scores, from 0 to 1, of one label or of all entities; `support` is the number of entities."""

    precision: float
    recall: float
    f1: float
    support: int


def require_library():
    """Raises a `UserError` if the library of the extra [eval] is not installed."""
    require_modules("metrics of entities need seqeval", "eval", "seqeval")


def measure(sentences, found):
    """Measures entities by their characters; an entity counts only if it is completely right.

    Args:
      sentences: list of `Sentence` with the right entities.
      found: list with a list of `Entity` for each sentence.

    Returns:
      Dict of label to `Scores`, sorted by label, and last `ALL`, the micro average.

    Raises:
      UserError: the library is not installed.
    """
    require_library()
    from seqeval import scheme as schemes
    from seqeval.metrics.v1 import classification_report

    if not any(entities or s.entities for s, entities in zip(sentences, found, strict=True)):
        return {ALL: Scores(0.0, 0.0, 0.0, 0)}  # seqeval fails if there are no labels.
    lengths = [len(sentence.text) for sentence in sentences]
    # seqeval does not know all schemes, and the entities are the same in all of them.
    right = [tags_of(s.entities, n, "BIO") for s, n in zip(sentences, lengths, strict=True)]
    tags = [tags_of(entities, n, "BIO") for entities, n in zip(found, lengths, strict=True)]
    table = classification_report(
        right, tags, scheme=schemes.IOB2, output_dict=True, zero_division=0
    )
    micro = table.pop("micro avg")
    labels = sorted(table.keys() - {"macro avg", "weighted avg"})
    return {**{label: _scores(table[label]) for label in labels}, ALL: _scores(micro)}


def _scores(row):
    names = ("precision", "recall", "f1-score")
    return Scores(*(float(row[name]) for name in names), int(row["support"]))
