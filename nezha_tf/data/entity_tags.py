"""Converts entities to tags (BIO, BIOES, BMES ...), one for each character or piece, and back."""

import re
from typing import NamedTuple

from nezha_tf.errors import UserError

OUTSIDE = "O"
# The letters of an entity's first, inner and last tag, and of a single tag.
SCHEMES = {"BIO": "BIIB", "BIOS": "BIIS", "BIOES": "BIES", "BMEO": "BMEB", "BMES": "BMES"}
# Labels must not begin or end with a hyphen: seqeval strips it.
LABEL = re.compile(r"[^\s-](\S*[^\s-])?")
TAG = re.compile(rf"O|[BIMES]-{LABEL.pattern}")
TAGS_TOLD = "tags are O, or B-, I-, M-, E- or S- with a label"


class Entity(NamedTuple):
    """A span [start, end) of a sequence and its label."""

    start: int
    end: int
    label: str


def tags_of(entities, length, scheme):
    """Returns the tags of a sequence as a list of str.

    Args:
      entities: list of `Entity` that do not overlap.
      length: length of the sequence.
      scheme: a key of `SCHEMES`.
    """
    tags, (first, inner, last, single) = [OUTSIDE] * length, SCHEMES[scheme]
    for start, end, label in entities:
        letters = first + inner * (end - start - 2) + last if end - start > 1 else single
        tags[start:end] = [f"{letter}-{label}" for letter in letters]
    return tags


def entities_of(tags):
    """Returns the entities of a sequence of tags, well-formed or not, as a list of `Entity`.

    The rule is conlleval's: a tag other than O begins an entity if it is B- or S-, or if it
    cannot continue the entity before it.
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
    """Returns the entities that follow the scheme exactly, as in seqeval's strict mode."""
    return [
        entity
        for entity in entities_of(tags)
        if tags[entity.start : entity.end] == _written(entity, scheme)
    ]


def _written(entity, scheme):
    length = entity.end - entity.start
    return tags_of([Entity(0, length, entity.label)], length, scheme)


def scheme_of(tags):
    """Returns the first of `SCHEMES` that has the tags of a file or of a model.

    None: there are tags of several schemes, I- and M-.
    """
    found = {tag[0] for tag in tags} - {OUTSIDE}
    return next((scheme for scheme, letters in SCHEMES.items() if found <= set(letters)), None)


def require_scheme(tags, path):
    """Returns the scheme of the tags of a file; see `scheme_of`.

    Raises:
      UserError: there are tags of several schemes.
    """
    scheme = scheme_of(tags)
    if scheme is None:
        raise UserError(
            f"{path}: the inside of entities has both I- and M-, which are of different schemes; "
            "write one of them"
        )
    return scheme


class TagSet:
    """The tags that a model predicts.

    Attributes:
      tags: list of str; a tag's index is its id.
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
        """Returns the `TagSet` of all tags that a scheme has for these labels."""
        letters = dict.fromkeys(SCHEMES[scheme])
        tags = [f"{letter}-{label}" for label in sorted(labels) for letter in letters]
        return cls([OUTSIDE, *tags])

    @classmethod
    def of_model(cls, tags, path):
        """Returns the `TagSet` of the labels of a model, also of a published one.

        Args:
          tags: list of str.
          path: what has these labels, for the error.

        Raises:
          UserError: a label is not a tag, or the tags are of several schemes.
        """
        for tag in tags:
            if not TAG.fullmatch(tag):
                raise UserError(
                    f"{path}: the label {tag!r} is no tag of entities (O, or B-, I-, M-, E- or S- "
                    "with a name)"
                )
        require_scheme(tags, path)
        return cls(tags)

    @classmethod
    def checked(cls, tags, path):
        """Returns the `TagSet` of the tags of a file; `path` names the file in errors.

        Raises:
          UserError: an entry is not a tag, or a tag is missing or duplicate.
        """
        found = cls.of_model(tags, path)
        whole = cls.of_labels(found.labels, found.scheme).tags
        if sorted(tags) != sorted(whole):
            odd = sorted({*whole} ^ {*tags}) or [tag for tag in whole if tags.count(tag) > 1]
            raise UserError(
                f"{path}: the tag {odd[0]} is missing or duplicate; O and all tags of each label "
                "must be listed once"
            )
        return found

    def __len__(self):
        return len(self.tags)

    def ids_of(self, entities, length):
        """Returns the tag ids of a sequence as a list; the arguments are those of `tags_of`."""
        return [self._ids[tag] for tag in tags_of(entities, length, self.scheme)]

    def entities_of(self, ids):
        """Returns the well-formed entities of a sequence of tag ids."""
        return well_formed([self.tags[number] for number in ids], self.scheme)
