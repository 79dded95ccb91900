"""The YAML head of a model card, as the hubs of Hugging Face and ModelScope read it.

Its keys are those of both: `library_name` and `pipeline_tag` are Hugging Face's, `frameworks` and
`tasks` ModelScope's.
"""

import json
import math
import os
import re

from nezha_tf import hub
from nezha_tf.checkpoints.task_table import TASKS
from nezha_tf.objectives.uses import PIPELINE_TAGS, uses_of
from nezha_tf.util import storage

FILE_NAME = "README.md"
# The keys that only the user of a model knows. They are what this project never writes by itself.
OF_USER = ("license", "license_name", "license_link", "datasets")
# Those that stay true when the model takes another form, and its results.
OF_MODEL = (*OF_USER, "base_model")
OF_RESULTS = ("metrics", "model-index")
# What any model does, if nothing says what it was trained to.
VECTORS = "feature-extraction"
_LANGUAGE = "zh"
# A head is in the first bytes of a file.
_MOST_BYTES = 1 << 16
_HEAD = re.compile(r"\A---[ \t\r]*\n(.*?)^---[ \t\r]*$\n?", re.MULTILINE | re.DOTALL)
_KEY = re.compile(r"^([\w-]+):.*\n(?:[ -].*\n)*", re.MULTILINE)
# What JSON writes as it is, but YAML does not read, or takes for the end of a line.
_UNREAD = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")

# Our names of metrics to those of the library `evaluate`, by which the hubs know them.
_METRIC_TYPES = {
    "macro_f1": "f1",
    "micro_f1": "f1",
    "em": "exact_match",
    "spearman": "spearmanr",
    "pearson": "pearsonr",
    "mean_squared_error": "mse",
    "rouge_1": "rouge",
    "rouge_2": "rouge",
    "rouge_l": "rouge",
}


def text_of(*, library, framework, tag, tags=(), base=None, is_adapter=False, index=()):
    """Returns a head, `---` lines included; what is None or empty is left out.

    Args:
      library: what opens the files, `library_name`; or None.
      framework: "tensorflow" or "pytorch".
      tag: what the model does, `pipeline_tag`; see `pipeline_tag`.
      tags: further tags; see `tags_of`.
      base: the name on a hub of the model that it was made of, OWNER/NAME; see `base_of`.
      is_adapter: whether it is an adapter of the base.
      index: `model-index`, a list of dict; see `index_of`.
    """
    metrics = {
        row["type"] for model in index for each in model["results"] for row in each["metrics"]
    }
    values = {
        "language": _LANGUAGE,
        "library_name": library,
        "frameworks": [framework],
        "pipeline_tag": tag,
        "tasks": [tag],
        "tags": list(tags),
        "base_model": base,
        "base_model_relation": "adapter" if base and is_adapter else None,
        "metrics": sorted(metrics),
        "model-index": list(index),
    }
    values = {name: value for name, value in values.items() if value not in (None, [], "")}
    return "\n".join(["---", *_lines(values), "---", ""])


def pipeline_tag(settings):
    """Returns what a model does, by the hubs' names, from the contents of its `task.json`."""
    row = TASKS.get(settings["task"])
    if row and row.pipeline_tag:
        return row.pipeline_tag
    return next(filter(None, map(PIPELINE_TAGS.get, uses_of(settings))), VECTORS)


def tags_of(config, *others):
    """Returns the tags of a model with a `NezhaConfig`: this project, the kind of model, others."""
    kind = config.hugging_face_model
    return ["nezha_tf", *([kind.model_type] if kind else []), *others]


def base_of(path):
    """Returns OWNER/NAME of a model's path if that names a model on a hub, else None."""
    return hub.repository_of(path) if hub.is_name(path) else None


def completed(text, folder, keys):
    """Returns the text of a card with what the head of a folder's card says and its own does not.

    The lines are taken as they stand there.

    Args:
      text: the text of the new card; that of an older run has no head, and stays as it is.
      folder: a folder with a card, or without one.
      keys: which keys of the head, such as `OF_USER`.
    """
    there, found = _keys_of(text), _keys_of(start_of(folder))
    lines = (found[key] for key in keys if key in found and key not in there)
    return text.replace("\n", "\n" + "".join(lines), 1) if _HEAD.match(text) else text


def _keys_of(text):
    """Returns the keys of a card's head with their lines, {} without a head."""
    head = _HEAD.match(text)
    lines = head[1].replace("\r", "") if head else ""
    return {match[1]: match[0] for match in _KEY.finditer(lines)}


def body_of(text):
    """Returns the text of a card after its head."""
    return _HEAD.sub("", text, count=1)


def start_of(folder):
    """Returns the start of a folder's card; "" without one, and U+FFFD for what is not UTF-8."""
    try:
        with storage.open_binary(os.path.join(folder, FILE_NAME), "rb") as file:
            return file.read(_MOST_BYTES).decode(errors="replace")
    except OSError:
        return ""


def _lines(value):
    """Yields the lines of a dict or list in YAML."""
    rows = value.items() if isinstance(value, dict) else ((None, each) for each in value)
    for name, each in rows:
        start = "-" if name is None else f"{name}:"
        if not isinstance(each, (dict, list)):
            yield f"{start} {_scalar(each)}"
            continue
        lines = list(_lines(each))
        if name is None:
            yield f"- {lines[0]}"
            del lines[0]
        else:
            yield start
        yield from (f"  {line}" for line in lines)


def _scalar(value):
    """Returns a text or number in YAML: its JSON, which YAML contains but for some signs."""
    if isinstance(value, float):
        text = repr(value)  # finite
        return text if "." in text else text.replace("e", ".0e")
    found = json.dumps(value, ensure_ascii=False)
    return _UNREAD.sub(lambda match: f"\\u{ord(match[0]):04x}", found)


def metric_type(name):
    """Returns the hubs' name of a metric."""
    return "accuracy" if name.endswith("_accuracy") else _METRIC_TYPES.get(name, name)


def index_of(name, results):
    """Returns `model-index`, a list of dict, of a model's name and its `result`s, or None each."""
    found = [each for each in results if each]
    return [{"name": name, "results": found}] if found else []


def result(tag, data, split, metrics):
    """Returns a result for `model-index`, a dict; or None without metrics.

    Args:
      tag: what the model does.
      data: the name of the data set.
      split: "validation" or "test".
      metrics: dict of name to number; losses, numbers of a class alone and what is not finite are
        left out.
    """
    rows = [
        {"type": metric_type(name), "value": float(f"{value:.6g}"), "name": name}
        for name, value in metrics.items()
        if name not in ("loss", "global_step") and "/" not in name and math.isfinite(value)
    ]
    if not rows:
        return None
    found = {"task": {"type": tag}, "dataset": {"name": data, "type": data, "split": split}}
    return {**found, "metrics": rows}
