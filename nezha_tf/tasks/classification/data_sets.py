"""The data sets known by name, with their files, columns and labels; and the user's own data."""

import json
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from nezha_tf.tasks.finetuning.data_sets import CLUE_TESTS, CUSTOM
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
      ValueError: a span is not at its place, or the spans overlap; the message says which.
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

    Args:
      abstract: text.
      keywords: JSON text, a list of texts.

    Raises:
      ValueError: the keywords are no such list.
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


class Files(NamedTuple):
    """The possible names of a part's file (the first existing one is read), and its columns."""

    names: tuple
    columns: Columns


class DataSet(NamedTuple):
    """A data set.

    Attributes:
      parts: {"train", "eval" or "predict": `Files`}.
      labels: the labels in the order of the classes; (): those of the training data.
      same_labels: {label in a file: the label that it means}.
      no_label: label of the examples on which the annotators did not agree, or None.
      rewrite: function of the values of the columns `text` and `text_pair`, the second as JSON,
        that returns the two texts; it raises ValueError with a fault. None: they are the texts.
      is_joined: whether `rewrite` makes one text of the two values.
      may_have_no_class: whether an empty label is one of no class.
    """

    parts: Mapping
    labels: tuple = ()
    same_labels: Mapping = MappingProxyType({})
    no_label: str | None = None
    rewrite: Callable | None = None
    is_joined: bool = False
    may_have_no_class: bool = False

    def is_pair(self, part):
        """Whether the examples of a part are pairs of texts."""
        return self.parts[part].columns.text_pair is not None and not self.is_joined

    def file_choices(self, part):
        """Returns the names of a part's files; see `found_in`."""
        return tuple((name,) for name in self.parts[part].names)


def _parts(columns, *names):
    return {
        part: Files(tuple(choices), columns)
        for part, choices in zip(("train", "eval", "predict"), names, strict=True)
    }


def _clue(columns):
    """Returns the parts of a task of CLUE or FewCLUE, by the names of their archives' files."""
    tests = [*CLUE_TESTS, "test_public.json"]
    train, dev = ([f"{part}.json", *_few(part)] for part in ("train", "dev"))
    return _parts(columns, train, dev, tests)


def _few(part):
    """Returns the names of a part's files in FewCLUE."""
    return [f"{part}_few_all.json", f"{part}_0.json"]


_INFERENCE = ("contradiction", "entailment", "neutral")
_PAIR = Columns("sentence1", "sentence2", "label", id="id")
_SENTENCE = Columns("sentence", None, "label", id="id")
_XNLI = Columns("sentence1", "sentence2", "gold_label", language="zh")
# Huawei's files, in the order of its `TextClfProcessor`, have no header; others name the columns.
_CHNSENTI = Columns("text_a", None, "label", ("label", "text_a"))
_LCQMC = Columns("text_a", "text_b", "label", ("text_a", "text_b", "label"))

DATA_SETS = {
    # Its development and test files may have a column qid before the other columns.
    "chnsenti": DataSet(
        _parts(_CHNSENTI, ["train.tsv"], ["dev.tsv"], ["test.tsv"]),
        ("0", "1"),
    ),
    "lcqmc": DataSet(
        _parts(_LCQMC, *([f"{part}.tsv", f"{part}.txt"] for part in ("train", "dev", "test"))),
        ("0", "1"),
    ),
    # Chinese only, as in Google's run_classifier.py.
    "xnli": DataSet(
        {
            **_parts(_XNLI, [], ["xnli.dev.tsv"], ["xnli.test.tsv"]),
            "train": Files(
                ("multinli/multinli.train.zh.tsv",),
                Columns("premise", "hypo", "label", ("premise", "hypo", "label")),
            ),
        },
        _INFERENCE,
        same_labels={"contradictory": "contradiction"},
    ),
    "ocnli": DataSet(
        _parts(
            _PAIR,
            ["train.50k.json", "train.json", "train.jsonl", *_few("train")],
            ["dev.json", "dev.jsonl", *_few("dev")],
            ["test.json", "test.jsonl", "test_public.json"],
        ),
        _INFERENCE,
        no_label="-",
    ),
    "cmnli": DataSet(_clue(_PAIR), _INFERENCE, no_label="-"),
    "afqmc": DataSet(_clue(_PAIR), ("0", "1")),
    "bustm": DataSet(_clue(_PAIR), ("0", "1")),
    # 15 classes: the numbers 105 and 111 are not used.
    "tnews": DataSet(
        _clue(_SENTENCE), tuple(str(n) for n in range(100, 117) if n not in (105, 111))
    ),
    "iflytek": DataSet(_clue(_SENTENCE), tuple(map(str, range(119)))),
    "wsc": DataSet(
        _clue(Columns("text", "target", "label", id="id")),
        ("false", "true"),
        rewrite=marked_spans,
        is_joined=True,
    ),
    "csl": DataSet(
        _clue(Columns("abst", "keyword", "label", id="id")), ("0", "1"), rewrite=keywords_first
    ),
}
NAMES = (*DATA_SETS, CUSTOM)


def data_set_of(settings):
    """Returns the `DataSet` of the settings.

    Args:
      settings: `ClassificationSettings`.

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
    wanted = [getattr(settings, f"{name}_column") for name in ("text", "text_pair", "label")]
    if len(set(wanted)) < len(wanted):
        raise UserError(
            f"--text_column, --text_pair_column and --label_column are {wanted}; name another "
            "column for each"
        )
    columns = Columns(
        settings.text_column, settings.text_pair_column or None, settings.label_column, names
    )
    return DataSet(_parts(columns, [], [], []), may_have_no_class=settings.label_type == "multi")
