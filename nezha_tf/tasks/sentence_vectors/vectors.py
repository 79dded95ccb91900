"""Vectors of texts: read, packed, computed batch by batch, and written in the texts' order."""

import dataclasses
import functools

import numpy as np
import tensorflow as tf

from nezha_tf.data.in_memory import ArrayReader
from nezha_tf.data.rows import read_rows, renamed
from nezha_tf.modeling.sentence_vectors import pooled
from nezha_tf.text.bulk_tokenizer import BulkTokenizer
from nezha_tf.text.packing import pack_all, text_packing
from nezha_tf.text.tokenization import FullTokenizer
from nezha_tf.util import console
from nezha_tf.util.errors import UserError

COLUMNS = ("text", "text_pair")
TOKENIZED_AT_ONCE = 4096


@dataclasses.dataclass(frozen=True)
class Texts:
    """Packed texts, or packed pairs of texts.

    Attributes:
      rows: list of `data.rows.Row`.
      arrays: dict of inputs for `ArrayReader`, each a list of int32 arrays [n]: `input_ids` ([CLS]
        text [SEP], or [CLS] text [SEP] text_pair [SEP]), `segment_ids`, and `is_text`, 1 for tokens
        of the texts, 0 for [CLS] and [SEP].
      truncated: number of texts that were too long and were cut.
      max_seq_length: the length to which they were cut.
      tokenizer: `FullTokenizer`.
    """

    rows: list
    arrays: dict[str, list[np.ndarray]]
    truncated: int
    max_seq_length: int
    tokenizer: FullTokenizer

    @property
    def ids(self):
        """The ids of each text, list of int32 arrays [n]."""
        return self.arrays["input_ids"]

    @functools.cached_property
    def spans(self):
        """List of int arrays [m, 2]: each of the m tokens of a text covers its [start, end).

        Of a pair they are those of the first text.
        """
        found = []
        for row, segments in zip(self.rows, self.arrays["segment_ids"], strict=True):
            count = np.count_nonzero(segments == 0) - 2  # without [CLS] and [SEP]
            tokens = self.tokenizer.tokenize_with_offsets(row.values[COLUMNS[0]])[:count]
            found.append(np.array([(token.start, token.end) for token in tokens]))
        return found


def read_pairs(paths, needed, columns=COLUMNS, label_column=None, bad_rows=None):
    """Returns the rows of files: list of `data.rows.Row`, all with one text or all with two.

    Args:
      paths: files as for `read_rows`.
      needed: whether each row must have a second text.
      columns: the names of the columns of both texts; the rows call them `COLUMNS`. The first line
        of a `.tsv`, `.txt` or `.csv` file names them, unless they are `COLUMNS` and there is no
        label: then they are in this order.
      label_column: the column of a label; the rows call it "label". None: no label is read.
      bad_rows: as for `read_rows`.

    Raises:
      UserError: two columns have one name; a bad row, or only some of the rows have a second text.
    """
    names = dict(zip(columns, COLUMNS, strict=True))
    names |= {label_column: "label"} if label_column else {}
    if len(names) < len(columns) + bool(label_column):
        given = ", ".join(filter(None, (*columns, label_column)))
        raise UserError(f"the columns of texts and label are {given}; name another one for each")
    optional = () if needed else columns[1:]
    file_columns = COLUMNS if tuple(columns) == COLUMNS and not label_column else ()
    read = (tuple(names), optional, file_columns, (label_column,), bad_rows)
    rows = [row for path in paths for row in renamed(read_rows(path, *read), names)]
    alone = [row for row in rows if COLUMNS[1] not in row.values]
    if 0 < len(alone) < len(rows):
        raise UserError(
            f"{alone[0].place}: one text, where other lines have two; give all lines a text_pair"
            ", or none"
        )
    return rows


def split_pairs(rows):
    """Returns two rows for each pair: one for its first text, one for its second."""
    return [row._replace(values={"text": row.values[column]}) for row in rows for column in COLUMNS]


def pack(rows, tokenizer, max_seq_length):
    """Returns the `Texts` of rows.

    Args:
      rows: as returned by `read_pairs` or `split_pairs`.
      tokenizer: `FullTokenizer`.
      max_seq_length: longest text or pair in tokens, [CLS] and [SEP] included; a text without
        tokens is a `UserError`.
    """
    vocabulary = tokenizer.vocabulary
    columns = [column for column in COLUMNS if column in rows[0].values]
    packing = text_packing(vocabulary, max_seq_length, is_pair=len(columns) == 2)
    bulk = BulkTokenizer(tokenizer)
    sides = [list(_ids(rows, column, bulk)) for column in columns]
    ids, segment_ids, num_cut = pack_all(packing, *sides)
    cls, sep = vocabulary.cls_id, vocabulary.sep_id
    is_text = [((row != cls) & (row != sep)).astype(np.int32) for row in ids]
    arrays = {"input_ids": ids, "segment_ids": segment_ids, "is_text": is_text}
    return Texts(rows, arrays, num_cut, max_seq_length, tokenizer)


def _ids(rows, column, bulk):
    """Yields the ids of the text of each row, int32 [n]."""
    for first in range(0, len(rows), TOKENIZED_AT_ONCE):
        part = rows[first : first + TOKENIZED_AT_ONCE]
        tokens = bulk.tokenize([row.values[column] for row in part])
        for row, ids in zip(part, np.split(tokens.ids, tokens.line_ends[:-1]), strict=True):
            if not len(ids):
                raise UserError(f"{row.place}: {column} has no tokens; write a text")
            yield ids


def covered_characters(spans):
    """Returns which tokens cover which characters, by their spans, int [m, 2], as in `Texts`.

    Several tokens can cover the same character: normalization splits, for example, a Hangul
    syllable into several letters.

    Returns:
      (`positions` int [c]: the characters that are covered, in rising order;
      `place` int [k] and `token` int [k]: token `token[i]` covers character
      `positions[place[i]]`, for each such pair i).
    """
    lengths = spans[:, 1] - spans[:, 0]
    token = np.repeat(np.arange(len(spans)), lengths)
    within = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    positions, place = np.unique(spans[token, 0] + within, return_inverse=True)
    return positions, place, token


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


# Added to a pooling that counts [CLS] and [SEP], too.
_ALL = "_all"


def make_step(model, layers, pooling, normalize=False):
    """Returns a compiled function from a dict of inputs, int [B, T], to float32 vectors.

    They are [B, T, D] without pooling, [B, D] with it. The vectors of several layers are joined
    (BERT, arXiv 1810.04805 §5.3): D is the hidden size times their number.

    Args:
      model: `NezhaEncoder`.
      layers: list of int, as returned by `layer_numbers`.
      pooling: that of `pooled`, of the tokens of the texts; "mean_all" or "max_all": of all tokens;
        "pooler": the output of the pooler, whatever the layers; None: a vector for each token.
      normalize: whether each vector is divided by its length.
    """

    def vectors_of(batch):
        names = ("input_ids", "input_mask", "segment_ids")
        outputs = model({name: batch[name] for name in names}, training=False, all_outputs=True)
        if pooling == "pooler":
            return outputs["pooled_output"]
        states = [outputs["embedding_output"], *outputs["encoder_outputs"]]
        states.append(outputs["sequence_output"])  # the mixture, in a model that has one
        vectors = tf.concat([states[layer] for layer in layers], axis=-1)
        if pooling is None:
            return vectors
        is_counted = batch["input_mask" if pooling.endswith(_ALL) else "is_text"]
        return pooled(vectors, is_counted, pooling.removesuffix(_ALL))

    @tf.function(autograph=False)
    def step(batch):
        vectors = vectors_of(batch)
        # The smallest length, 1e-12, is that of sentence-transformers.
        return tf.math.l2_normalize(vectors, axis=-1, epsilon=1e-24) if normalize else vectors

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
    with open(path, "wb") as file:
        header = {"descr": "<f4", "fortran_order": False, "shape": (int(offsets[-1]), width)}
        np.lib.format.write_array_header_1_0(file, header)
        start = file.tell()
        for index, own in computed(step, texts, batch_size):
            file.seek(start + int(offsets[index]) * width * 4)
            file.write(np.ascontiguousarray(_rows(own, texts, index, level), "<f4").tobytes())
    return offsets


def computed(step, texts, batch_size):
    """Yields (index of a text, what `step` gives for it, a NumPy array); see `write`.

    The step is traced once, for batches of any length.
    """
    reader = ArrayReader(texts.arrays, texts.max_seq_length, any_length=True)
    batches, total = reader.evaluation_batches(batch_size), reader.batches_per_epoch(batch_size)
    step.get_concrete_function(batches.element_spec)
    for batch in console.progress(batches, total=total, desc="reading", unit="batch"):
        yield from zip(batch["example_index"].numpy(), step(batch).numpy(), strict=True)


def _row_counts(texts, level):
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
