"""Entities as tags, one for each character or piece, in BIO or BIOES, and back."""

import re
from typing import NamedTuple

from nezha_tf.errors import UserError

OUTSIDE = "O"
SCHEMES = {"BIO": "BI", "BIOES": "BIES"}
# seqeval strips hyphens from a label's ends.
LABEL = re.compile(r"[^\s-](\S*[^\s-])?")
TAG = re.compile(rf"O|[BIES]-{LABEL.pattern}")


class Entity(NamedTuple):
    """A stretch [start, end) of a sequence, and what it names."""

    start: int
    end: int
    label: str


def tags_of(entities, length, scheme):
    """Returns the tags of a sequence as a list of str.

    Args:
      entities: list of `Entity` that do not overlap.
      length: of the sequence.
      scheme: a key of `SCHEMES`.
    """
    tags = [OUTSIDE] * length
    for start, end, label in entities:
        tags[start:end] = [f"I-{label}"] * (end - start)
        tags[start] = f"B-{label}"
        if scheme == "BIOES":
            tags[end - 1] = f"S-{label}" if end - start == 1 else f"E-{label}"
    return tags


def entities_of(tags):
    """Returns what entities tags name, well-formed or not, as a list of `Entity`.

    As conlleval has it: one begins wherever a tag other than O cannot go on with what is before
    it, whether it says so (B-, S-) or not.
    """
    entities, start = [], None
    for index, (before, tag) in enumerate(zip([OUTSIDE, *tags], [*tags, OUTSIDE], strict=True)):
        if start is not None and (tag[0] in "OBS" or before[0] in "ES" or tag[2:] != before[2:]):
            entities.append(Entity(start, index, before[2:]))
            start = None
        if start is None and tag != OUTSIDE:
            start = index
    return entities


def well_formed(tags, scheme):
    """Returns the entities that are written just as the scheme asks: those of seqeval, strict."""
    return [
        entity
        for entity in entities_of(tags)
        if tags[entity.start : entity.end] == _written(entity, scheme)
    ]


def _written(entity, scheme):
    length = entity.end - entity.start
    return tags_of([Entity(0, length, entity.label)], length, scheme)


def scheme_of(tags):
    """Returns the scheme of all tags of a file: BIOES where one has E- or S-, or else BIO."""
    return "BIOES" if any(tag[0] in "ES" for tag in tags) else "BIO"


class TagSet:
    """The tags that a model tells apart.

    Attributes:
      tags: list of str; the place of a tag is its id.
      scheme: a key of `SCHEMES`.
      labels: set of str.
    """

    def __init__(self, tags):
        self.tags = list(tags)
        self.scheme = scheme_of(tags)
        self.labels = {tag[2:] for tag in tags if tag != OUTSIDE}
        self._ids = {tag: number for number, tag in enumerate(self.tags)}

    @classmethod
    def of_labels(cls, labels, scheme):
        """Returns all the tags that the entities of these labels can have."""
        tags = [f"{prefix}-{label}" for label in sorted(labels) for prefix in SCHEMES[scheme]]
        return cls([OUTSIDE, *tags])

    @classmethod
    def checked(cls, tags, path):
        """Returns the set of the tags of a file, which the path names in an error.

        Raises:
          UserError: what is no tag, or tags that are missing or there twice.
        """
        for tag in tags:
            if not TAG.fullmatch(tag):
                raise UserError(f"{path}: {tag!r} is no tag")
        found = cls(tags)
        whole = cls.of_labels(found.labels, found.scheme).tags
        if sorted(tags) != sorted(whole):
            odd = sorted({*whole} ^ {*tags}) or [tag for tag in whole if tags.count(tag) > 1]
            raise UserError(
                f"{path}: {odd[0]} must be there once, as O and each label's other tags"
            )
        return found

    def __len__(self):
        return len(self.tags)

    def ids_of(self, entities, length):
        """Returns the ids of a sequence's tags; arguments as for `tags_of`."""
        return [self._ids[tag] for tag in tags_of(entities, length, self.scheme)]

    def entities_of(self, ids):
        """Returns the well-formed entities of the ids of a sequence's tags."""
        return well_formed([self.tags[number] for number in ids], self.scheme)
