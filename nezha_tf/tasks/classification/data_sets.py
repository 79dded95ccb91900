"""The data sets known by name, with their files, columns and labels; and the user's own data."""

import json
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from nezha_tf.tasks.finetuning.data_sets import CLUE_FILES, CUSTOM, one_of, require_different
from nezha_tf.util.errors import UserError, require_flag


def marked_spans(text, target):
    """Returns the text of CLUEWSC with its two spans marked, as CLUE's baseline does.

    The first span (the noun) stands between `_`, the second (the pronoun) between `[` and `]`.

    Args:
      text: the text, with the white space at its ends.
      target: JSON text {"span1_text", "span1_index", "span2_text", "span2_index"}; places are
        counted in characters from 0.

    Returns:
      (text, None).

    Raises:
      ValueError: a span is not at its place, or the spans overlap.
    """
    spans = []
    for number, marks in ((1, "__"), (2, "[]")):
        span, start = _span(target, number)
        if text[start : start + len(span)] != span or start < 0:
            raise ValueError(f"span{number}_text {span[:20]!r} is not at character {start}")
        spans.append((start, start + len(span), marks))
    (_, first_end, _), (second_start, _, _) = spans = sorted(spans)
    if second_start < first_end:
        raise ValueError(f"the spans at {spans[0][:2]} and {spans[1][:2]} overlap")
    for start, end, marks in reversed(spans):
        text = f"{text[:start]}{marks[0]}{text[start:end]}{marks[1]}{text[end:]}"
    return text, None


def keywords_first(abstract, keywords):
    """Returns the pair of CSL: the keywords, with spaces between them, and the abstract.

    The keywords are given as JSON text; what is no list of texts is a ValueError.
    """
    found = _json(keywords)
    if not isinstance(found, list) or not all(isinstance(word, str) for word in found):
        raise ValueError('"keyword" is not a list of texts')
    return " ".join(found), abstract


def _span(target, number):
    found = _json(target)
    found = found if isinstance(found, dict) else {}
    span, start = (found.get(f"span{number}_{name}") for name in ("text", "index"))
    if not isinstance(span, str) or not span or type(start) is not int:
        raise ValueError(f'"target" lacks span{number}_text (a text) or span{number}_index')
    return span, start


def _json(text):
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


class Columns(NamedTuple):
    """The columns (or keys of JSON objects) of a file.

    Attributes:
      text: name of the column of the text.
      text_pair: name of the column of the second text, or None.
      label: name of the column of the label.
      file_columns: see `read_rows`; (): the first line names the columns.
      language: the value that the column `language` must have; None: no such column.
      id: name of the column of the row's id, which may be missing; None: no such column.
    """

    text: str
    text_pair: str | None
    label: str
    file_columns: tuple = ()
    language: str | None = None
    id: str | None = None

    def renamed(self):
        """Returns {name in the file: "text", "text_pair", "label" or "id"} for the columns."""
        wanted = {self.text: "text", self.text_pair: "text_pair", self.label: "label"}
        wanted[self.id] = "id"
        return {column: name for column, name in wanted.items() if column is not None}


class DataSet(NamedTuple):
    """A data set.

    Attributes:
      files: {"train", "eval" or "predict": the choices of its file}; see `found_in`.
      columns: the `Columns` of the files.
      labels: the labels in the order of the classes; (): those of the training data.
      same_labels: {label in a file: the label that it means}.
      no_label: label of the examples on which the annotators did not agree, or None.
      rewrite: function of the values of the columns `text` and `text_pair`, the second as JSON,
        that returns the two texts; it raises ValueError with a fault. None: they are the texts.
      is_joined: whether `rewrite` makes one text of the two values.
      may_have_no_class: whether an empty label is one of no class.
      training_columns: the `Columns` of the training file, if they are others.
    """

    files: Mapping
    columns: Columns
    labels: tuple = ()
    same_labels: Mapping = MappingProxyType({})
    no_label: str | None = None
    rewrite: Callable | None = None
    is_joined: bool = False
    may_have_no_class: bool = False
    training_columns: Columns | None = None

    def columns_of(self, part):
        """Returns the `Columns` of a part."""
        return self.training_columns if part == "train" and self.training_columns else self.columns

    @property
    def is_pair(self):
        """Whether the examples are pairs of texts."""
        return self.columns.text_pair is not None and not self.is_joined


_INFERENCE = ("contradiction", "entailment", "neutral")
_PAIR = Columns("sentence1", "sentence2", "label", id="id")
_SENTENCE = Columns("sentence", None, "label", id="id")


def _files(train, dev, test):
    return {"train": one_of(*train), "eval": one_of(*dev), "predict": one_of(*test)}


# Huawei's files of ChnSentiCorp and LCQMC, in the order of its `TextClfProcessor`, have no header;
# others name the columns.
DATA_SETS = {
    # Its development and test files may have a column qid before the other columns.
    "chnsenti": DataSet(
        _files(["train.tsv"], ["dev.tsv"], ["test.tsv"]),
        Columns("text_a", None, "label", ("label", "text_a")),
        ("0", "1"),
    ),
    "lcqmc": DataSet(
        _files(*([f"{part}.tsv", f"{part}.txt"] for part in ("train", "dev", "test"))),
        Columns("text_a", "text_b", "label", ("text_a", "text_b", "label")),
        ("0", "1"),
    ),
    # Chinese only, as in Google's run_classifier.py.
    "xnli": DataSet(
        _files(["multinli/multinli.train.zh.tsv"], ["xnli.dev.tsv"], ["xnli.test.tsv"]),
        Columns("sentence1", "sentence2", "gold_label", language="zh"),
        _INFERENCE,
        same_labels={"contradictory": "contradiction"},
        training_columns=Columns("premise", "hypo", "label", ("premise", "hypo", "label")),
    ),
    "ocnli": DataSet(
        _files(
            ["train.50k.json", "train.json", "train.jsonl", "train_few_all.json", "train_0.json"],
            ["dev.json", "dev.jsonl", "dev_few_all.json", "dev_0.json"],
            ["test.json", "test.jsonl", "test_public.json"],
        ),
        _PAIR,
        _INFERENCE,
        no_label="-",
    ),
    "cmnli": DataSet(CLUE_FILES, _PAIR, _INFERENCE, no_label="-"),
    "afqmc": DataSet(CLUE_FILES, _PAIR, ("0", "1")),
    "bustm": DataSet(CLUE_FILES, _PAIR, ("0", "1")),
    # 15 classes: the numbers 105 and 111 are not used.
    "tnews": DataSet(
        CLUE_FILES, _SENTENCE, tuple(str(n) for n in range(100, 117) if n not in (105, 111))
    ),
    "iflytek": DataSet(CLUE_FILES, _SENTENCE, tuple(map(str, range(119)))),
    "wsc": DataSet(
        CLUE_FILES,
        Columns("text", "target", "label", id="id"),
        ("false", "true"),
        rewrite=marked_spans,
        is_joined=True,
    ),
    "csl": DataSet(
        CLUE_FILES,
        Columns("abst", "keyword", "label", id="id"),
        ("0", "1"),
        rewrite=keywords_first,
    ),
}
NAMES = (*DATA_SETS, CUSTOM)


def data_set_of(settings):
    """Returns the `DataSet` of `ClassificationSettings`.

    Raises:
      UserError: `columns` lacks a column, or two flags name the same column.
    """
    name = require_flag(settings.task_name, "task_name")
    if name != CUSTOM:
        return DATA_SETS[name]
    names = tuple(settings.columns)
    for flag in ("text_column", "text_pair_column"):
        column = getattr(settings, flag)
        if names and column and column not in names:
            raise UserError(f"--columns={','.join(names)} has no {column!r}; name it with --{flag}")
    text, pair, label = require_different(
        settings, "text_column", "text_pair_column", "label_column"
    )
    return own_data(Columns(text, pair or None, label, names), settings.label_type == "multi")


def own_data(columns, may_have_no_class=False):
    """Returns the `DataSet` of a user's own files with these `Columns`."""
    return DataSet({}, columns, may_have_no_class=may_have_no_class)
