"""Converts entities to tags (BIO, BIOES, BMES ...), one for each character or token, and back."""

import re
from typing import NamedTuple

from nezha_tf.util.errors import UserError

OUTSIDE = "O"
# The letters of an entity's first, inner and last tag, and of a single tag.
SCHEMES = {"BIO": "BIIB", "BIOS": "BIIS", "BIOES": "BIES", "BMEO": "BMEB", "BMES": "BMES"}
# Labels must not begin or end with a hyphen: seqeval strips it.
LABEL = re.compile(r"[^\s-](\S*[^\s-])?")
TAG = re.compile(rf"O|[BIMES]-{LABEL.pattern}")
TAGS_MEANT = "tags are O, or B-, I-, M-, E- or S- with a label"


class Entity(NamedTuple):
    """A span [start, end) of a sequence and its label."""

    start: int
    end: int
    label: str


def tags_of(entities, length, scheme):
    """Returns the tags, a list of str, of a sequence with `Entity`s that do not overlap."""
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
        Entity(start, end, label)
        for start, end, label in entities_of(tags)
        if tags[start:end] == tags_of([Entity(0, end - start, label)], end - start, scheme)
    ]


def scheme_of(tags):
    """Returns the first of `SCHEMES` that has all these tags; None: there are both I- and M-."""
    found = {tag[0] for tag in tags} - {OUTSIDE}
    return next((scheme for scheme, letters in SCHEMES.items() if found <= set(letters)), None)


def require_scheme(tags, path):
    """Returns `scheme_of` the tags of a file, or raises a `UserError`."""
    scheme = scheme_of(tags)
    if scheme is None:
        raise UserError(
            f"{path}: the inside of entities has both I- and M-, which are of different schemes; "
            "write one of them"
        )
    return scheme


# What published taggers say of tokens that are in no entity: of padding ([PAD], <pad> or PAD), of
# the ends of the text, and of the rest of a word after its first token (X).
_OF_NO_ENTITY = re.compile(r"O|X|\[.*\]|<.*>|PAD|CLS|SEP|UNK|START|STOP", re.IGNORECASE)
# The letters of all schemes: L and U are E and S in BILOU.
_LETTERS = {"B": "B", "I": "I", "M": "M", "E": "E", "L": "E", "S": "S", "U": "S"}
_PUBLISHED_TAG = re.compile(rf"([{''.join(_LETTERS)}])(-{LABEL.pattern})?")


def read_labels(labels):
    """Returns the tags that the labels of a published tagger mean, one for each, or None.

    Letters without names, as of models that cut texts into words, are tags with the name "". Names
    without letters, beside an O, are tags of which neighbours with one name are one entity, as in
    transformers' pipeline.
    """
    named = [label for label in labels if not _OF_NO_ENTITY.fullmatch(label)]
    found = {label: _PUBLISHED_TAG.fullmatch(label) for label in named}
    if all(found.values()):
        letters = {tag[1] for tag in found.values()}
        inner = {"M": "I"} if {"I", "M"} <= letters else {}  # of one scheme, for both
        written = {**_LETTERS, **inner}
        read = {label: f"{written[tag[1]]}{tag[2] or '-'}" for label, tag in found.items()}
    elif OUTSIDE in labels and all(LABEL.fullmatch(n) and not found[n] for n in named):
        read = {label: f"I-{label}" for label in named}
    else:
        return None
    return [read.get(label, OUTSIDE) for label in labels]


class TagSet:
    """The tags that a model predicts.

    Attributes:
      tags: list of str; a tag's index is its id.
      read_as: the same as tags of a scheme; of published models `tags` may be others.
      scheme: a key of `SCHEMES`.
      labels: set of str.
      is_strict: whether only well-formed entities count. Where a label has no B-, or no token can
        be outside, what conlleval reads counts.
    """

    def __init__(self, tags, read_as=None):
        """Args:
        tags: list of str.
        read_as: see `read_labels`; default: `tags`.
        """
        self.tags = list(tags)
        self.read_as = list(read_as or tags)
        self.scheme = scheme_of(self.read_as)
        self.labels = {tag[2:] for tag in self.read_as if tag != OUTSIDE}
        needed = {OUTSIDE, *(f"B-{label}" for label in self.labels)}
        self.is_strict = needed <= set(self.read_as)
        # Without an O there is no id for texts that have no entities yet; it is never read.
        self._ids = {OUTSIDE: 0} | {tag: number for number, tag in enumerate(self.read_as)}

    @classmethod
    def of_labels(cls, labels, scheme):
        """Returns the `TagSet` of all tags that a scheme has for these labels."""
        letters = dict.fromkeys(SCHEMES[scheme])
        tags = [f"{letter}-{label}" for label in sorted(labels) for letter in letters]
        return cls([OUTSIDE, *tags])

    @classmethod
    def of_model(cls, tags, path):
        """Returns the `TagSet` of the labels of a model, also of a published one.

        Raises:
          UserError: the labels are no tags; `path` is what has them.
        """
        read_as = read_labels(tags)
        if read_as is None:
            known = (_OF_NO_ENTITY, _PUBLISHED_TAG)
            odd = next(tag for tag in tags if not any(kind.fullmatch(tag) for kind in known))
            raise _no_tag(path, odd, "; nezha_tf.load gives the scores of its labels")
        return cls(tags, read_as)

    @classmethod
    def checked(cls, tags, path):
        """Returns the `TagSet` of the tags of a file.

        Raises:
          UserError: an entry is not a tag, or a tag is missing or duplicate.
        """
        for tag in tags:
            if not TAG.fullmatch(tag):
                raise _no_tag(path, tag)
        require_scheme(tags, path)
        found = cls(tags)
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
        """Returns the tag ids of a sequence as a list; see `tags_of`."""
        return [self._ids[tag] for tag in tags_of(entities, length, self.scheme)]

    def entities_of(self, ids):
        """Returns the entities of a sequence of tag ids, by `is_strict` the well-formed ones."""
        tags = [self.read_as[number] for number in ids]
        return well_formed(tags, self.scheme) if self.is_strict else entities_of(tags)


def _no_tag(path, tag, advice=""):
    return UserError(
        f"{path}: the label {tag!r} is no tag of entities (O, or B-, I-, M-, E- or S- with a name)"
        f"{advice}"
    )
