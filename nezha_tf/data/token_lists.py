"""Texts that are cut into tokens, with a tag for each: Hugging Face's form, and others' names."""

import collections
import itertools

from nezha_tf.data.bad_rows import RowFault
from nezha_tf.data.entity_tags import TAG, TAGS_TOLD, entities_of, scheme_of, tags_of
from nezha_tf.data.span_objects import Annotated
from nezha_tf.data.spans import Span

TOKENS = ("tokens", "words", "text", "sentence", "chars")
TAGS = ("ner_tags", "tags", "labels", "label", "ner")


def fits(value):
    """Whether an object has a list of tokens, or a text with a list of tags of its characters."""
    if not isinstance(value, dict):
        return False
    return _tokens_name(value) is not None


def read(value):
    """Reads what `fits`: `tokens` with `ner_tags`, or the like."""
    tokens, name = _tokens(value), _tags_name(value)
    if not all(isinstance(token, str) and token for token in tokens):
        raise RowFault(f'"{_tokens_name(value)}" holds what is no text, or is empty')
    text, places = _joined(tokens)
    if name is None:
        return Annotated(text, None, collections.Counter())
    tags = value[name]
    _check(tags, name, tokens)
    spans = [Span(places[e.start][0], places[e.end - 1][1], e.label) for e in entities_of(tags)]
    return Annotated(text, spans, collections.Counter(), tags)


def write(value, _, found):
    """Writes what `fits`: a token has the tag of the entity with one of its characters."""
    name = _tags_name(value) or TAGS[0]
    _, places = _joined(_tokens(value))
    starts, ends = zip(*places, strict=True)
    entities, free = [], 0
    for p in found:
        inside = [n for n in range(free, len(places)) if ends[n] > p.start and starts[n] < p.end]
        if inside:
            entities.append((inside[0], inside[-1] + 1, p.label))
            free = inside[-1] + 1
    old = value.get(name)
    scheme = (isinstance(old, list) and scheme_of(old)) or "BIO"
    return {**value, name: tags_of(entities, len(places), scheme)}


def _tokens_name(value):
    lists = (name for name in TOKENS if isinstance(value.get(name), list) and value[name])
    name = next(lists, None)
    if name is None and isinstance(value.get("text"), str) and value["text"]:
        tags = value.get(_tags_name(value))
        name = "text" if tags and all(isinstance(tag, str) for tag in tags) else None
    return name


def _tags_name(value):
    return next((name for name in TAGS if isinstance(value.get(name), list)), None)


def _tokens(value):
    return list(value[_tokens_name(value)])


def _check(tags, name, tokens):
    if any(type(tag) is int for tag in tags):
        raise RowFault(
            f'"{name}" are numbers; write the names of the tags instead, which a data set of '
            f'Hugging Face has in features["{name}"].feature.names'
        )
    if len(tags) != len(tokens):
        raise RowFault(f'{len(tokens)} tokens, but {len(tags)} tags in "{name}"')
    for tag in tags:
        if not isinstance(tag, str) or not TAG.fullmatch(tag):
            raise RowFault(f"{tag!r} is not a tag; {TAGS_TOLD}")


def _joined(tokens):
    """Returns (text, [(start, end) of each token]); words of letters get a space between them."""
    text, places = "", []
    are_words = any(len(token) > 1 for token in tokens)
    for before, token in itertools.pairwise(["", *tokens]):
        if are_words and _is_letter(before[-1:]) and _is_letter(token[0]):
            text += " "
        places.append((len(text), len(text) + len(token)))
        text += token
    return text, places


def _is_letter(character):
    """Whether a character would grow together with another one: no Chinese character."""
    return character.isalnum() and character < "\u2e80"
