"""Models of each kind that the page has a use for."""

import export_folders
import pytest
from conftest import RESOURCES

from nezha_tf.demo.models import open_models
from nezha_tf.util.errors import UserError

VOCABULARY = (RESOURCES / "vocab.txt").read_text(encoding="utf-8").split()

# In this order the random weights find some.
TAGS = ["B-LOC", "I-LOC", "O", "I-PER", "B-PER"]
SETTINGS = {
    "reviews": {
        "task": "classification",
        "label_type": "single",
        "labels": ["差评", "好评"],
        "is_pair": False,
    },
    "pairs": {
        "task": "classification",
        "label_type": "multi",
        "labels": ["a", "b", "c"],
        "is_pair": True,
    },
    "likeness": {
        "task": "classification",
        "label_type": "regression",
        "labels": [],
        "is_pair": True,
    },
    "names": {
        "task": "tagging",
        "labels": TAGS,
        "scheme": "BIO",
        "crf": False,
        "window_stride": 10,
    },
    "names_crf": {
        "task": "tagging",
        "labels": TAGS,
        "scheme": "BIO",
        "crf": True,
        "window_stride": 10,
    },
    "questions": {
        "task": "reading_comprehension",
        "max_query_length": 12,
        "doc_stride": 8,
        "max_answer_length": 5,
        "n_best_size": 4,
        "version_2_with_negative": True,
        "null_score_diff_threshold": 0.0,
    },
    "choices": {"task": "multiple_choice", "has_blanks": False},
    "idioms": {"task": "multiple_choice", "has_blanks": True},
    "titles": {
        "task": "seq2seq",
        "target_prediction": "masked",
        "max_source_length": 24,
        "max_target_length": 8,
        "truncate_source": "tail",
        "min_target_length": 2,
        "decoding": "beam",
        "beam_size": 2,
        "num_return_sequences": 1,
        "length_penalty": 0.7,
        "temperature": 1.0,
        "top_k": 0,
        "top_p": 1.0,
        "no_repeat_ngram_size": 0,
        "exempt_words": [],
        # Words of Latin letters could be parted in several ways.
        "banned_words": [token for token in VOCABULARY if token.isascii() and token != "[SEP]"],
    },
    "nezha": {"task": "pretraining", "objectives": "bidirectional"},
}


def write_folder(folder, name):
    """Writes the folder of a model of `SETTINGS`; returns its path."""
    path = folder / name
    export_folders.write_folder(path, {"max_seq_length": 32, **SETTINGS[name]})
    return str(path)


def assert_says_alike(folder, export, *texts):
    """Asserts that the page's object of an export says what that of its folder says."""
    [(ability, exported)] = open_models([str(export)]).items()
    found = exported[export.name](*texts)
    expected = open_models([str(folder)])[ability][folder.name](*texts)
    if ability == "reading_comprehension":
        expected = expected[:1]  # An export gives no other candidates.
    assert _flat(found) == pytest.approx(_flat(expected[: len(found)]), abs=1e-4)
    with pytest.raises(UserError, match="is empty; write something"):
        exported[export.name](" ", *texts[1:])


def _flat(found):
    """Returns the texts and numbers of a result as a dict by their place."""
    if isinstance(found, dict):
        found = list(found.items())
    if not isinstance(found, list | tuple):
        return {"": found}
    parts = enumerate(map(_flat, found))
    return {f"{i} {key}": value for i, part in parts for key, value in part.items()}
