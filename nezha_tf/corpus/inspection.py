"""Shows examples as text; the code of `tools/inspect_tfrecords.py`."""

import functools
import itertools
import os
import re
import sys

import numpy as np

from nezha_tf.corpus.provenance import fault_of_vocabulary
from nezha_tf.corpus.shard_files import example_files, manifest_name, shards_in
from nezha_tf.data import schema
from nezha_tf.data.framing import read_frames, record_of
from nezha_tf.text.vocabulary import Vocabulary
from nezha_tf.util import console, storage
from nezha_tf.util.errors import UserError
from nezha_tf.util.package_data import located

# Runs of predicted tokens are shown in brackets, with their replacement if it is not [MASK]; on a
# terminal in colour too.
LEGEND = "[字] masked   [字→人] replaced by another token   [字=] predicted but unchanged"
UNMASKED_LEGEND = "| is between words; nothing is masked"
MASKED, REPLACED, KEPT = "31", "33", "32"  # red, yellow, green
_WORD = re.compile(r"[^\W\u2e80-\U0010ffff]")


def show(settings):
    """Prints examples with their predictions marked, as `InspectionSettings` say.

    Raises:
      UserError: a file or its vocabulary cannot be read, or a record to show is damaged or is
        not an example.
    """
    # The caches make each manifest and each vocabulary be read only once.
    named, vocabulary_in = functools.cache(shards_in), functools.cache(Vocabulary.from_file)
    shown = 0
    for path in example_files(settings.input_file, "input_file"):
        source = settings.vocab_file or _vocab_file(path, named(manifest_name(path)))
        vocabulary = vocabulary_in(source)
        of_other = fault_of_vocabulary(path, source)
        if of_other:
            raise UserError(f"{path} {of_other}")
        for number, frame, fault in read_frames(path):
            if shown == settings.num_records:
                return
            if number < settings.first_record:
                continue
            try:
                if fault:
                    raise ValueError(fault)
                features = arrays_of(record_of(frame))
                text = text_of(features, vocabulary, sys.stdout.isatty())
            except ValueError as error:
                raise UserError(f"{path}, record {number}: {error}") from error
            except IndexError as error:
                raise UserError(
                    f"{path}, record {number}: an id is outside the {len(vocabulary)} tokens of "
                    "the vocabulary; pass the --vocab_file that it was made with"
                ) from error
            if not shown:
                console.tell(UNMASKED_LEGEND if "word_starts" in features else LEGEND)
            console.tell(f"{path}, record {number}: {text}")
            shown += 1
    if not shown:
        raise UserError(f"--first_record={settings.first_record}: no file has that many records")


def _vocab_file(path, named):
    _, entry, _ = named.get(os.path.basename(path), (None, {}, None))
    vocab_file = entry.get("flags", {}).get("vocab_file", "")
    if not storage.exists(located(vocab_file)):
        raise UserError(f"{path}: --vocab_file is needed, the vocabulary that it was made with")
    return vocab_file


def arrays_of(record):
    """Returns the features of a record (bytes) as a dict of name to array.

    Raises:
      ValueError: it is not a `tf.train.Example` with the features of a masked or unmasked
        example.
    """
    features = schema.parsed(record)
    if features is None:
        raise ValueError("it is not a tf.train.Example")
    arrays = {}
    for feature in schema.features_of(record):
        if feature.name not in features:
            raise ValueError(f"it lacks the feature {feature.name}")
        value, is_float = features[feature.name], feature.dtype is np.float32
        numbers = (value.float_list if is_float else value.int64_list).value
        if not numbers:
            raise ValueError(f"{feature.name} has no {'real' if is_float else 'whole'} numbers")
        arrays[feature.name] = np.array(numbers)
    return arrays


def text_of(features, vocabulary, in_colour):
    """Returns an example as lines: its counts, segment A, and segment B if there is one.

    In an unmasked example, bars separate the words. `features` are those of `arrays_of`. Raises an
    `IndexError` if an id is outside the vocabulary.
    """
    length = int(features["input_mask"].sum())
    ids = features["input_ids"][:length].tolist()
    label = int(features["next_sentence_labels"][0])
    starts = features.get("word_starts")
    if starts is None:
        count = int(features["masked_lm_weights"].sum())
        positions = features["masked_lm_positions"][:count].tolist()
        labels = dict(zip(positions, features["masked_lm_ids"].tolist(), strict=False))
        lines = [f"{length} tokens, {count} predicted, next_sentence_labels {label}"]
    else:
        lines = [f"{length} tokens, {int(starts.sum())} words, next_sentence_labels {label}"]
    for number, name in enumerate("AB"):
        places = np.flatnonzero(features["segment_ids"][:length] == number).tolist()
        if places and starts is None:
            lines.append(f"  {name}  {_marked(places, ids, labels, vocabulary, in_colour)}")
        elif places:
            lines.append(f"  {name}  {_with_bars(places, ids, starts, vocabulary)}")
    return "\n".join(lines)


def _marked(places, ids, labels, vocabulary, in_colour):
    """Returns the text of some positions; runs of predictions of one kind share brackets."""
    parts, previous = [], ""
    for kind, run in itertools.groupby(places, lambda place: _kind(place, ids, labels, vocabulary)):
        run = list(run)
        true = _join(vocabulary.tokens_of([labels.get(place, ids[place]) for place in run]))
        there = _join(vocabulary.tokens_of([ids[place] for place in run]))
        first = vocabulary.tokens[labels.get(run[0], ids[run[0]])]
        shown = {MASKED: f"[{true}]", REPLACED: f"[{true}→{there}]", KEPT: f"[{true}=]"}
        text = shown.get(kind, true)
        if kind and in_colour:
            text = f"\033[{kind}m{text}\033[0m"
        parts.append(" " * _has_space(previous, first) + text)
        previous = true
    return "".join(parts)


def _with_bars(places, ids, starts, vocabulary):
    text = ""
    for place in places:
        token = vocabulary.tokens[ids[place]]
        is_special = token in ("[CLS]", "[SEP]")
        if starts[place] and text and not text.endswith("[CLS]"):
            text += "|"
        elif is_special or _has_space(text, token):
            text += " " * bool(text)
        text += token[2:] if token[:2] == "##" else token
    return text


def _kind(place, ids, labels, vocabulary):
    if place not in labels:
        return ""
    if ids[place] == vocabulary.mask_id:
        return MASKED
    return KEPT if ids[place] == labels[place] else REPLACED


def _join(tokens):
    """Returns tokens as text, with spaces between Latin words but not in Chinese."""
    text = ""
    for token in tokens:
        text += " " * _has_space(text, token) + (token[2:] if token[:2] == "##" else token)
    return text


def _has_space(text, token):
    if not text or token.startswith("##"):
        return False
    is_special = text.endswith(("[CLS]", "[SEP]")) or token in ("[CLS]", "[SEP]")
    return is_special or bool(_WORD.match(text[-1]) and _WORD.match(token))
