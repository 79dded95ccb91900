"""Packs sentences into windows with tags, and converts tags of windows to entities."""

from typing import NamedTuple

import numpy as np

from nezha_tf.data.entity_tags import Entity
from nezha_tf.tasks.tagging import alignment

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

    units: list[alignment.Unit]
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
            places = [alignment.to_characters(entity, layout.units) for entity in entities]
            found.append([FoundEntity(*e, p) for e, p in zip(places, least, strict=True)])
        return found

    def _add(self, sentence):
        """Makes the windows of a sentence; returns the places of its units."""
        tokens = self._tokenizer.tokenize_with_offsets(sentence.text)
        units = alignment.units_of(tokens)
        unit_places = np.array([unit.token for unit in units], np.int64)
        label_mask = np.zeros(len(tokens), np.int32)
        label_mask[unit_places] = 1
        label_ids = np.zeros(len(tokens), np.int32)
        label_ids[unit_places] = self._label_ids(sentence, units)
        ids = self._tokenizer.convert_tokens_to_ids([token.text for token in tokens])
        starts = alignment.window_starts(len(tokens), self._size, self._stride)
        for start in starts:
            part = slice(start, start + self._size)
            self._add_window(ids[part], label_ids[part], label_mask[part])
        self.num_cut += len(starts) > 1
        windows = alignment.best_windows(len(tokens), self._size, starts)[unit_places]
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
        on_units = alignment.to_units(entities, units)
        for entity, stretch in zip(entities, on_units, strict=True):
            if stretch is None:
                self.lost.append((sentence, entity))
            elif alignment.to_characters(stretch, units) != entity:
                self.moved.append((sentence, entity))
        return self._tag_set.ids_of(filter(None, on_units), len(units))
