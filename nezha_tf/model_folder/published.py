"""What a published folder says of its model where no run has left a `task.json`."""

import os

from nezha_tf.checkpoints import loading
from nezha_tf.data.entity_tags import TAG, scheme_of
from nezha_tf.errors import UserError
from nezha_tf.files import read_object
from nezha_tf.model_folder import task_file

CONFIG_FILE, TOKENIZER_FILE = "config.json", "tokenizer_config.json"
# The heads of fine-tuned models, by TF1's names.
CLASSIFIER, SPAN, CRF = "output_weights", "cls/squad/output_weights", "crf/transitions"
# Hugging Face's models with a head for a task that is none of ours.
MULTIPLE_CHOICE = "ForMultipleChoice"
# The longest that published models were pretrained with; relative positions have no bound.
MAX_SEQ_LENGTH = 512
# The defaults of run_squad.py.
ANSWERING = {
    "max_query_length": 64,
    "doc_stride": 128,
    "max_answer_length": 30,
    "n_best_size": 20,
    "version_2_with_negative": False,
    "null_score_diff_threshold": 0.0,
}


def do_lower_case(folder, default=True):
    """Returns what Hugging Face's `tokenizer_config.json` says of lower-casing, or the default.

    Raises:
      UserError: a damaged file.
    """
    path = os.path.join(folder, TOKENIZER_FILE)
    values = read_object(path) or {}
    if "do_lower_case" not in values:
        return default
    value = values["do_lower_case"]
    if not isinstance(value, bool):
        raise UserError(f"{path}: do_lower_case must be true or false, not {value!r}")
    return value


def architecture_of(values):
    """Returns the class of transformers that a `config.json` (a dict) names, or ""."""
    names = values.get("architectures")
    name = names[0] if isinstance(names, list) and names else ""
    return name if isinstance(name, str) else ""


def settings_of(folder, config, checkpoint):
    """Returns settings as in `task.json`, by the head that the weights have.

    The names of classes are those of `id2label` in Hugging Face's `config.json`; else they are
    LABEL_0, LABEL_1 and so on, as there. Whether a classifier is of pairs nothing tells: it is
    taken to be of texts.

    Args:
      folder: where it is.
      config: `NezhaConfig`.
      checkpoint: as for `loading.open_checkpoint`.

    Returns:
      Dict as of `task_file.read`, or {"task": None} for a model without such a head.

    Raises:
      UserError: a damaged checkpoint or configuration.
    """
    shapes = loading.open_checkpoint(checkpoint)[1].get_variable_to_shape_map()
    path = os.path.join(folder, CONFIG_FILE)
    theirs = read_object(path) or {}
    architecture = architecture_of(theirs)
    if SPAN in shapes:
        own = {"task": "reading_comprehension", **ANSWERING}
    elif CLASSIFIER in shapes and not architecture.endswith(MULTIPLE_CHOICE):
        num_labels = shapes[CLASSIFIER][0]
        if CRF in shapes or architecture.endswith("ForTokenClassification"):
            own = _tagging(path, theirs, num_labels, CRF in shapes)
        else:
            own = _classification(path, theirs, num_labels)
    else:
        return {"task": None}
    length = min(MAX_SEQ_LENGTH, config.max_position_embeddings)
    common = {
        "do_lower_case": do_lower_case(folder),
        "max_seq_length": length,
        "uses_averages": False,
    }
    if own["task"] == "tagging":
        own["window_stride"] = max(1, (length - 2) // 2)
    settings = {"task": own["task"], **common, **own}
    task_file.check(path, settings)
    return settings


def _tagging(path, theirs, num_labels, crf):
    labels = _labels(path, theirs, num_labels)
    are_tags = all(TAG.fullmatch(label) for label in labels)
    scheme = scheme_of(labels) if are_tags else "BIO"
    return {"task": "tagging", "labels": labels, "scheme": scheme, "crf": crf}


def _classification(path, theirs, num_labels):
    own = {"task": "classification", "is_pair": False}
    if num_labels == 1:
        return {**own, "label_type": "regression", "labels": []}
    is_multi = theirs.get("problem_type") == "multi_label_classification"
    labels = _labels(path, theirs, num_labels)
    return {**own, "label_type": "multi" if is_multi else "single", "labels": labels}


def _labels(path, theirs, num_labels):
    names = theirs.get("id2label")
    if names is None:
        return [f"LABEL_{number}" for number in range(num_labels)]
    numbers = [str(number) for number in range(num_labels)]
    found = [names.get(number) for number in numbers] if isinstance(names, dict) else [None]
    if len(names) != num_labels or not all(isinstance(name, str) for name in found):
        raise UserError(
            f"{path}: id2label must name the classes 0 to {num_labels - 1} of the weights"
        )
    return found
