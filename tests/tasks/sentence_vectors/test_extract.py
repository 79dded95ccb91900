"""Vectors of texts against plain NumPy on what the model puts out for each text by itself."""

import json
import shutil

import keras
import numpy as np
import pytest
from helpers import rows_of, write_rows
from hypothesis import given
from hypothesis import strategies as st
from laws import examples

from nezha_tf import FullTokenizer, NezhaConfig, NezhaEncoder, checkpoints
from nezha_tf.generation.model import open_model, with_defaults
from nezha_tf.modeling.positions import relative
from nezha_tf.modeling.positions.distances import SequencePositions
from nezha_tf.tasks.sentence_vectors.extract import DEFAULTS, extract_features
from nezha_tf.tasks.sentence_vectors.extract_settings import ExtractSettings
from nezha_tf.tasks.sentence_vectors.vectors import covered_characters, read_pairs
from nezha_tf.util import storage
from nezha_tf.util.errors import UserError

# The last two are what a Hangul syllable is made of.
TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"甲乙丙丁戊,", "hel", "##lo", "ᄀ", "##ᅡᆨ"]
MOST = 12
# Rising and falling in length, more than a batch of 4; the third is cut.
TEXTS = [
    "甲乙丙",
    "丁",
    "甲乙丙丁戊" * 4,
    "戊hello,甲",
    "丙丙",
    "甲 龘 hel乙각",
    "乙甲戊丁",
    "丁甲",
]
PAIRS = [("甲乙", "hello"), ("丁丙丁", "丁丙丁"), ("戊" * 9, "甲" * 9)]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A folder with a random model of two layers, and the model."""
    folder = tmp_path_factory.mktemp("model")
    config = NezhaConfig(
        vocab_size=20,
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=24,
        type_vocab_size=2,
        max_position_embeddings=16,
        initializer_range=0.5,
        position_encoding="absolute",
    )
    keras.utils.set_random_seed(1)
    model = NezhaEncoder(config)
    checkpoints.save_tf1_checkpoint(model, folder / "model.ckpt")
    config.to_json_file(str(folder / "bert_config.json"))
    (folder / "vocab.txt").write_text("\n".join(TOKENS), encoding="utf-8")
    return folder, model


@pytest.fixture
def extract(model, tmp_path):
    """Returns a function: rows, changes of the settings -> (output's path, what was said)."""
    folder, _ = model

    def of(rows, output="out.jsonl", **changes):
        standard = {
            "bert_config_file": str(folder / "bert_config.json"),
            "vocab_file": str(folder / "vocab.txt"),
            "init_checkpoint": str(folder / "model.ckpt"),
            "input_file": write_rows(tmp_path / "in.jsonl", *rows),
            "output_file": output and str(tmp_path / output),
            "max_seq_length": MOST,
            "predict_batch_size": 4,
        }
        settings = ExtractSettings(**{**standard, **changes})
        return tmp_path / (output or ""), extract_features(settings)

    return of


def singles(texts):
    return [{"text": text} for text in texts]


def outputs_of(model, text, pair=None):
    """Returns the tokens of one text, or two that fit, and the model's outputs without batch."""
    tokenizer = FullTokenizer(model[0] / "vocab.txt")
    first = ["[CLS]", *tokenizer.tokenize(text)[: MOST - 2], "[SEP]"]
    second = [*tokenizer.tokenize(pair), "[SEP]"] if pair else []
    ids = np.array([tokenizer.convert_tokens_to_ids(first + second)])
    segments = np.array([[0] * len(first) + [1] * len(second)])
    inputs = {"input_ids": ids, "input_mask": np.ones_like(ids), "segment_ids": segments}
    outputs = model[1](inputs, all_outputs=True)
    states = [outputs["embedding_output"], *outputs["encoder_outputs"]]
    states = [state[0].numpy() for state in states]
    return first + second, states, outputs["pooled_output"][0].numpy()


@pytest.mark.parametrize("pooling", ("mean", "max", "pooler"))
def test_vectors_of_texts(model, extract, pooling):
    layers = ("-1",) if pooling == "pooler" else ("-1", "0", "1")
    path, said = extract(singles(TEXTS), "out.npy", pooling=pooling, layers=layers)
    assert said.startswith(f"{len(TEXTS)} texts; ") and said.endswith("truncated: 1")
    expected = []
    for text in TEXTS:
        tokens, states, pooled = outputs_of(model, text)
        vectors = np.concatenate([states[2], states[0], states[1]], axis=1)[1:-1]
        assert tokens[0] == "[CLS]" and tokens[-1] == "[SEP]"
        by_hand = {"mean": vectors.mean(axis=0), "max": vectors.max(axis=0), "pooler": pooled}
        expected.append(by_hand[pooling])
    found = np.load(path)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, np.array(expected), atol=1e-5)


def test_vectors_of_tokens(model, extract):
    array, said = extract(singles(TEXTS), "out.npy", level="token", layers=("-2",))
    offsets = np.load(array.with_name("out.offsets.npy"))
    assert "out.offsets.npy" in said
    path, _ = extract(singles(TEXTS), level="token", layers=("-2",))
    vectors, lines = np.load(array), rows_of(path)
    assert len(offsets) == len(TEXTS) + 1 and offsets[-1] == len(vectors)
    for index, (text, line) in enumerate(zip(TEXTS, lines, strict=True)):
        tokens, states, _ = outputs_of(model, text)
        assert line["text"] == text and line["tokens"] == tokens
        rows = vectors[offsets[index] : offsets[index + 1]]
        np.testing.assert_allclose(rows, states[1], atol=1e-5)
        np.testing.assert_allclose(line["vectors"], rows, atol=6e-7)


def test_vectors_of_pairs(model, extract):
    rows = [{"text": a, "text_pair": b} for a, b in PAIRS[:2]]
    path, _ = extract(rows, level="token")
    for row, line in zip(rows, rows_of(path), strict=True):
        tokens, states, _ = outputs_of(model, row["text"], row["text_pair"])
        assert line["tokens"] == tokens and line["text_pair"] == row["text_pair"]
        np.testing.assert_allclose(line["vectors"], states[2], atol=1e-5)
    # The mean leaves out the [SEP] between them, too.
    path, said = extract([{"text": a, "text_pair": b} for a, b in PAIRS])
    assert "truncated: 1" in said
    tokens, states, _ = outputs_of(model, *PAIRS[0])
    is_text = [token not in ("[CLS]", "[SEP]") for token in tokens]
    expected = states[2][is_text].mean(axis=0)
    np.testing.assert_allclose(rows_of(path)[0]["vector"], expected, atol=1e-5)


def test_vectors_of_characters(model, extract):
    """Each character has the vector of its token; white space and what was cut have none."""
    path, _ = extract(singles(TEXTS), level="character")
    lines = rows_of(path)
    assert [line["text"] for line in lines] == TEXTS
    cut = lines[2]
    assert cut["characters"] == list(TEXTS[2][: MOST - 2])
    # Character -> the places, after [CLS], of its tokens, worked out by hand.
    by_hand = {
        3: {0: [1], 1: [2], 2: [2], 3: [2], 4: [3], 5: [3], 6: [4], 7: [5]},
        5: {0: [1], 2: [2], 4: [3], 5: [3], 6: [3], 7: [4], 8: [5, 6]},
    }
    for index, characters in by_hand.items():
        line, text = lines[index], TEXTS[index]
        states = outputs_of(model, text)[1]
        assert line["positions"] == list(characters)
        assert line["characters"] == [text[position] for position in characters]
        expected = [states[2][places].mean(axis=0) for places in characters.values()]
        np.testing.assert_allclose(line["vectors"], expected, atol=1e-5)


@examples(50)
@given(st.lists(st.tuples(st.integers(0, 20), st.integers(1, 3)), min_size=1, max_size=8))
def test_characters_covered_by_spans(drawn):
    """Against a loop over every pair."""
    spans = np.array([(start, start + length) for start, length in sorted(drawn)])
    positions, place, token = covered_characters(spans)
    pairs = {(c, p) for p, (a, b) in enumerate(spans) for c in range(a, b)}
    assert positions.tolist() == sorted({c for c, _ in pairs})
    found = list(zip(positions[place].tolist(), token.tolist(), strict=True))
    assert len(found) == len(pairs) and set(found) == pairs


def test_similarity_of_pairs(extract, capsys):
    rows = [{"text": a, "text_pair": b} for a, b in PAIRS]
    path, said = extract(rows, similarity=True)
    lines = rows_of(path)
    vectors = np.load(extract(singles(t for pair in PAIRS for t in pair), "out.npy")[0])
    places = enumerate(zip(rows, lines, vectors[::2], vectors[1::2], strict=True), start=1)
    for number, (row, line, first, second) in places:
        cosine = first @ second / np.sqrt((first @ first) * (second @ second))
        assert line == {"line": number, **row, "similarity": pytest.approx(cosine, abs=1e-5)}
    assert lines[1]["similarity"] == 1.0
    mean = np.mean([line["similarity"] for line in lines])
    assert said == f"3 pairs; similarity {mean:.4f} on average"
    extract(rows, output=None, similarity=True)
    shown = capsys.readouterr().out.splitlines()
    assert shown[1] == "1.0000  丁丙丁  |  丁丙丁" and len(shown) == 3


def test_labels_of_pairs_are_compared_with_their_similarity(extract):
    names = {"text_column": "a", "text_pair_column": "b", "label_column": "y"}
    rows = [{"a": a, "b": b, "y": y} for (a, b), y in zip(PAIRS, (0.5, 3, "0"), strict=True)]
    path, said = extract(rows, similarity=True, **names)
    similarities = [line["similarity"] for line in rows_of(path)]
    # Without ties, 1 - 6 sum(d^2) / (n (n^2 - 1)) of the ranks' differences d.
    ranks = np.argsort(np.argsort(similarities)), np.argsort(np.argsort([0.5, 3, 0]))
    expected = 1 - 6 * ((ranks[0] - ranks[1]) ** 2).sum() / (3 * 8)
    assert said.endswith(f"Spearman correlation with the labels {expected:.4f}")
    for bad, message in (
        ({"a": "甲", "b": "乙"}, r'line 2: "y" is missing'),
        *(
            ({**rows[1], "y": label}, r"line 2: label .* is ")
            for label in ("x", "nan", float("inf"), "1e39")
        ),
    ):
        with pytest.raises(UserError, match=message):
            extract([rows[0], bad], similarity=True, **names)
    # A label that nobody asks for may be anything.
    assert extract([{**rows[0], "y": "x"}], similarity=True, **{**names, "label_column": None})
    with pytest.raises(UserError, match="are a, a, y; name another one for each"):
        extract(rows, similarity=True, **{**names, "text_pair_column": "a"})


def test_columns_are_found_by_the_first_line(tmp_path):
    def read(text, name="in.tsv", needed=False, **columns):
        (tmp_path / name).write_text(text, encoding="utf-8")
        return [row.values for row in read_pairs([str(tmp_path / name)], needed, **columns)]

    assert read("甲\t乙\n") == [{"text": "甲", "text_pair": "乙"}]
    assert read("text\tlabel\n甲\t1\n") == [{"text": "甲"}]
    (tmp_path / "in.txt").write_text("\n甲\n \n\u200b\n乙\n\n", encoding="utf-8")
    assert [row.line for row in read_pairs([str(tmp_path / "in.txt")], False)] == [2, 5]
    assert read("label\tr\n1\t甲\n", columns=("r", "s")) == [{"text": "甲"}]
    pair = {"text": "甲", "text_pair": "乙"}
    assert read("b,a\n乙,甲\n", "in.csv", needed=True, columns=("a", "b")) == [pair]
    found = read("y\ta\tb\n3\t甲\t乙\n", needed=True, columns=("a", "b"), label_column="y")
    assert found == [{**pair, "label": "3"}]
    for text in ("甲\t乙\n", "a\t乙\n"):
        with pytest.raises(UserError, match=r"line 1: there is no column '[ab]'; the columns are"):
            read(text, needed=True, columns=("a", "b"))


def test_a_table_with_blank_lines_into_a_new_folder(model, extract, tmp_path):
    """Blank lines have no vectors."""
    path = tmp_path / "in.tsv"
    path.write_text("".join(f"{a}\t{b}\n\n" for a, b in PAIRS), encoding="utf-8")
    output, said = extract([], "out/x.npy", input_file=str(path), pooling="cls")
    told = f"3 texts; vectors in {output}; too long, so truncated: 1; blank lines passed over: 3 "
    assert said == f"{told}(the first: {path}, line 2)"
    expected = outputs_of(model, *PAIRS[0])[1][2][0]
    np.testing.assert_allclose(np.load(output)[0], expected, atol=1e-5)
    assert [path.name for path in output.parent.iterdir()] == ["x.npy"]


def test_a_folder_says_how_long_texts_may_be(model, extract, tmp_path):
    """Those of its run; a flag that is given wins, and without either it is 128."""
    folder, _ = model
    shutil.copytree(folder, tmp_path / "run")
    task = {"task": "pretraining", "objectives": "bidirectional", "uses_averages": False}
    task |= {"max_seq_length": 7, "do_lower_case": True}
    (tmp_path / "run" / "task.json").write_text(json.dumps(task))
    way = {"model_folder": str(tmp_path / "run")}
    way |= dict.fromkeys(("bert_config_file", "vocab_file", "init_checkpoint"))
    written = {}
    for name, changes in (
        ("folder", {**way, "max_seq_length": None}),
        ("bare", {"max_seq_length": 7}),
        ("flag", {**way, "max_seq_length": 9}),
    ):
        path, said = extract(singles(TEXTS), f"{name}.npy", **changes)
        written[name] = np.load(path)
        # Texts of 5, 6 and 20 tokens are the longest.
        assert said.endswith("truncated: 1" if name == "flag" else "truncated: 2")
    np.testing.assert_array_equal(written["folder"], written["bare"])
    with pytest.raises(UserError, match="--max_seq_length=128 is past"):
        extract(singles(TEXTS), max_seq_length=None)


def test_relative_positions_of_short_texts_are_looked_up(tmp_path, monkeypatch):
    """With a text of more tokens than there are distances, scores are spread: the same vectors."""
    made = []

    def spread(*tables):
        made.append(tables)
        return SequencePositions(*tables)

    monkeypatch.setattr(relative, "SequencePositions", spread)
    vectors = []
    for texts in (["今天很冷。", "好"], ["今天很冷。", "好", "好" * 200]):
        made.clear()
        path, output = write_rows(tmp_path / "in.jsonl", *singles(texts)), tmp_path / "out.npy"
        extract_features(ExtractSettings(input_file=path, output_file=str(output), level="text"))
        vectors.append(np.load(output))
        assert bool(made) == (len(texts) == 3)
    np.testing.assert_allclose(vectors[0], vectors[1][:2], atol=1e-5)


@pytest.mark.parametrize(
    "said, pooling",
    (
        ({"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}, "cls"),
        ({"word_embedding_dimension": 16, "pooling_mode_max_tokens": True}, "max_all"),
        ({"pooling_mode_lasttoken": True}, "mean"),
        (None, "mean"),
    ),
)
def test_the_pooling_is_that_of_sentence_transformers(model, tmp_path, said, pooling):
    """Where its file says one that is known; else the mean."""
    folder = tmp_path / "published"
    shutil.copytree(model[0], folder)
    if said is not None:
        (folder / "1_Pooling").mkdir()
        (folder / "1_Pooling" / "config.json").write_text(json.dumps(said))
    settings = ExtractSettings(model_folder=str(folder))
    assert with_defaults(settings, open_model(settings), DEFAULTS).pooling == pooling


def test_similarities_may_be_remote_and_leave_nothing_here(extract, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = "ram://similarities/out.jsonl"
    rows = [{"text": first, "text_pair": second} for first, second in PAIRS]
    extract(rows, output_file=path, similarity=True)
    with storage.open_text(path) as file:
        assert [json.loads(line)["text"] for line in file] == [first for first, _ in PAIRS]
    assert [path.name for path in tmp_path.iterdir()] == ["in.jsonl"]


def test_mistakes_are_one_line(extract, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pair, alone = {"text": "甲", "text_pair": "乙"}, {"text": "甲"}
    for rows, changes, message in (
        ([alone, pair], {}, r"in.jsonl, line 1: one text, where other lines have two"),
        ([alone], {"similarity": True}, r'line 1: "text_pair" is missing'),
        ([pair], {"level": "character"}, r"line 1: --level=character takes one text"),
        ([pair], {"similarity": True, "level": "token"}, r"leave out --level=token"),
        ([alone, {"text": " "}], {}, r"line 2: text is empty"),
        ([alone, {"text": "\u0007"}], {}, r"line 2: text has no tokens"),
        ([alone], {"output": None}, r"--output_file is needed"),
        ([alone], {"output": "out.txt"}, r"out.txt must end in .json, .jsonl, .npy"),
        ([pair], {"output": "out.npy", "similarity": True}, r"out.npy must end in .json, .jsonl$"),
        *(
            ([alone], {"output_file": path}, f"--output_file={path} is not on this machine")
            for path in ("ram://d/x.npy", "gs://d/x.jsonl")
        ),
        ([alone], {"input_file": None}, r"--input_file is needed"),
        ([alone], {"layers": ()}, r"--layers is empty; name a layer"),
        ([alone], {"layers": ("3",)}, r"--layers: '3' is no layer .* 0 .* to 2, or -1 .* to -3"),
        ([alone], {"layers": ("-4",)}, r"--layers: '-4' is no layer"),
        ([alone], {"layers": ("last",)}, r"--layers: 'last' is no layer"),
        (
            [alone],
            {"layers": ("0",), "pooling": "pooler"},
            r"--pooling=pooler reads the last layer",
        ),
        ([pair], {"label_column": "y"}, r"--label_column=y does nothing without --similarity"),
        ([alone], {"max_seq_length": 17}, r"--max_seq_length=17 is past .*embeddings 16"),
    ):
        with pytest.raises(UserError, match=message) as error:
            extract(rows, **changes)
        assert "\n" not in str(error.value)
    assert [path.name for path in tmp_path.iterdir()] == ["in.jsonl"]
