"""Sentences as windows with tags, tags of windows as entities, and files of entities."""

import bisect
import itertools
import json
import os
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from nezha_tf.data.compression import unpacked_name
from nezha_tf.data.entity_tags import Entity, tags_of
from nezha_tf.serving.windows import windows_on
from nezha_tf.text.graph_tokenizer import TOKENIZED_AT_ONCE
from nezha_tf.text.packing import bert_parts, join, rows_of
from nezha_tf.util import files, storage

SPECIAL_TOKENS = 2  # [CLS] and [SEP]


class Unit(NamedTuple):
    """The tokens that share one tag; they cover the characters [start, end) of the raw text.

    It is a single token, except where several tokens come from one character (stripping accents
    decomposes a Hangul syllable). The tag is that of the first token.
    """

    start: int
    end: int


class Units(NamedTuple):
    """The U units (`Unit`) of all texts, concatenated."""

    rows: tf.Tensor  # int64 [U], the index of each unit's text
    places: tf.Tensor  # int64 [U], the index of its first token in that text
    starts: tf.Tensor  # int32 [U], its characters [start, end)
    ends: tf.Tensor


def units_of(tokens):
    """Returns (`Units` of `Tokens`, bool [all tokens] whether a token is its unit's first)."""
    starts, ends = tokens.starts.values, tokens.ends.values
    places = tf.ragged.range(tokens.ids.row_lengths()).values
    before = tf.concat([ends[:1], ends[:-1]], axis=0)
    is_unit = (places == 0) | (starts >= before)
    first = tf.where(is_unit)[:, 0]
    behind = tf.concat([first[1:], [tf.size(ends, tf.int64)]], axis=0)[: tf.size(first)]
    units = Units(
        tf.gather(tokens.ids.value_rowids(), first),
        tf.gather(places, first),
        tf.gather(starts, first),
        tf.gather(ends, behind - 1),
    )
    return units, is_unit


def to_units(entities, units):
    """Returns a list of each entity by the indices of its units, or None if it has no unit.

    An entity gets every unit with one of its characters, so an entity that begins or ends inside a
    unit grows. A unit with characters of two entities goes to the first one. An entity has no unit
    if the tokenizer drops all its characters, or the entity before it has got all its units.
    `entities` are in order and without overlap.
    """
    starts, ends = [unit.start for unit in units], [unit.end for unit in units]
    found, free = [], 0
    for start, end, label in entities:
        first = max(free, bisect.bisect_right(ends, start))
        behind = bisect.bisect_left(starts, end)
        found.append(Entity(first, behind, label) if first < behind else None)
        free = max(free, behind)
    return found


def to_characters(entity, units):
    """Returns an entity by the characters of its units."""
    return entity._replace(start=units[entity.start].start, end=units[entity.end - 1].end)


class FoundEntity(NamedTuple):
    """An entity that the model found at the characters [start, end) of a text.

    Its probability is the lowest probability of its tokens' tags.
    """

    start: int
    end: int
    label: str
    probability: float

    @property
    def entity(self):
        """The `Entity` without the probability."""
        return Entity(self.start, self.end, self.label)


class WindowedSentences:
    """Sentences as a model's examples, [CLS] tokens [SEP]; long ones have overlapping windows.

    Attributes:
      sentences: list of `entity_files.Sentence`.
      arrays: the arrays for `ArrayReader`, with one example per window.
      num_cut: number of sentences with several windows.
      moved: list of (sentence, `Entity`) for entities that begin or end inside a unit, so that
        the model's entity has other characters.
      lost: list of (sentence, `Entity`) for entities that have no unit.
    """

    def __init__(self, sentences, reader, tag_set, max_seq_length, stride):
        """Args:
        sentences: list of `entity_files.Sentence`.
        reader: `TextReader`.
        tag_set: `TagSet` with the labels of all entities.
        max_seq_length: most tokens of a window, special ones included.
        stride: number of tokens between the starts of two windows.
        """
        self.sentences, self._tag_set = sentences, tag_set
        self.num_cut, self.moved, self.lost = 0, [], []
        names = ("input_ids", "segment_ids", "label_ids", "label_mask")
        self.arrays = {name: [] for name in names}
        # Of each sentence its units, for each of them [window, place there], and the next window.
        self._layouts = []
        for first in range(0, len(sentences), TOKENIZED_AT_ONCE):
            part = sentences[first : first + TOKENIZED_AT_ONCE]
            self._add(part, reader, max_seq_length - SPECIAL_TOKENS, stride)

    def entities(self, outputs):
        """Returns the entities that the model found, a list of `FoundEntity` for each sentence.

        A character's tag comes from the window with the most context around it.

        Args:
          outputs: dict of `tag_ids` and `probabilities`, each a list with an array [T] for each
            window, or for the first windows; sentences without all their windows are left out.
        """
        found = []
        for units, places, next_window in self._layouts:
            if next_window > len(outputs["tag_ids"]):
                break
            tag_ids, probabilities = (
                [outputs[name][window][place] for window, place in places]
                for name in ("tag_ids", "probabilities")
            )
            entities = self._tag_set.entities_of(tag_ids)
            least = [float(min(probabilities[e.start : e.end])) for e in entities]
            found.append(
                [
                    FoundEntity(*to_characters(e, units), p)
                    for e, p in zip(entities, least, strict=True)
                ]
            )
        return found

    def _add(self, sentences, reader, size, stride):
        with tf.device("/cpu:0"):
            tokens = reader.tokens(tf.constant([sentence.text for sentence in sentences]))
            units, is_first = units_of(tokens)
            windows = windows_on(tokens.ids.row_lengths(), size, stride, is_last_full=True)
            window = windows.best(units.rows, units.places, size, stride)
            place = units.places - tf.gather(windows.starts, window) + 1  # [CLS] comes first.
        bounds = np.searchsorted(units.rows, range(1, len(sentences)))
        spans = np.split(np.stack([units.starts, units.ends], axis=1), bounds)
        places = np.stack([window + len(self.arrays["input_ids"]), place], axis=1)
        next_windows = len(self.arrays["input_ids"]) + np.cumsum(windows.counts)
        label_ids, of_units = np.zeros(len(is_first), np.int32), []
        for sentence, own, of_sentence, next_window in zip(
            sentences, spans, np.split(places, bounds), next_windows.tolist(), strict=True
        ):
            own = list(itertools.starmap(Unit, own.tolist()))
            of_units += self._label_ids(sentence, own)
            self._layouts.append((own, of_sentence.tolist(), next_window))
        label_ids[is_first] = of_units
        special = bert_parts(reader.vocabulary, windows.show(tokens.ids))
        values = [*join(special)]
        for of_tokens in (label_ids, is_first.numpy().astype(np.int32)):
            shown = windows.show(tokens.ids.with_values(of_tokens))
            values.append(join([([0], 0), (shown, 0), ([0], 0)])[0])
        for array, ragged in zip(self.arrays.values(), values, strict=True):
            array += rows_of(ragged)
        self.num_cut += np.count_nonzero(windows.counts.numpy() > 1)

    def _label_ids(self, sentence, units):
        entities = sentence.entities or []
        on_units = to_units(entities, units)
        for entity, by_units in zip(entities, on_units, strict=True):
            if by_units is None:
                self.lost.append((sentence, entity))
            elif to_characters(by_units, units) != entity:
                self.moved.append((sentence, entity))
        return self._tag_set.ids_of(filter(None, on_units), len(units))


def write_predictions(path, lines, characters, found, scheme):
    """Writes the entities that were found, in the sentences' order.

    Args:
      path: the file. If it ends in `.jsonl`, it gets a JSON line for each sentence; otherwise a
        character, a tab and its tag per line, and a blank line after each sentence; a line
        break inside a text is then written as a space.
      lines: the number of each sentence's line in its file.
      characters: the characters of each sentence, a str or a list of str.
      found: list with a list of `FoundEntity` for each sentence.
      scheme: the scheme of the tags, a key of `entity_tags.SCHEMES`.
    """
    rows = zip(lines, characters, found, strict=True)
    if path.endswith(".jsonl"):
        text = "".join(_json_line(number, "".join(one), entities) for number, one, entities in rows)
    else:
        text = "".join(_tag_lines(one, entities, scheme) for _, one, entities in rows)
    files.write_text(path, text)


def _json_line(line, text, entities):
    values = {"line": line, "text": text, "entities": []}
    for entity in entities:
        words, probability = text[entity.start : entity.end], round(entity.probability, 6)
        entry = {**entity._asdict(), "text": words, "probability": probability}
        values["entities"].append(entry)
    return json.dumps(values, ensure_ascii=False) + "\n"


def _tag_lines(characters, entities, scheme):
    ends = [0, *itertools.accumulate(map(len, characters))]
    units = list(itertools.starmap(Unit, itertools.pairwise(ends)))
    on_units = filter(None, to_units([entity.entity for entity in entities], units))
    tags = tags_of(on_units, len(units), scheme)
    rows = zip(characters, tags, strict=True)
    shown = {"\n": " ", "\r": " "}
    return "".join(f"{shown.get(c, c)}\t{tag}\n" for c, tag in rows) + "\n"


def write_exports(folder, entity_files, found):
    """Writes each export of an annotation program again, with the entities that were found.

    Args:
      folder: the folder to write to. It is made if a file is written.
      entity_files: dict of path to `EntityFile`.
      found: list with a list of `FoundEntity` for each sentence of all files.
    """
    rest, taken = iter(found), set()
    for path, file in entity_files.items():
        entities = list(itertools.islice(rest, len(file.sentences)))
        if file.export:
            storage.makedirs(folder)
            name = _free_name(os.path.basename(unpacked_name(path)), taken)
            taken.add(name)
            files.write_text(os.path.join(folder, name), file.export(entities))


def _free_name(name, taken):
    """Returns a name that is not taken yet; files of several folders may have the same."""
    stem, ending = os.path.splitext(name)
    names = itertools.chain([name], (f"{stem}_{n}{ending}" for n in itertools.count(2)))
    return next(name for name in names if name not in taken)
