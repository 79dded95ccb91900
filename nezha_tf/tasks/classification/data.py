"""Reads the rows of a data set, and converts them to a model's examples."""

from typing import NamedTuple

from nezha_tf.data.lines import BadRows
from nezha_tf.data.rows import read_rows
from nezha_tf.tasks.finetuning.data_sets import Examples
from nezha_tf.util import console
from nezha_tf.util.errors import UserError


class LabelledText(NamedTuple):
    """A text or a pair of texts.

    Attributes:
      text, text_pair: the texts; the second may be None.
      label: the label as written in the file, or None.
      line: number of its first line in the file.
      place: file and line number, for messages.
      id: the row's id in the data set, or None.
    """

    text: str
    text_pair: str | None
    label: str | None
    line: int
    place: str
    id: str | None = None


class Part(NamedTuple):
    """The rows of a part of a data set.

    Attributes:
      paths: the files.
      texts: list of `LabelledText`.
      bad_rows: `BadRows`; later steps add to it.
      unlabelled: number of rows with the data set's `no_label`, left out of all but predictions.
    """

    paths: list
    texts: list
    bad_rows: BadRows
    unlabelled: int

    def note(self, what, num_examples, num_truncated):
        """Returns a line on the contents of the part."""
        line = f"{', '.join(self.paths)}: {console.plural(num_examples, what)}"
        if num_truncated:
            line += f"; too long, so truncated: {num_truncated:,}"
        return line + self.left_out()

    def left_out(self):
        without = f"; without an agreed label: {self.unlabelled:,}" if self.unlabelled else ""
        return without + self.bad_rows.note()


def read_part(data_set, part, paths, skip_bad_rows):
    """Returns a `Part` of a data set; labels may be missing in the rows of "predict".

    Args:
      data_set: `DataSet`.
      part: "train", "eval" or "predict".
      paths: its files.
      skip_bad_rows: whether bad rows are skipped and counted.

    Raises:
      UserError: see `read_rows`; or no example is left.
    """
    columns = data_set.columns_of(part)
    names, found = columns.renamed(), Part(paths, [], BadRows(skip_bad_rows), 0)
    unlabelled = 0
    for row in _rows(data_set, part, paths, found.bad_rows):
        if columns.language and row.values["language"] != columns.language:
            continue
        values = {name: row.values.get(column) for column, name in names.items()}
        text, text_pair, label = (values.get(name) for name in ("text", "text_pair", "label"))
        if data_set.rewrite:
            try:
                text, text_pair = data_set.rewrite(text, text_pair)
            except ValueError as error:
                found.bad_rows.add(f"{row.place}: {error}")
                continue
        label = data_set.same_labels.get(label, label)
        if label is not None and label == data_set.no_label:
            unlabelled += 1
            if part != "predict":
                continue
            label = None
        name = values.get("id")
        found.texts.append(LabelledText(text, text_pair, label, row.line, row.place, name))
    found = found._replace(unlabelled=unlabelled)
    _require(found.texts, found)
    return found


def _rows(data_set, part, paths, bad_rows):
    """Yields the `Row`s of files with the data set's columns."""
    columns, is_prediction = data_set.columns_of(part), part == "predict"
    wanted = (*columns.renamed(), *(["language"] if columns.language else []))
    optional = (columns.id, *([columns.label] if is_prediction else []))
    are_json, as_written = (columns.label, columns.id), ()
    if data_set.rewrite:
        are_json, as_written = (*are_json, columns.text_pair), (columns.text,)
    # Of an example to predict, an empty label may also be one that is not known.
    may_be_empty = (columns.label,) if data_set.may_have_no_class and not is_prediction else ()
    given = (wanted, optional, columns.file_columns, are_json, bad_rows, as_written, may_be_empty)
    for path in paths:
        yield from read_rows(path, *given)


def pack(part, tokenizer, pack_texts, label_type):
    """Returns (the `Examples` of a part, a line on them).

    Args:
      part: `Part`.
      tokenizer: `GraphTokenizer`.
      pack_texts: function as `pack_all`, without its first argument.
      label_type: an object of `LABEL_TYPES`.

    Raises:
      UserError: a row has an unknown label or a text without tokens, or no example is left.
    """
    found = list(_labelled(part, tokenizer, label_type))
    _require(found, part)
    texts, labels, *sides = map(list, zip(*found, strict=True))
    ids, segment_ids, num_cut = pack_texts(*sides)
    arrays = {"input_ids": ids, "segment_ids": segment_ids}
    if None not in labels:
        arrays["label_ids"] = label_type.array(labels)
    note = part.note("text" if len(sides) == 1 else "pair", len(texts), num_cut)
    return Examples(texts, arrays, labels), note


def _require(texts, part):
    if not texts:
        raise UserError(f"{', '.join(part.paths)}: no example{part.left_out()}")


def _labelled(part, tokenizer, label_type):
    """Yields (`LabelledText`, its encoded label or None, the ids of each of its texts)."""
    sides = [tokenizer.ids_of([text.text for text in part.texts])]
    if part.texts and part.texts[0].text_pair is not None:
        sides.append(tokenizer.ids_of([text.text_pair for text in part.texts]))
    for text, *tokens in zip(part.texts, *sides, strict=True):
        if not all(map(len, tokens)):
            which = "the text" if len(tokens[0]) == 0 else "the second text"
            part.bad_rows.add(f"{text.place}: {which} has no tokens; write a text")
            continue
        try:
            label = None if text.label is None else label_type.encode(text.label)
        except ValueError as error:
            part.bad_rows.add(f"{text.place}: {error}")
            continue
        yield text, label, *tokens
