"""Vectors of texts: made batch by batch, kept in a file, read in the order of the texts."""

import numpy as np
import tensorflow as tf

from nezha_tf import console
from nezha_tf.data.array_reader import ArrayReader
from nezha_tf.errors import UserError
from nezha_tf.inference.texts import covered_characters


def layer_numbers(names, num_layers):
    """Returns the layers of the flag --layers, 0 for the embeddings, 1 to n for the layers.

    Args:
      names: list of str; -1 is the last layer, and so on backwards.
      num_layers: n.

    Raises:
      UserError: what is no number, or no layer of the model.
    """
    numbers = {str(number): number for number in range(-num_layers - 1, num_layers + 1)}
    for name in names:
        if name not in numbers:
            raise UserError(
                f"--layers: {name!r} is none of 0 (the embeddings) to {num_layers}, or of -1 (the "
                f"last) to -{num_layers + 1}"
            )
    return [numbers[name] % (num_layers + 1) for name in names]


def make_step(model, layers, pooling):
    """Returns a compiled function of a batch that gives float32 vectors.

    They are [B, T, D] without pooling, and [B, D] with it. D is the hidden size times the number
    of layers, whose vectors stand side by side (BERT arXiv 1810.04805 §5.3); that of "pooler" is
    the hidden size.

    Args:
      model: `NezhaEncoder`.
      layers: list of int, as of `layer_numbers`.
      pooling: "mean", "cls", "max", "pooler" or None. Of a text's pieces, [CLS] and [SEP] left
        out, "mean" is the mean and "max" the largest entries; "cls" is the vector of [CLS].
    """

    @tf.function(autograph=False)
    def step(batch):
        names = ("input_ids", "input_mask", "segment_ids")
        outputs = model({name: batch[name] for name in names}, training=False)
        if pooling == "pooler":
            return outputs["pooled_output"]
        states = [outputs["embedding_output"], *outputs["encoder_outputs"]]
        vectors = tf.concat([states[layer] for layer in layers], axis=-1)
        return vectors if pooling is None else pooled(vectors, batch["is_text"], pooling)

    return step


def pooled(vectors, is_text, pooling):
    """Returns the vectors of texts, [B, D], of those of their pieces.

    Args:
      vectors: [B, T, D].
      is_text: int [B, T], 1 for pieces that are neither [CLS] nor [SEP] nor padding.
      pooling: "mean", "cls" or "max".
    """
    if pooling == "cls":
        return vectors[:, 0]
    is_text = is_text[:, :, None] > 0
    if pooling == "max":
        return tf.reduce_max(tf.where(is_text, vectors, vectors.dtype.min), axis=1)
    weights = tf.cast(is_text, vectors.dtype)
    return tf.reduce_sum(vectors * weights, axis=1) / tf.reduce_sum(weights, axis=1)


def row_counts(texts, level):
    """Returns how many vectors each text has at a level, a list of int."""
    if level == "text":
        return [1] * len(texts.ids)
    if level == "piece":
        return [len(ids) for ids in texts.ids]
    return [len(covered_characters(spans)[0]) for spans in texts.spans]


def write_vectors(file, step, texts, level, max_seq_length, batch_size):
    """Makes the vectors of all texts, those of like lengths together.

    Args:
      file: `VectorFile`; gets the vectors in the order of the texts.
      step: as of `make_step`.
      texts: `Texts`.
      level: "piece", "character" or "text".
      max_seq_length: as the texts were packed with.
      batch_size: texts at a time.

    Returns:
      Where each text's vectors begin, and where the last one's end: int64 [N + 1].
    """
    offsets = np.cumsum([0, *row_counts(texts, level)])
    reader = ArrayReader(texts.arrays, max_seq_length)
    total = reader.batches_per_epoch(batch_size)
    batches = reader.evaluation_batches(batch_size)
    for batch in console.progress(batches, total=total, desc="reading", unit="batch"):
        vectors = step(batch).numpy()
        for index, found in zip(batch["example_index"].numpy(), vectors, strict=True):
            file.write(offsets[index], _rows(found, texts, index, level))
    return offsets


def _rows(found, texts, index, level):
    """Returns the vectors of a text at a level, [rows, D], from [T, D] or, pooled, [D]."""
    if level == "text":
        return found[None]
    if level == "piece":
        return found[: len(texts.ids[index])]
    positions, place, piece = covered_characters(texts.spans[index])
    sums = np.zeros((len(positions), found.shape[1]), np.float32)
    np.add.at(sums, place, found[1 + piece])  # [CLS] stands before the first piece.
    return sums / np.bincount(place)[:, None]


class VectorFile:
    """A `.npy` file of float32 [rows, D] that is written in any order.

    It is no memory map, in which a full disk would end the program without a word.
    """

    def __init__(self, path, rows, width):
        self._file = open(path, "wb")
        self._width = width
        header = {"descr": "<f4", "fortran_order": False, "shape": (int(rows), int(width))}
        np.lib.format.write_array_header_1_0(self._file, header)
        self._start = self._file.tell()

    def write(self, first_row, vectors):
        """Writes vectors [n, D] from a row on."""
        self._file.seek(self._start + int(first_row) * self._width * 4)
        self._file.write(np.ascontiguousarray(vectors, "<f4").tobytes())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._file.close()
