"""Sentences as windows with tags, tags of windows as entities, and files of entities."""

import bisect
import itertools
import json
import os
from typing import NamedTuple

import numpy as np

from nezha_tf.data.compression import unpacked_name
from nezha_tf.data.entity_tags import Entity, tags_of
from nezha_tf.util import files, storage


class Unit(NamedTuple):
    """The tokens that share one tag; they cover the characters [start, end) of the raw text.

    It is a single token, except where several tokens come from one character (stripping accents
    decomposes a Hangul syllable). The tag is that of the first token, whose index is `token`.
    """

    token: int
    start: int
    end: int


def units_of(tokens):
    """Returns the units of a text's tokens (`FullTokenizer.tokenize_with_offsets`), in order."""
    units = []
    for number, token in enumerate(tokens):
        if units and token.start < units[-1].end:
            units[-1] = units[-1]._replace(end=max(units[-1].end, token.end))
        else:
            units.append(Unit(number, token.start, token.end))
    return units


def to_units(entities, units):
    """Returns a list of each entity by the indices of its units, or None if it has no unit.

    An entity gets every unit with one of its characters, so an entity that begins or ends inside a
    unit grows. A unit with characters of two entities goes to the first one. An entity has no unit
    if the tokenizer drops all its characters, or the entity before it has got all its units.

    Args:
      entities: list of `Entity` by characters, in order and without overlap.
      units: list of `Unit`.
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


def window_starts(length, size, stride):
    """Returns the starts of the windows that cover a sequence; the last window is full.

    Args:
      length: length of the sequence.
      size: length of a window.
      stride: distance between the starts of two windows, at most `size`.
    """
    return [*range(0, length - size, stride), max(0, length - size)]


def best_windows(length, size, starts):
    """Returns, for each place, the window whose nearer end is farthest away, int64 [length].

    Args:
      length, size: see `window_starts`.
      starts: the result of `window_starts`.
    """
    places, starts = np.arange(length), np.array(starts)[:, None]
    ends = np.minimum(starts + size, length)
    return np.argmax(np.minimum(places - starts, ends - 1 - places), axis=0)


SPECIAL_TOKENS = 2  # [CLS] and [SEP]


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


class _Layout(NamedTuple):
    """The window of each unit of a sentence, and its place in the window: int64 [units] each."""

    units: list[Unit]
    windows: np.ndarray
    places: np.ndarray
    num_windows: int


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

    def __init__(self, sentences, tokenizer, tag_set, max_seq_length, stride):
        """Args:
        sentences: list of `entity_files.Sentence`.
        tokenizer: `FullTokenizer`.
        tag_set: `TagSet` with the labels of all entities.
        max_seq_length: most tokens of a window, special ones included.
        stride: number of tokens between the starts of two windows.
        """
        self.sentences = sentences
        self._tokenizer = tokenizer
        self._tag_set = tag_set
        self._size = max_seq_length - SPECIAL_TOKENS
        self._stride = stride
        self.num_cut, self.moved, self.lost = 0, [], []
        names = ("input_ids", "segment_ids", "label_ids", "label_mask")
        self.arrays = {name: [] for name in names}
        self._layouts = [self._add(sentence) for sentence in sentences]

    def entities(self, outputs):
        """Returns the entities that the model found, a list of `FoundEntity` for each sentence.

        A character's tag comes from the window with the most context around it.

        Args:
          outputs: dict of `tag_ids` and `probabilities`, each a list with an array [T] for each
            window, or for the first windows; sentences without all their windows are left out.
        """
        tag_ids, probabilities = outputs["tag_ids"], outputs["probabilities"]
        found, end = [], 0
        for layout in self._layouts:
            first, end = end, end + layout.num_windows
            if end > len(tag_ids):
                break
            where = list(zip(layout.windows + first, layout.places, strict=True))
            entities = self._tag_set.entities_of([tag_ids[w][p] for w, p in where])
            least = [
                float(min(probabilities[w][p] for w, p in where[entity.start : entity.end]))
                for entity in entities
            ]
            places = [to_characters(entity, layout.units) for entity in entities]
            found.append([FoundEntity(*e, p) for e, p in zip(places, least, strict=True)])
        return found

    def _add(self, sentence):
        """Makes the windows of a sentence; returns the places of its units."""
        tokens = self._tokenizer.tokenize_with_offsets(sentence.text)
        units = units_of(tokens)
        unit_places = np.array([unit.token for unit in units], np.int64)
        label_mask = np.zeros(len(tokens), np.int32)
        label_mask[unit_places] = 1
        label_ids = np.zeros(len(tokens), np.int32)
        label_ids[unit_places] = self._label_ids(sentence, units)
        ids = self._tokenizer.convert_tokens_to_ids([token.text for token in tokens])
        starts = window_starts(len(tokens), self._size, self._stride)
        for start in starts:
            part = slice(start, start + self._size)
            self._add_window(ids[part], label_ids[part], label_mask[part])
        self.num_cut += len(starts) > 1
        windows = best_windows(len(tokens), self._size, starts)[unit_places]
        places = unit_places - np.array(starts)[windows] + 1  # [CLS] comes first.
        return _Layout(units, windows, places, len(starts))

    def _add_window(self, ids, label_ids, label_mask):
        vocabulary = self._tokenizer.vocabulary
        ids = np.array([vocabulary.cls_id, *ids, vocabulary.sep_id], np.int32)
        self.arrays["input_ids"].append(ids)
        self.arrays["segment_ids"].append(np.zeros_like(ids))
        self.arrays["label_ids"].append(np.pad(label_ids, 1))
        self.arrays["label_mask"].append(np.pad(label_mask, 1))

    def _label_ids(self, sentence, units):
        entities = sentence.entities or []
        on_units = to_units(entities, units)
        for entity, stretch in zip(entities, on_units, strict=True):
            if stretch is None:
                self.lost.append((sentence, entity))
            elif to_characters(stretch, units) != entity:
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
            files.write_text(os.path.join(folder, name), file.export(entities))


def _free_name(name, taken):
    """Takes a name that is not taken yet; files of several folders may have the same."""
    stem, ending = os.path.splitext(name)
    names = itertools.chain([name], (f"{stem}_{n}{ending}" for n in itertools.count(2)))
    free = next(name for name in names if name not in taken)
    taken.add(free)
    return free


def _json_line(line, text, entities):
    entities = [
        {
            **entity._asdict(),
            "text": text[entity.start : entity.end],
            "probability": round(entity.probability, 6),
        }
        for entity in entities
    ]
    values = {"line": line, "text": text, "entities": entities}
    return json.dumps(values, ensure_ascii=False) + "\n"


def _tag_lines(characters, entities, scheme):
    ends = [0, *itertools.accumulate(map(len, characters))]
    units = [Unit(n, *places) for n, places in enumerate(itertools.pairwise(ends))]
    found = filter(None, to_units([entity.entity for entity in entities], units))
    tags = tags_of(found, len(units), scheme)
    rows = (f"{_shown(char)}\t{tag}\n" for char, tag in zip(characters, tags, strict=True))
    return "".join(rows) + "\n"


def _shown(character):
    return " " if character in ("\n", "\r") else character


def table_rows(scores, names):
    """Returns the table of an evaluation as lists of str; the first one has the names.

    Args:
      scores: dict of label to `metrics.Scores`.
      names: names of the columns after the label.
    """
    rows = [[label, *(f"{v:.4f}" for v in s[:-1]), str(s.support)] for label, s in scores.items()]
    return [["label", *names], *rows]
