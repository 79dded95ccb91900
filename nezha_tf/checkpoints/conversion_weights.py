"""Reads the weights of the model to convert, and checks them."""

import re
from typing import NamedTuple

import numpy as np

from nezha_tf.checkpoints import loading, tf1, views
from nezha_tf.checkpoints.kinds import LAYER_MIX, POOLER, heads, kind_of
from nezha_tf.checkpoints.name_table import AVERAGE_SUFFIX, tf1_names
from nezha_tf.checkpoints.refusals import check_structure
from nezha_tf.checkpoints.task_row import Kind
from nezha_tf.checkpoints.tf1 import SEGMENT_TABLE, UNILM_ROWS
from nezha_tf.util.errors import UserError

_MOST_NAMES = 6
_LAYER = re.compile(r"(.*/layer_)(\d+)(/.*)")


class Weights(NamedTuple):
    """The weights of one model, with the interface of `tf.train.CheckpointReader`.

    Attributes:
      kind: `Kind` of the model.
      num_labels: number of labels of its head.
      values: dict of TF1 name to float32 NumPy array, in TF1's layout.
      missing: names of weights, and prefixes of heads, that are missing and were allowed to be.
      left_out: list of (what they are, names): the variables that are not converted.
    """

    kind: Kind
    num_labels: int
    values: dict[str, np.ndarray]
    missing: list[str]
    left_out: list[tuple[str, list[str]]]

    def model(self, config):
        """Returns this project's Keras model of the kind, with random weights."""
        return self.kind.model(config, self.num_labels, layer_mix=self.has_layer_mix)

    @property
    def has_layer_mix(self):
        """Whether the head of the model reads a mixture of all layers."""
        return _has(LAYER_MIX, self.values)

    def get_variable_to_shape_map(self):
        """Returns {TF1 name: shape, a list of int}."""
        return {name: list(value.shape) for name, value in self.values.items()}

    def get_tensor(self, name):
        """Returns a weight by its TF1 name."""
        return self.values[name]


def read_weights(source, *, averages=False, drop=(), allow_missing=()):
    """Returns the `Weights` of a model.

    Args:
      source: `convert.Source`.
      averages: whether to read the moving averages of the weights, not the weights.
      drop: prefixes of TF1 names; weights with these are left out.
      allow_missing: prefixes of TF1 names; weights with these may be missing. If the model of the
        configuration has no such weights, they are left out.

    Raises:
      UserError: a weight is missing, unexpected or not finite, or has another shape than the
        configuration says.
    """
    drop, allowed = tuple(filter(None, drop)), tuple(filter(None, allow_missing))
    theirs = source.config.hugging_face_model
    if theirs and not theirs.has_pooler:
        allowed += (POOLER,)
    # The model of a head that stays may have others, as ELECTRA's.
    allowed += tuple(head for head in heads() if head.startswith(drop))
    path, reader = source.checkpoint, source.reader
    others = getattr(reader, "others", ())
    reader = views.averages(path, reader) if averages else reader
    shapes = reader.get_variable_to_shape_map()
    weights = {name for name in shapes if tf1.is_weight(name, shapes)}
    for prefix in drop:
        if not _has(prefix, weights):
            raise UserError(
                f"--drop={prefix} begins no name of the weights in {path}; they are those of TF1, "
                "such as bert/pooler/dense/kernel"
            )
    kept = {name: shapes[name] for name in weights if not name.startswith(drop)}
    kind = kind_of(kept, source.kind)
    num_labels = kind.num_labels(kept)
    model = kind.model(source.config, num_labels, layer_mix=_has(LAYER_MIX, kept))
    variables = tf1_names(model)
    expected = {name: variable.shape for name, variable in variables.items()}
    advice = ", or pass another with --config_file"
    check_structure(path, kept, expected, source.config.num_hidden_groups, advice)
    missing = [name for name in expected if name not in kept]
    named = source.kind.prefixes if source.kind else ()
    absent = [head for head in named if not head.startswith(drop) and not _has(head, kept)]
    unexpected = sorted(kept.keys() - expected.keys())
    _check_names(source, kept, missing + absent, unexpected, allowed)
    if len(missing) == len(expected):
        raise UserError(f"nothing is left of checkpoint {path}; drop less with --drop")
    kept_reader = views.View(reader, {name: name for name in kept})
    loading.load_weights(model, path, kept_reader, tuple(missing), needs_finite=True)
    values = {name: v.numpy() for name, v in variables.items() if name in kept}
    left_out = _left_out(shapes, weights, kept, unexpected)
    left_out += [("ELECTRA's other model", sorted(others))] if others else []
    return Weights(kind, num_labels, values, missing + absent, left_out)


def _has(prefix, names):
    return any(name.startswith(prefix) for name in names)


def _check_names(source, kept, missing, unexpected, allowed):
    """Raises `UserError` if weights are missing or unexpected and `allowed` does not name them."""
    missing, unexpected = (
        [name for name in names if not name.startswith(allowed)] for names in (missing, unexpected)
    )
    if not missing and not unexpected:
        return
    if not kept:
        raise UserError(f"checkpoint {source.checkpoint} has no weights")
    matches = filter(None, (re.match(r".*/layer_(\d+)/", name) for name in kept))
    layers = max((int(match[1]) + 1 for match in matches), default=0)
    expected = source.config.num_hidden_layers
    if layers != expected and any("/layer_" in name for name in missing + unexpected):
        raise UserError(
            f"checkpoint {source.checkpoint} has {layers} layers, but its configuration {expected} "
            "(num_hidden_layers); pass the configuration that belongs to it with --config_file"
        )
    wrong = [f"lacks {_listed(missing)}"] if missing else []
    wrong += [f"has {_listed(unexpected)}, which no such model has"] if unexpected else []
    raise UserError(
        f"checkpoint {source.checkpoint} {' and '.join(wrong)}; to convert without them, name "
        "them or their beginning in --allow_missing; or pass another configuration with "
        "--config_file"
    )


def _listed(names):
    more = len(names) - _MOST_NAMES
    return ", ".join(names[:_MOST_NAMES]) + (f" and {more} more" if more > 0 else "")


def _left_out(names, weights, kept, unexpected):
    """Returns list of (what they are, names): the variables that are not converted."""
    others = set(names) - weights
    averages = {name for name in others if name.endswith(f"/{AVERAGE_SUFFIX}")}
    state = set(filter(tf1.is_state, others))
    rows = [
        ("optimizer slots", others - averages - state),
        ("moving averages", averages),
        ("state of the run", state),
        ("weights of --drop", weights - kept.keys()),
        ("unexpected weights", unexpected),
    ]
    return [(what, sorted(found)) for what, found in rows if found]


def with_segments(weights, config, rows):
    """Returns (the `Weights` with `rows` rows of segments, what was done as text).

    Two rows become six as in UniLM; of six rows the first two are kept. Another change of the
    number is a `UserError`; with None the table stays as it is.
    """
    present = config.type_vocab_size
    if rows in (None, present):
        return weights, ""
    table = weights.values.get(SEGMENT_TABLE)
    if table is None or (present, rows) not in ((2, 6), (6, 2)):
        raise UserError(
            f"--type_vocab_size={rows}: the model has {present if table is not None else 'no'} "
            "segment rows; only 2 can become 6 (as in UniLM), or 6 become 2"
        )
    origins = UNILM_ROWS if rows == len(UNILM_ROWS) else (0, 1)
    words = "2, 3 and 4 begin as row 0, and 5 as row 1" if rows == 6 else "rows 0 and 1 are kept"
    values = {**weights.values, SEGMENT_TABLE: table[list(origins)]}
    return weights._replace(values=values), f"{present} become {rows}: {words}"


def with_layers(weights, config, layers):
    """Returns (the `Weights` with more layers, what was done as text).

    Layer i of the new model is layer i mod L of the L layers, so that twice as many are two copies
    of them, one above the other (Gong et al., Efficient training of BERT by progressively stacking,
    ICML 2019 §3.2). With None, or their own number, the layers stay as they are.

    Raises:
      UserError: the number is no multiple of L, or something else goes with the number of layers.
    """
    present = config.num_hidden_layers
    if layers in (None, present):
        return weights, ""
    if layers % present:
        raise UserError(
            f"--num_hidden_layers={layers}: the model has {present} layers, which are copied as a "
            f"whole; take a multiple of {present}"
        )
    if config.num_hidden_groups is not None or weights.has_layer_mix:
        raise UserError(
            f"--num_hidden_layers={layers}: only layers that have weights of their own and no "
            "mixture of layers (--layer_mix) above them can be stacked"
        )
    values = {}
    for name, value in weights.values.items():
        found = _LAYER.fullmatch(name)
        numbers = range(int(found[2]), layers, present) if found else ()
        values |= {f"{found[1]}{number}{found[3]}": value for number in numbers}
        values |= {} if found else {name: value}
    words = f"{present} are copied to make {layers}: layer i begins as layer i mod {present}"
    return weights._replace(values=values), words


def rounded(weights, dtype):
    """Returns the `Weights` in "float32" or "float16"; too large a number is a `UserError`."""
    values = {}
    for name, value in weights.values.items():
        with np.errstate(over="ignore"):
            values[name] = value.astype(dtype)
        if not np.isfinite(values[name]).all():
            raise UserError(
                f"{name} holds numbers that are too large for --dtype={dtype}; take float32"
            )
    return weights._replace(values=values)
