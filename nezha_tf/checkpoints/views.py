"""Views of TF1 checkpoints: their weights by other names, or computed from those in them.

With albert_zh's weights, the model here gives the outputs of the original, but for rounding;
training goes on from there, without what held the original's weights together.
"""

import numpy as np

from nezha_tf.checkpoints.name_table import AVERAGE_SUFFIX, ROWS, tf1_name
from nezha_tf.util.errors import UserError

_WORDS = "bert/embeddings/word_embeddings"
# brightmart/albert_zh, modeling.py: the layers of one name share their weights, and the table of
# words is multiplied by a second one, before positions and segments are added.
_SECOND_WORDS = f"{_WORDS}_2"


class View:
    """A checkpoint by other names, with the interface of `tf.train.CheckpointReader`."""

    def __init__(self, reader, sources):
        """`sources`: our name -> its name there, or (names there, function of arrays, shape)."""
        self._reader, self._sources = reader, sources
        shapes = reader.get_variable_to_shape_map()
        self._shapes = {
            name: shapes[source] if isinstance(source, str) else list(source[2])
            for name, source in sources.items()
        }

    def get_variable_to_shape_map(self):
        """Returns {name: shape, a list of int}."""
        return self._shapes

    def get_tensor(self, name):
        """Returns a tensor as a NumPy array."""
        source = self._sources[name]
        if isinstance(source, str):
            return self._reader.get_tensor(source)
        names, compute, _ = source
        return compute(*map(self._reader.get_tensor, names))


def averages(path, reader):
    """Returns a view of the moving averages instead of the weights; untrained weights have none."""
    names, ending = reader.get_variable_to_shape_map(), f"/{AVERAGE_SUFFIX}"
    averaged = {name.removesuffix(ending): name for name in names if name.endswith(ending)}
    if not averaged:
        raise UserError(
            f"checkpoint {path} holds no moving averages of weights, which its task.json, "
            "--ema_decay or --averages asks for"
        )
    return View(reader, {name: name for name in names if not name.endswith(ending)} | averaged)


def unfolded(reader):
    """Returns a view with the arrangement of the models here, or the reader itself."""
    shapes = reader.get_variable_to_shape_map()
    computed = _shared_layers(shapes) | _product_of_words(shapes) | _grouped_layers(shapes)
    if not computed:
        return reader
    used = {name for source in computed.values() for name in _names_of(source)}
    # Slots have the shapes of the original's weights, and nobody reads them.
    kept = [name for name in shapes if used.isdisjoint((name, name.rpartition("/")[0]))]
    return View(reader, {name: name for name in kept} | computed)


def _names_of(source):
    return (source,) if isinstance(source, str) else source[0]


def _shared_layers(shapes):
    """Renames the layer that all others share to ALBERT's first group."""
    group = {}
    for ours, theirs, _ in ROWS:
        if ours and ours.startswith("layer_{i}/"):
            in_group = tf1_name(f"model/{ours.replace('layer_{i}', 'group_0')}")
            group[theirs.replace("layer_{i}/", "layer_shared/")] = in_group
    return {
        group[row] + name.removeprefix(row): name
        for name in shapes
        for row in group
        if name.startswith(row) and "/" not in name.removeprefix(row)
    }


def _product_of_words(shapes):
    if _SECOND_WORDS not in shapes or _WORDS not in shapes:
        return {}
    shape = (shapes[_WORDS][0], shapes[_SECOND_WORDS][-1])
    return {_WORDS: ((_WORDS, _SECOND_WORDS), np.matmul, shape)}


def _grouped_layers(shapes):
    """Writes out the dense layers in groups of albert_zh's `modeling_google_fast.py`.

    Their kernels are [G, I, O] and their biases [G, O]: group g reads the inputs g, g + G, g + 2G
    and so on, and writes the outputs gO to (g + 1)O - 1 (`dense_layer_2d`).
    """
    folds = {}
    for name, shape in shapes.items():
        bias = f"{name.removesuffix('kernel')}bias"
        if name.endswith("/kernel") and len(shape) == 3 and len(shapes.get(bias, ())) == 2:
            groups, inputs, outputs = shape
            folds[name] = ((name,), _written_out, (groups * inputs, groups * outputs))
            folds[bias] = ((bias,), np.ravel, (groups * outputs,))
    return folds


def _written_out(kernel):
    """Returns the kernel [G * I, G * O] of one in groups, [G, I, O]."""
    groups, inputs, outputs = kernel.shape
    full = np.zeros((inputs, groups, groups, outputs), kernel.dtype)
    for group in range(groups):
        full[:, group, group] = kernel[group]
    return full.reshape(inputs * groups, groups * outputs)
