"""Reads the rows of a data set, and converts them to a model's examples."""

from typing import NamedTuple

from nezha_tf.data.bad_rows import BadRows
from nezha_tf.data.rows import read_rows
from nezha_tf.tasks.finetuning.data_sets import Examples
from nezha_tf.util import console
from nezha_tf.util.errors import UserError


class LabelledText(NamedTuple):
    """A text or a pair of texts.

    Attributes:
      text: the first text.
      text_pair: the second text, or None.
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
      unlabelled: number of rows with the data set's `no_label`, which training and evaluation
        leave out.
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
        """Returns the end of a line on the part: what is not among its examples."""
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
    columns = data_set.parts[part].columns
    names, bad_rows = columns.renamed(), BadRows(skip_bad_rows)
    texts, unlabelled = [], 0
    for path in paths:
        for row in _rows(path, data_set, part, bad_rows):
            if columns.language and row.values["language"] != columns.language:
                continue
            found = {name: row.values.get(column) for column, name in names.items()}
            if data_set.rewrite:
                try:
                    sides = data_set.rewrite(found["text"], found["text_pair"])
                except ValueError as error:
                    bad_rows.add(f"{row.place}: {error}")
                    continue
                found |= dict(zip(("text", "text_pair"), sides, strict=True))
            label = data_set.same_labels.get(found["label"], found["label"])
            if label is not None and label == data_set.no_label:
                unlabelled += 1
                if part != "predict":
                    continue
                label = None
            texts.append(
                LabelledText(
                    found["text"],
                    found.get("text_pair"),
                    label,
                    row.line,
                    row.place,
                    found.get("id"),
                )
            )
    found = Part(paths, texts, bad_rows, unlabelled)
    _require(texts, found)
    return found


def _rows(path, data_set, part, bad_rows):
    """Yields the `Row`s of a file with the data set's columns."""
    columns = data_set.parts[part].columns
    wanted = (*columns.renamed(), *(["language"] if columns.language else []))
    optional = (columns.id, *([columns.label] if part == "predict" else []))
    are_json, as_written = (columns.label, columns.id), ()
    if data_set.rewrite:
        are_json, as_written = (*are_json, columns.text_pair), (columns.text,)
    # Of an example to predict, an empty label may also be one that is not known.
    may_be_empty = (columns.label,) if data_set.may_have_no_class and part != "predict" else ()
    return read_rows(
        path,
        wanted,
        optional,
        columns.file_columns,
        are_json,
        bad_rows,
        as_written,
        may_be_empty,
    )


def pack(part, tokenizer, packing, label_type):
    """Returns the `Examples` of a part.

    Args:
      part: `Part`.
      tokenizer: `GraphTokenizer`.
      packing: `TextPacking`.
      label_type: an object of `label_types`.

    Raises:
      UserError: a row has an unknown label or a text without tokens, or no example is left.
    """
    texts, labels, packed = [], [], []
    for text, label, tokens in _labelled(part, tokenizer, label_type):
        texts.append(text)
        labels.append(label)
        packed.append(packing(*tokens))
    _require(texts, part)
    ids, segment_ids = zip(*packed, strict=True)
    arrays = {"input_ids": list(ids), "segment_ids": list(segment_ids)}
    if None not in labels:
        arrays["label_ids"] = label_type.array(labels)
    return Examples(texts, arrays, labels)


def _require(texts, part):
    if not texts:
        raise UserError(f"{', '.join(part.paths)}: no example{part.left_out()}")


def _labelled(part, tokenizer, label_type):
    """Yields (`LabelledText`, its encoded label or None, list of the ids of each of its texts)."""
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
        yield text, label, tokens
