"""Vectors of texts: computed batch by batch, written to a file in the order of the texts."""

import numpy as np
import tensorflow as tf

from nezha_tf.data.in_memory import ArrayReader
from nezha_tf.modeling.sentence_vectors import pooled
from nezha_tf.tasks.sentence_vectors.texts import covered_characters
from nezha_tf.util import console
from nezha_tf.util.errors import UserError

# The name of the learned mixture in --layers.
MIX = "mix"


def layer_numbers(names, num_layers, has_mix=False):
    """Returns the layers that --layers names: list of int, 0 the embeddings, 1 to n the layers.

    Args:
      names: sequence of str; -1 is the last layer, -2 the one before it, and so on; "mix" is the
        learned mixture of all layers, whose number is n + 1.
      num_layers: n.
      has_mix: whether the model has a mixture.

    Raises:
      UserError: there is no name, or the model has no such layer.
    """
    if not names:
        raise UserError("--layers is empty; name a layer, as -1, or leave the flag out")
    numbers = {
        str(number): number % (num_layers + 1) for number in range(-num_layers - 1, num_layers + 1)
    }
    if has_mix:
        numbers[MIX] = num_layers + 1
    for name in names:
        if name == MIX and not has_mix:
            raise UserError(
                f"--layers={MIX}: this model has no learned mixture of layers; one that was "
                "fine-tuned with --layer_mix has"
            )
        if name not in numbers:
            raise UserError(
                f"--layers: {name!r} is no layer of the model; its layers are 0 (the embeddings) "
                f"to {num_layers}, or -1 (the last layer) to -{num_layers + 1} (the embeddings)"
            )
    return [numbers[name] for name in names]


def make_step(model, layers, pooling):
    """Returns a compiled function from a dict of inputs, int [B, T], to float32 vectors.

    They are [B, T, D] without pooling, [B, D] with it. The vectors of several layers are joined
    (BERT, arXiv 1810.04805 §5.3): D is the hidden size times their number.

    Args:
      model: `NezhaEncoder`.
      layers: list of int, as returned by `layer_numbers`.
      pooling: that of `pooled`; "pooler": the output of the pooler, whatever the layers; None: a
        vector for each token.
    """

    @tf.function(autograph=False)
    def step(batch):
        names = ("input_ids", "input_mask", "segment_ids")
        outputs = model({name: batch[name] for name in names}, training=False)
        if pooling == "pooler":
            return outputs["pooled_output"]
        states = [outputs["embedding_output"], *outputs["encoder_outputs"]]
        states.append(outputs["sequence_output"])  # the mixture, in a model that has one
        vectors = tf.concat([states[layer] for layer in layers], axis=-1)
        return vectors if pooling is None else pooled(vectors, batch["is_text"], pooling)

    return step


def write(path, step, width, texts, level, batch_size):
    """Writes the vectors of all texts as a `.npy` file, float32 [rows, D], in the texts' order.

    A batch holds texts of similar length, so rows are written in any order. The file is no memory
    map: with one, a full disk would kill the program without a message.

    Args:
      path: the file.
      step: as returned by `make_step`.
      width: D.
      texts: `Texts`.
      level: "token", "character" or "text".
      batch_size: texts in a batch.

    Returns:
      int64 [N + 1]: the rows of text i are [offsets[i], offsets[i + 1]).
    """
    offsets = np.cumsum([0, *_row_counts(texts, level)])
    reader = ArrayReader(texts.arrays, texts.max_seq_length)
    batches, total = reader.evaluation_batches(batch_size), reader.batches_per_epoch(batch_size)
    with open(path, "wb") as file:
        header = {"descr": "<f4", "fortran_order": False, "shape": (int(offsets[-1]), width)}
        np.lib.format.write_array_header_1_0(file, header)
        start = file.tell()
        for batch in console.progress(batches, total=total, desc="reading", unit="batch"):
            vectors = step(batch).numpy()
            for index, own in zip(batch["example_index"].numpy(), vectors, strict=True):
                file.seek(start + int(offsets[index]) * width * 4)
                file.write(np.ascontiguousarray(_rows(own, texts, index, level), "<f4").tobytes())
    return offsets


def _row_counts(texts, level):
    """Returns how many vectors each text has at a level: list of int."""
    if level == "text":
        return [1] * len(texts.ids)
    if level == "token":
        return [len(ids) for ids in texts.ids]
    return [len(covered_characters(spans)[0]) for spans in texts.spans]


def _rows(vectors, texts, index, level):
    """Returns the vectors of one text, [rows, D], from what `step` gave: [T, D] or [D]."""
    if level == "text":
        return vectors[None]
    if level == "token":
        return vectors[: len(texts.ids[index])]
    positions, place, token = covered_characters(texts.spans[index])
    sums = np.zeros((len(positions), vectors.shape[1]), np.float32)
    np.add.at(sums, place, vectors[1 + token])  # The first vector is that of [CLS].
    return sums / np.bincount(place)[:, None]
