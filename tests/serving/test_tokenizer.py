"""`Tokenizer` against the packing by hand, of fine-tuning, of exports and of transformers."""

import copy
import pickle

import keras
import numpy as np
import pytest
from any_texts import odd_strings
from conftest import RESOURCES
from export_folders import LONG_TEXT, ODD_TEXTS, Served, ask, real_texts
from helpers import write_model_files, write_rows
from natural_texts import NATURAL, cased_tokenizer

import nezha_tf
from nezha_tf import FullTokenizer, Tokenizer
from nezha_tf.tasks.classification.settings import ClassificationSettings
from nezha_tf.tasks.classification.task import Classification
from nezha_tf.util.errors import UserError

VOCABULARY = RESOURCES / "vocab.txt"
LENGTH = 24
TEXTS = [*real_texts(), *ODD_TEXTS, *odd_strings()[:60], LONG_TEXT[:4000]]
# Shorter and longer than the text that they stand beside.
PAIRS = [text[: 3 * number] for number, text in enumerate(reversed(TEXTS))]


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer(VOCABULARY)


def rows_of(inputs):
    """Returns the (ids, segment ids) of each row, lists without the padding, which is 0."""
    rows = []
    for ids, mask, segments in zip(*inputs.values(), strict=True):
        count = int(mask.sum())
        assert mask.tolist() == [1] * count + [0] * (len(mask) - count)
        assert not ids[count:].any() and not segments[count:].any()
        rows.append((ids[:count].tolist(), segments[:count].tolist()))
    return rows


def by_hand(texts, pairs, length):
    original = FullTokenizer(VOCABULARY)
    rows = []
    for row in zip(*filter(None, (texts, pairs)), strict=True):
        sides = [original.tokenize(text) for text in row]
        while sum(map(len, sides)) > length - 1 - len(sides):
            max(reversed(sides), key=len).pop()
        tokens, segments = ["[CLS]"], [0]
        for number, side in enumerate(sides):
            tokens += [*side, "[SEP]"]
            segments += [number] * (len(side) + 1)
        rows.append((original.convert_tokens_to_ids(tokens), segments))
    return rows


@pytest.mark.parametrize("pairs", (None, PAIRS), ids=("texts", "pairs"))
@pytest.mark.parametrize("length", (5, LENGTH))
def test_inputs_by_hand(tokenizer, pairs, length):
    expected = by_hand(TEXTS, pairs, length)
    found = tokenizer(TEXTS, pairs, max_length=length)
    assert list(found) == ["input_ids", "input_mask", "segment_ids"]
    longest = max(len(ids) for ids, _ in expected)
    for values in found.values():
        assert values.dtype == np.int32 and values.shape == (len(TEXTS), longest)
    assert rows_of(found) == expected


def test_one_text_and_none(tokenizer):
    one, few = tokenizer("今天", "好"), tokenizer(iter(["今天"]), ("好",))
    assert one["input_ids"].shape == (1, 6)
    for name, values in one.items():
        np.testing.assert_array_equal(values, few[name])
    assert tokenizer([])["input_ids"].shape == (0, 2)
    assert tokenizer([], [])["segment_ids"].shape == (0, 3)
    whole = tokenizer("今天", "好", LENGTH, padding="max_length")
    assert whole["input_ids"].shape == (1, LENGTH) and rows_of(whole) == rows_of(one)
    long = "好" * 600
    assert tokenizer(long)["input_mask"].sum() == 512
    assert Tokenizer(VOCABULARY, max_length=9)(long)["input_mask"].sum() == 9


def test_training_reads_the_same(tokenizer, tmp_path):
    texts = [*real_texts(), *NATURAL]
    rows = [
        {"text": text, "text_pair": pair, "label": "是否"[number % 2]}
        for number, (text, pair) in enumerate(zip(texts, reversed(texts), strict=True))
    ]
    config = {"vocab_size": 9200, "hidden_size": 4, "num_attention_heads": 1}
    files = write_model_files(tmp_path, VOCABULARY.read_text(encoding="utf-8").split(), config)
    settings = ClassificationSettings(
        **files,
        task_name="custom",
        do_train=True,
        text_pair_column="text_pair",
        train_file=write_rows(tmp_path / "train.jsonl", *rows),
        max_seq_length=LENGTH,
        output_dir=str(tmp_path / "run"),
    )
    arrays = Classification(settings).examples["train"].arrays
    expected = zip(arrays["input_ids"], arrays["segment_ids"], strict=True)
    found = rows_of(tokenizer(texts, texts[::-1], LENGTH))
    assert found == [(ids.tolist(), segments.tolist()) for ids, segments in expected]


@pytest.mark.parametrize("is_pair", (False, True))
def test_exports_read_the_same(tmp_path, is_pair):
    task = {"task": "classification", "label_type": "single", "is_pair": is_pair}
    served = Served(tmp_path / "model", {**task, "labels": ["a", "b"], "max_seq_length": LENGTH})
    tokenizer = Tokenizer.from_preset(tmp_path / "model")
    assert tokenizer.max_length == LENGTH
    texts = {"text": TEXTS, "text_pair": PAIRS} if is_pair else {"text": TEXTS}
    by_text = ask(served, **texts)["probabilities"]
    by_ids = ask(served, "from_ids", **tokenizer(*texts.values()))["probabilities"]
    np.testing.assert_array_equal(by_ids, by_text)
    assert len(np.unique(by_text[:, 0].round(3))) > 5


@pytest.mark.parametrize("do_lower_case", (True, False))
def test_transformers_reads_the_same(do_lower_case):
    transformers = pytest.importorskip("transformers", reason="pip install -e '.[transformers]'")
    texts = [*real_texts(), *NATURAL, LONG_TEXT[:3000]]
    theirs = transformers.BertTokenizer(VOCABULARY, do_lower_case=do_lower_case)
    ours = Tokenizer(VOCABULARY, do_lower_case)
    names = dict(input_ids="input_ids", input_mask="attention_mask", segment_ids="token_type_ids")
    for pairs in (None, texts[::-1]):
        expected = theirs(texts, pairs, max_length=LENGTH, truncation="longest_first", padding=True)
        for name, values in ours(texts, pairs, LENGTH).items():
            assert values.tolist() == expected[names[name]], name


def test_what_a_preset_has():
    mini = Tokenizer.from_preset("mini")
    opened, _ = nezha_tf.load("mini")
    assert mini.do_lower_case and mini.max_length == 512
    assert mini.vocabulary.tokens == opened.vocabulary.tokens
    assert mini.vocab_size == len(opened.vocabulary.tokens)
    ids = [mini.pad_id, mini.unk_id, mini.cls_id, mini.sep_id, mini.mask_id]
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    assert ids == [opened.vocabulary.tokens.index(token) for token in special]
    with pytest.raises(UserError, match=r"^no model in nowhere: it is not there; check the path$"):
        Tokenizer.from_preset("nowhere")
    with pytest.raises(UserError, match=r"^cannot read vocabulary nowhere: No such file"):
        Tokenizer("nowhere")


def test_offsets_are_places_in_the_text(tokenizer):
    text = "他说ＨＥＬＬＯ，Café!"
    spans = [(text[start:end]) for _, start, end, _ in tokenizer.tokenize_with_offsets(text)]
    assert "".join(spans) == text
    tokens = [token.text for token in tokenizer.tokenize_with_offsets(text)]
    assert tokens == tokenizer.tokenize(text)
    assert tokenizer(text)["input_ids"][0, 1:-1].tolist() == tokenizer.convert_tokens_to_ids(tokens)


def test_ids_to_texts():
    cased = cased_tokenizer()
    tokenizer = Tokenizer(vocabulary=cased.vocabulary, do_lower_case=False)
    ids = tokenizer(NATURAL)["input_ids"]
    assert tokenizer.decode(ids) == list(NATURAL)
    assert tokenizer.decode(keras.ops.convert_to_tensor(ids)) == list(NATURAL)
    assert tokenizer.decode([row.tolist() for row in ids]) == list(NATURAL)
    assert tokenizer.decode(ids[0]) == tokenizer.decode(ids[0].tolist()) == NATURAL[0]
    assert tokenizer.decode(tokenizer("你", "好")["input_ids"]) == ["你好"]
    assert tokenizer.decode(ids[:0]) == [] and tokenizer.decode([]) == ""


def test_a_copy_is_the_same(tokenizer):
    tokenizer("今天")
    for other in (pickle.loads(pickle.dumps(tokenizer)), copy.deepcopy(tokenizer)):
        assert other.max_length == tokenizer.max_length
        assert other(NATURAL)["input_ids"].tolist() == tokenizer(NATURAL)["input_ids"].tolist()


@pytest.mark.parametrize(
    "arguments, message",
    (
        (dict(texts=5), "texts is int: give a str, or a list of str"),
        (dict(texts=None), "texts is NoneType: give a str"),
        (dict(texts=b"a"), "texts is bytes: give a str"),
        (dict(texts=["a", float("nan")]), r"texts\[1\] is float, not str: leave such rows out"),
        (dict(texts=[("a", "b")]), r"texts\[0\] is tuple, not str"),
        (dict(texts=np.array([["a"]])), r"texts\[0\] is ndarray, not str"),
        (dict(texts=["a\ud800"]), r"texts\[0\] has half a character at 1 \(a surrogate\): decode"),
        (dict(texts=["a", "b"], pairs=["c", 3]), r"pairs\[1\] is int, not str"),
        (dict(texts=["a", "b"], pairs=["c"]), "texts are 2, but pairs 1: give each text its"),
        (dict(texts="a", max_length=2), "max_length=2: give a whole number of at least 3"),
        (dict(texts="a", pairs="b", max_length=4), "max_length=4: give a .* of at least 5"),
        (dict(texts="a", max_length="9"), "max_length='9': give a whole number"),
        (dict(texts="a", padding=True), "padding=True: give 'longest' or 'max_length'"),
    ),
)
def test_mistakes_are_one_line(tokenizer, arguments, message):
    with pytest.raises(UserError, match=f"^{message}") as error:
        tokenizer(**arguments)
    assert len(str(error.value).splitlines()) == 1


@pytest.mark.parametrize("ids", ([9103], [[1], [-1]], np.array([1.0]), 1.5))
def test_what_is_no_id(tokenizer, ids):
    with pytest.raises(UserError, match=r"^\S+ is no id: give whole numbers from 0 to 9102$"):
        tokenizer.decode(ids)
