"""Texts as a model reads them, and which characters each of their tokens covers."""

from typing import NamedTuple

import numpy as np

from nezha_tf.data.rows import read_rows, renamed
from nezha_tf.text.packing import TextPacking
from nezha_tf.util.errors import UserError

COLUMNS = ("text", "text_pair")


class Texts(NamedTuple):
    """Packed texts, or packed pairs of texts.

    Attributes:
      rows: list of `data.rows.Row`.
      arrays: dict of inputs for `ArrayReader`, each a list of int32 arrays [n]: `input_ids` ([CLS]
        text [SEP], or [CLS] text [SEP] text_pair [SEP]), `segment_ids`, and `is_text`, 1 for tokens
        of the texts, 0 for [CLS] and [SEP].
      spans: list of int arrays [m, 2]: each of the m tokens of the first text covers its
        characters [start, end).
      truncated: number of texts that were too long and were cut.
      max_seq_length: the length to which they were cut.
    """

    rows: list
    arrays: dict[str, list[np.ndarray]]
    spans: list[np.ndarray]
    truncated: int
    max_seq_length: int

    @property
    def ids(self):
        """The ids of each text, list of int32 arrays [n]."""
        return self.arrays["input_ids"]


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
      max_seq_length: longest text or pair in tokens, [CLS] and [SEP] included.

    Raises:
      UserError: a text has no token.
    """
    vocabulary = tokenizer.vocabulary
    columns = [column for column in COLUMNS if column in rows[0].values]
    packing = TextPacking(vocabulary, max_seq_length, is_pair=len(columns) == 2)
    arrays, spans = {"input_ids": [], "segment_ids": [], "is_text": []}, []
    for row in rows:
        sides = [tokenizer.tokenize_with_offsets(row.values[column]) for column in columns]
        for column, tokens in zip(columns, sides, strict=True):
            if not tokens:
                raise UserError(f"{row.place}: {column} has no tokens; write a text")
        ids, segment_ids = packing(*(vocabulary.ids_of(p.text for p in side) for side in sides))
        is_text = np.isin(ids, (vocabulary.cls_id, vocabulary.sep_id), invert=True)
        for name, values in zip(arrays, (ids, segment_ids, is_text.astype(np.int32)), strict=True):
            arrays[name].append(values)
        kept = np.count_nonzero(segment_ids == 0) - 2
        spans.append(np.array([(token.start, token.end) for token in sides[0][:kept]]))
    return Texts(rows, arrays, spans, packing.num_truncated, max_seq_length)


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
