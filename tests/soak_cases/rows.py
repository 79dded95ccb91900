"""The examples of TFRecord files, read by their features, and the checks that each must pass."""

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from soak_cases.corpora import VOCABULARY, as_text

TOKENS = VOCABULARY.read_text(encoding="utf-8").split("\n")[:-1]
PAD, CLS, SEP, MASK = map(TOKENS.index, ("[PAD]", "[CLS]", "[SEP]", "[MASK]"))
IS_CONTINUATION = np.array([token.startswith("##") for token in TOKENS])

_ALWAYS = {"input_ids", "input_mask", "segment_ids", "next_sentence_labels"}
_OF_SLOTS = {"masked_lm_positions", "masked_lm_ids", "masked_lm_weights"}


class Row(NamedTuple):
    """An example without its padding, with what was masked put back.

    Attributes:
      ids: int [n].
      segments: list of str as of `as_text`: what stands between [CLS] and the [SEP]s.
      label: of the next sentence.
      is_full: whether there is no padding.
      positions: the places of the predictions, int [m].
      found: what stood there, int [m], and `labels` what was there before.
      word_starts: bool [n], whether a word begins; of examples that are not masked, else None.
    """

    ids: np.ndarray
    segments: list
    label: int
    is_full: bool
    positions: np.ndarray
    found: np.ndarray
    labels: np.ndarray
    word_starts: np.ndarray | None


def read_examples(path):
    """Yields the examples of a file as dicts of name to array."""
    for record in tf.data.TFRecordDataset(str(path)).as_numpy_iterator():
        features = tf.train.Example.FromString(record).features.feature
        yield {name: _array(feature) for name, feature in features.items()}


def _array(feature):
    kind = feature.WhichOneof("kind")
    return np.array(getattr(feature, kind).value)


class RowLaws:
    """Checks examples that were made with given settings."""

    def __init__(self, case, settings):
        """Args:
        case: the `Case` that takes the faults.
        settings: dict of the flags of tools/create_pretraining_data.py, all that matter here.
        """
        self._law = case.law
        self._length = settings["max_seq_length"]
        self._slots = settings["max_predictions_per_seq"]
        self._share = settings["masked_lm_prob"]
        self._masking = settings["masking"]
        self._of_pairs = settings["pair"] != "none"

    def row(self, example, place):
        """Returns the `Row` of an example, or None if it is too odd to be one."""
        if not self._has_its_form(example, place):
            return None
        used = int(example["input_mask"].sum())
        ids = example["input_ids"][:used].copy()
        positions, found, labels = self._predictions(example, ids, place)
        if self._masking == "none":
            self._check_word_starts(example["word_starts"], ids, place)
        separators = np.flatnonzero(ids == SEP)
        shape = ids[0] == CLS and ids[-1] == SEP and not np.isin(ids[1:], (CLS, PAD, MASK)).any()
        shape &= len(separators) == 2 if self._of_pairs else len(separators) > 0
        if not self._law("[CLS] first, [SEP] last, none else", shape, f"{place}: {ids}"):
            return None
        self._check_segments(example, separators, used, place)
        starts = [1, *(separators[:-1] + 1)]
        segments = [as_text(ids[a:b]) for a, b in zip(starts, separators, strict=True)]
        self._law("no segment is empty", all(segments), f"{place}: {ids}")
        label = int(example["next_sentence_labels"][0])
        word_starts = example["word_starts"][:used] > 0 if self._masking == "none" else None
        is_full = used == self._length
        return Row(ids, segments, label, is_full, positions, found, labels, word_starts)

    def _has_its_form(self, example, place):
        is_masked = self._masking != "none"
        names = _ALWAYS | (_OF_SLOTS if is_masked else {"word_starts"})
        lengths = {name: self._slots if name in _OF_SLOTS else self._length for name in names}
        lengths["next_sentence_labels"] = 1
        told = f"{place}: { {name: values.shape for name, values in example.items()} }"
        has_form = {n: len(v) for n, v in example.items()} == lengths
        if not self._law("features and their lengths", has_form, told):
            return False
        ids, mask = example["input_ids"], example["input_mask"]
        used = mask.sum()
        is_used = np.arange(self._length) < used
        self._law("ids in range", (0 <= ids).all() and (ids < len(TOKENS)).all(), place)
        self._law("padding is zeros", not (ids[~is_used].any()), place)
        self._law("the label is 0 or 1", example["next_sentence_labels"][0] in (0, 1), place)
        return self._law("the mask is 1s, then 0s", (mask == is_used).all() and used > 2, place)

    def _check_segments(self, example, separators, used, place):
        places = np.arange(self._length)
        of_second = (places > separators[0]) & (places < used)
        expected = of_second if self._of_pairs else np.zeros_like(of_second)
        self._law("segment ids", (example["segment_ids"] == expected).all(), place)

    def _predictions(self, example, ids, place):
        """Undoes the masking; returns (places, masked tokens, original tokens)."""
        nothing = (np.empty(0, int),) * 3
        if self._masking == "none":
            return nothing
        positions, labels, weights = (
            example[f"masked_lm_{n}"] for n in ("positions", "ids", "weights")
        )
        count = int(weights.sum())
        told = f"{place}: {positions} {labels} {weights}"
        is_slot = np.arange(self._slots) < count
        self._law("weights are 1s, then 0s", (weights == is_slot).all(), told)
        self._law("unused slots are 0", not (positions + labels)[~is_slot].any(), told)
        positions, labels = positions[:count], labels[:count]
        self._law("predictions rise", (np.diff(positions) > 0).all(), told)
        if not self._law("predictions are in the text", self._are_inside(positions, ids), told):
            return nothing
        self._law("no label is special", not np.isin(labels, (PAD, CLS, SEP, MASK)).any(), told)
        found = ids[positions]
        ids[positions] = labels
        self._check_choice(positions, ids, told)
        return positions, found, labels

    @staticmethod
    def _are_inside(positions, ids):
        return ((positions > 0) & (positions < len(ids) - 1)).all()

    def _check_choice(self, positions, ids, told):
        budget = min(self._slots, max(1, round(len(ids) * self._share)))
        self._law("predictions are within the budget", len(positions) <= budget, told)
        is_text = ~np.isin(ids, (CLS, SEP))
        if self._masking == "token":
            wanted = min(budget, is_text.sum())
            self._law("single tokens use up the budget", len(positions) == wanted, told)
            return
        # A token that continues the one before it belongs to the same word.
        is_predicted = np.zeros(len(ids), bool)
        is_predicted[positions] = True
        goes_on = IS_CONTINUATION[ids[1:]] & is_text[:-1]
        parted = goes_on & (is_predicted[1:] != is_predicted[:-1])
        self._law("words are predicted whole", not parted.any(), f"{told} {ids}")

    def _check_word_starts(self, word_starts, ids, place):
        is_text = np.zeros(self._length, bool)
        is_text[: len(ids)] = ~np.isin(ids, (CLS, SEP))
        self._law("words begin in the text", not word_starts[~is_text].any(), place)
        starts = word_starts[: len(ids)]
        firsts = is_text[1 : len(ids)] & ~is_text[: len(ids) - 1]
        self._law("a word begins each segment", starts[1:][firsts].all(), place)
        goes_on = IS_CONTINUATION[ids[1:]] & is_text[: len(ids) - 1]
        self._law("no word begins within a word", not starts[1:][goes_on].any(), place)
