"""Reads TF1 checkpoints whose weights are those of a model here in another arrangement.

Each is computed without loss of meaning: the model here gives the outputs of the original, but for
rounding. Continued training goes on from there, without what held the original's weights together.
"""

import numpy as np

from nezha_tf.checkpoints.name_table import ROWS, tf1_name

_WORDS = "bert/embeddings/word_embeddings"
# brightmart/albert_zh, modeling.py: the layers of one name share their weights, and the table of
# words is multiplied by a second one, before positions and segments are added.
_SHARED_LAYER = "bert/encoder/layer_shared/"
_SECOND_WORDS = f"{_WORDS}_2"


def view(reader):
    """Returns a reader with the names and shapes of the models here.

    Args:
      reader: has the interface of `tf.train.CheckpointReader`.

    Returns:
      The same reader if the checkpoint has nothing to arrange; else a `FoldedReader`.
    """
    shapes = reader.get_variable_to_shape_map()
    folds = _shared_layers(shapes) | _product_of_words(shapes) | _grouped_layers(shapes)
    return FoldedReader(reader, folds) if folds else reader


class FoldedReader:
    """A checkpoint some of whose tensors are computed from those in it."""

    def __init__(self, reader, folds):
        """Args:
        reader: reader of the checkpoint.
        folds: dict of our name to (the names in the checkpoint, function of their arrays, shape).
        """
        used = {name for names, _, _ in folds.values() for name in names}
        shapes = reader.get_variable_to_shape_map()
        # Slots have the shapes of the original's weights, and nobody reads them.
        self._kept = {
            name for name in shapes if name not in used and name.rpartition("/")[0] not in used
        }
        self._reader, self._folds = reader, folds
        self._shapes = {name: shapes[name] for name in self._kept}
        self._shapes |= {name: list(shape) for name, (_, _, shape) in folds.items()}

    def get_variable_to_shape_map(self):
        return self._shapes

    def get_tensor(self, name):
        if name not in self._folds:
            return self._reader.get_tensor(name)
        names, compute, _ = self._folds[name]
        return compute(*map(self._reader.get_tensor, names))


def _shared_layers(shapes):
    """Renames the layer that all others share to ALBERT's first group."""
    group = {}
    for ours, theirs, _ in ROWS:
        if ours and ours.startswith("layer_{i}/"):
            in_group = tf1_name(f"model/{ours.replace('layer_{i}', 'group_0')}")
            group[theirs.replace("layer_{i}/", "layer_shared/")] = in_group
    return {
        group[row] + name.removeprefix(row): ((name,), _same, shape)
        for name, shape in shapes.items()
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


def _same(value):
    return value
