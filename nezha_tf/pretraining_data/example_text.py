"""An example as text that a person can read."""

import itertools
import re

import numpy as np

# How a prediction is shown: a run of them in brackets, with what stands in its place if that is
# not [MASK]; on a terminal in colour too.
LEGEND = "[字] masked   [字→人] another piece in its place   [字=] predicted, and left as it is"
WORDS_LEGEND = "字|人 a word ends here"
MASKED, REPLACED, KEPT = "31", "33", "32"  # red, yellow, green
_WORD = re.compile(r"[^\W\u2e80-\U0010ffff]")


def features_of(record):
    """Returns the features of a record (bytes) as arrays by name.

    Raises:
      ValueError: it is no tf.train.Example of text that is masked or to be masked.
    """
    import tensorflow as tf

    try:
        features = tf.train.Example.FromString(record).features.feature
    except Exception as error:  # protobuf's DecodeError, whose place differs between versions
        raise ValueError("it is no tf.train.Example") from error
    found = {}
    for name, feature in features.items():
        found[name] = np.array(feature.float_list.value or feature.int64_list.value)
    masking = "word_lengths" if "word_lengths" in found else "masked_lm_positions"
    missing = {"input_ids", "input_mask", "segment_ids", masking} - set(found)
    if missing:
        raise ValueError(f"it lacks the feature {min(missing)}")
    return found


def text_of(features, vocabulary, in_colour):
    """Returns an example as lines: what it is, segment A, and B if there is one.

    Args:
      features: dict of arrays, as of `features_of`.
      vocabulary: the `Vocabulary`.
      in_colour: whether predictions have the colours of a terminal.

    Raises:
      IndexError: an id is beyond the vocabulary.
    """
    length = int(features["input_mask"].sum())
    ids = features["input_ids"][:length].tolist()
    if "word_lengths" in features:
        return _text_of_unmasked(features, ids, vocabulary)
    count = int(features["masked_lm_weights"].sum())
    positions = features["masked_lm_positions"][:count].tolist()
    labels = dict(zip(positions, features["masked_lm_ids"].tolist(), strict=False))
    head = f"{length} pieces, {count} predicted"
    return _lines(features, head, lambda at: _marked(at, ids, labels, vocabulary, in_colour))


def _text_of_unmasked(features, ids, vocabulary):
    lengths = features["word_lengths"].tolist()

    def parted(places):
        words, end = [], 0
        for place in places:
            if place >= end:
                end = place + max(1, lengths[place])
                words.append(_join(vocabulary.pieces_of(ids[place:end])))
        return "|".join(words)

    count = int((features["word_lengths"] > 0).sum())
    return _lines(features, f"{len(ids)} pieces, {count} words, unmasked", parted)


def _lines(features, head, text_at):
    """Returns what an example is, and the text at the places (list of int) of each segment."""
    label = int(features["next_sentence_labels"][0])
    lines = [f"{head}, next_sentence_labels {label}"]
    segments = features["segment_ids"][: int(features["input_mask"].sum())]
    for number, name in enumerate("AB"):
        places = np.flatnonzero(segments == number).tolist()
        if places:
            lines.append(f"  {name}  {text_at(places)}")
    return "\n".join(lines)


def _marked(places, ids, labels, vocabulary, in_colour):
    """Returns the text of some positions; runs of one kind of prediction are marked as one."""
    parts, previous = [], ""
    for kind, run in itertools.groupby(places, lambda place: _kind(place, ids, labels, vocabulary)):
        run = list(run)
        true = _join(vocabulary.pieces_of([labels.get(place, ids[place]) for place in run]))
        there = _join(vocabulary.pieces_of([ids[place] for place in run]))
        first = vocabulary.pieces[labels.get(run[0], ids[run[0]])]
        shown = {MASKED: f"[{true}]", REPLACED: f"[{true}→{there}]", KEPT: f"[{true}=]"}
        text = shown.get(kind, true)
        if kind and in_colour:
            text = f"\033[{kind}m{text}\033[0m"
        parts.append(" " * _has_space(previous, first) + text)
        previous = true
    return "".join(parts)


def _kind(place, ids, labels, vocabulary):
    if place not in labels:
        return ""
    if ids[place] == vocabulary.mask_id:
        return MASKED
    return KEPT if ids[place] == labels[place] else REPLACED


def _join(pieces):
    """Returns pieces as text: Latin words are parted by spaces, Chinese is not."""
    text = ""
    for piece in pieces:
        text += " " * _has_space(text, piece) + (piece[2:] if piece[:2] == "##" else piece)
    return text


def _has_space(text, piece):
    """Whether a space stands between a text and the piece that follows it."""
    if not text or piece.startswith("##"):
        return False
    is_special = text.endswith(("[CLS]", "[SEP]")) or piece in ("[CLS]", "[SEP]")
    return is_special or bool(_WORD.match(text[-1]) and _WORD.match(piece))
