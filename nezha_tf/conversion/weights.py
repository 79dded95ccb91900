"""Which variables of a checkpoint are the weights of a model, and what they are."""

import re
from typing import NamedTuple

import numpy as np

from nezha_tf.checkpoints import tf1
from nezha_tf.checkpoints.name_table import tf1_names
from nezha_tf.checkpoints.tf1 import AVERAGE_SUFFIX, SEGMENT_TABLE, UNILM_ROWS
from nezha_tf.errors import UserError
from nezha_tf.model_folder.kinds import POOLER, kind_of
from nezha_tf.model_folder.task_row import Kind

FLOATS = ("float16", "bfloat16", "float32", "float64")
# The key of a configuration that says how many rows a table has.
_TABLES = {
    "bert/embeddings/word_embeddings": "vocab_size",
    "bert/embeddings/position_embeddings": "max_position_embeddings",
    SEGMENT_TABLE: "type_vocab_size",
}
_MOST_NAMES = 6


class Weights(NamedTuple):
    """The weights of one model.

    Attributes:
      kind: the `Kind`.
      num_labels: L of a head of labels.
      values: {TF1 name: float32 NumPy array in TF1's layout}.
      missing: names, or prefixes of heads, that were allowed to be missing.
      left_out: (what, names) of variables that are not converted.
    """

    kind: Kind
    num_labels: int
    values: dict[str, np.ndarray]
    missing: list[str]
    left_out: list[tuple[str, list[str]]]

    def model(self, config):
        """Returns our model of them, with random weights."""
        return self.kind.model(config, self.num_labels)

    # As of `tf.train.CheckpointReader`, for `tf1.load_weights`.

    def get_variable_to_shape_map(self):
        return {name: list(value.shape) for name, value in self.values.items()}

    def get_tensor(self, name):
        return self.values[name]


def read_weights(source, *, averages=False, drop=(), allow_missing=()):
    """Reads the weights of a model.

    Args:
      source: a `Source`.
      averages: whether the moving averages of the weights are taken for them.
      drop: prefixes of TF1 names that are left out.
      allow_missing: prefixes of TF1 names that may be missing, or be of no such model; the
        latter are left out.

    Returns:
      `Weights`.

    Raises:
      UserError: variables that are missing, unexpected, of another shape than the configuration
        makes them, or not finite numbers; or a damaged file.
    """
    drop, allowed = tuple(filter(None, drop)), tuple(filter(None, allow_missing))
    model = source.config.hugging_face_model
    if model and not model.has_pooler:
        allowed += (POOLER,)
    shapes = source.reader.get_variable_to_shape_map()
    weights = {name for name in shapes if tf1.is_weight(name, shapes)}
    kept = {name for name in weights if not name.startswith(drop)}
    kind = kind_of(kept, source.kind)
    num_labels = kind.num_labels({name: shapes[name] for name in kept})
    variables = tf1_names(kind.model(source.config, num_labels))
    missing = [name for name in variables if name not in kept]
    missing += _absent_heads(source.kind, kept, drop)
    unexpected = sorted(kept - set(variables))
    _check_names(source, kept, missing, unexpected, allowed)
    found = [name for name in variables if name in kept]
    if not found:
        raise UserError(f"nothing is left of checkpoint {source.path}; leave out --drop")
    for name in found:
        _check_shape(source, name, shapes[name], variables[name].shape)
    averaged = _averages(source, shapes, found) if averages else {}
    values = {name: _tensor(source, averaged.get(name, name)) for name in found}
    left_out = _left_out(shapes, weights, kept, unexpected, set(averaged.values()))
    return Weights(kind, num_labels, values, missing, left_out)


def _absent_heads(said, kept, drop):
    """Returns the prefixes of the heads that the model is said to have and has nothing of."""
    heads = [head for head in (said.prefixes if said else ()) if not head.startswith(drop)]
    return [head for head in heads if not any(name.startswith(head) for name in kept)]


def _check_names(source, kept, missing, unexpected, allowed):
    missing, unexpected = (
        [name for name in names if not name.startswith(allowed)] for names in (missing, unexpected)
    )
    if not missing and not unexpected:
        return
    if not kept or len(unexpected) == len(kept):
        raise UserError(
            f"checkpoint {source.path} holds no weights under the names of BERT or NEZHA, but "
            f"{_listed(sorted(kept)) or 'nothing'}"
        )
    numbers = [int(found[1]) for found in map(re.compile(r".*/layer_(\d+)/").match, kept) if found]
    layers, expected = max(numbers, default=-1) + 1, source.config.num_hidden_layers
    if layers != expected and any("/layer_" in name for name in missing + unexpected):
        raise UserError(
            f"checkpoint {source.path} has {layers} layers, and its configuration {expected} "
            "(num_hidden_layers); pass the one that belongs to it with --config_file"
        )
    wrong = [f"lacks {_listed(missing)}"] if missing else []
    wrong += [f"has {_listed(unexpected)}, which no such model has"] if unexpected else []
    raise UserError(
        f"checkpoint {source.path} {' and '.join(wrong)}; name them (or how they begin) in "
        "--allow_missing to convert without them, or pass --config_file"
    )


def _listed(names):
    more = len(names) - _MOST_NAMES
    return ", ".join(names[:_MOST_NAMES]) + (f" and {more} more" if more > 0 else "")


def _check_shape(source, name, found, expected):
    if tuple(found) == tuple(expected):
        return
    key = _TABLES.get(name)
    if key and len(found) == 2 and found[1] == expected[1]:
        raise UserError(
            f"checkpoint {source.path}: {name} has {found[0]} rows, and the configuration "
            f"{expected[0]} ({key}); pass the one that belongs to it with --config_file"
        )
    raise UserError(
        f"checkpoint {source.path}: {name} has shape {list(found)}, and the configuration makes "
        f"it {list(expected)}; pass the one that belongs to it with --config_file"
    )


def _averages(source, shapes, names):
    """Returns {weight: its average} by name; weights that were not trained have none."""
    averaged = {
        name: f"{name}/{AVERAGE_SUFFIX}" for name in names if f"{name}/{AVERAGE_SUFFIX}" in shapes
    }
    if not averaged:
        raise UserError(f"checkpoint {source.path} holds no averages of weights (--averages)")
    return averaged


def _tensor(source, name):
    value = np.asarray(tf1.read_tensor(source.reader, source.path, name))
    if value.dtype.name not in FLOATS:
        raise UserError(
            f"checkpoint {source.path}: {name} is of {value.dtype.name}; only floating-point "
            "weights can be converted"
        )
    value = value.astype(np.float32)
    if not np.isfinite(value).all():
        raise UserError(
            f"checkpoint {source.path}: {name} holds NaN or infinity; take an earlier checkpoint"
        )
    return value


def _left_out(shapes, weights, kept, unexpected, used):
    """Returns (what, names) of the variables that are not converted."""
    others = set(shapes) - weights - used
    averages = {name for name in others if name.endswith(f"/{AVERAGE_SUFFIX}")}
    state = {name for name in others if name in tf1.STATE or name.startswith("nezha_tf/")}
    rows = [
        ("optimizer slots", others - averages - state),
        ("moving averages", averages),
        ("state of the run", state),
        ("weights of --drop", weights - kept),
        ("unexpected weights", unexpected),
    ]
    return [(what, sorted(names)) for what, names in rows if names]


def with_segments(weights, config, rows):
    """Returns the weights and the configuration with another number of segment rows.

    Args:
      weights: `Weights`.
      config: `NezhaConfig` that they belong to.
      rows: 6 of 2, as UniLM begins, or 2 of 6, the first two; or as many as there are.

    Returns:
      (`Weights`, a few words on what was done or "").

    Raises:
      UserError: other numbers of rows, or no such table.
    """
    present = config.type_vocab_size
    if rows in (None, present):
        return weights, ""
    table = weights.values.get(SEGMENT_TABLE)
    if table is None or (present, rows) not in ((2, 6), (6, 2)):
        raise UserError(
            f"--type_vocab_size={rows}: the model has {present if table is not None else 'no'} "
            "segment rows, and 2 can become 6 (UniLM's), or 6 become 2"
        )
    origins = UNILM_ROWS if rows == len(UNILM_ROWS) else (0, 1)
    words = "2, 3 and 4 begin as row 0, and 5 as row 1" if rows == 6 else "rows 0 and 1 are kept"
    values = {**weights.values, SEGMENT_TABLE: table[list(origins)]}
    return weights._replace(values=values), f"{present} become {rows}: {words}"


def rounded(weights, dtype):
    """Returns the weights as they are in a type of NumPy's, a `float32` or `float16`.

    Raises:
      UserError: one of them is too large for it.
    """
    values = {}
    for name, value in weights.values.items():
        with np.errstate(over="ignore"):
            values[name] = value.astype(dtype)
        if not np.isfinite(values[name]).all():
            raise UserError(f"{name} holds numbers that are too large for --dtype={dtype}")
    return weights._replace(values=values)
