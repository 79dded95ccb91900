"""Converts Hugging Face's `config.json` of a fine-tuned model to settings of `task.json`."""

from typing import NamedTuple

from nezha_tf.data.entity_tags import read_labels, scheme_of
from nezha_tf.util.errors import UserError

# The defaults of run_squad.py.
_ANSWERING = {
    "max_query_length": 64,
    "doc_stride": 128,
    "max_answer_length": 30,
    "n_best_size": 20,
    "version_2_with_negative": False,
    "null_score_diff_threshold": 0.0,
}


class Published(NamedTuple):
    """A published model with the head of a task."""

    path: str  # of its `config.json`, for messages
    values: dict  # the contents of `config.json`; {}: there is no such file
    num_labels: int  # rows of its head of labels
    max_seq_length: int  # the assumed maximum of tokens in its input


def classification(published):
    """Returns the settings of a classifier of single texts: no file says if it is for pairs."""
    values = published.values
    if published.num_labels == 1:
        return {"label_type": "regression", "labels": [], "is_pair": False}
    is_multi = values.get("problem_type") == "multi_label_classification"
    labels = labels_of(published)
    return {"label_type": "multi" if is_multi else "single", "labels": labels, "is_pair": False}


def tagging(published):
    """Returns the settings of a tagger without `crf`, which the weights show."""
    labels = labels_of(published)
    # Labels that are no tags, as of parts of speech, can be converted, but give no entities.
    tags = read_labels(labels)
    return {
        "labels": labels,
        "scheme": scheme_of(tags) if tags else "BIO",
        "window_stride": max(1, (published.max_seq_length - 2) // 2),
    }


def reading_comprehension(published):
    return dict(_ANSWERING)


def multiple_choice(published):
    return {"has_blanks": False}  # no file says if it fills blanks


def labels_of(published):
    """Returns the names of the labels: `id2label`, or LABEL_0 and so on as in transformers."""
    count = published.num_labels
    names = published.values.get("id2label")
    if names is None:
        return [f"LABEL_{number}" for number in range(count)]
    numbers = [str(number) for number in range(count)]
    labels = [names.get(number) for number in numbers] if isinstance(names, dict) else [None]
    if len(names) != count or not all(isinstance(name, str) for name in labels):
        raise UserError(
            f"{published.path}: id2label must name the classes 0 to {count - 1} of the weights"
        )
    return labels
