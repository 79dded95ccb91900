"""Models that get another vocabulary: row by row, by what they compute, and of a real run."""

import json

import numpy as np
import pytest
import small_runs
import tensorflow as tf
from checkpoint_models import assert_equal, convert, weights_in, write_random
from hypothesis import given, settings
from hypothesis import strategies as st
from records import write

import nezha_tf
from nezha_tf import NezhaConfig
from nezha_tf.text.vocabulary import SPECIAL_TOKENS
from nezha_tf.util.errors import UserError

OLD = [*SPECIAL_TOKENS, *"天地玄黄宇宙", "a", "##b", "##c", "ab", "春", "秋"]
NEW = "[PAD] 秋 黄 [UNK] [CLS] 洪 天地 abc ##bc a [MASK] [SEP] x 春".split()
# Of each token of NEW, the tokens of OLD whose mean its row is.
ORIGINS = {"洪": ["[UNK]"], "x": ["[UNK]"], "天地": ["天", "地"], "abc": ["ab", "##c"]}
ORIGINS |= {"##bc": ["##b", "##c"]}


def write_tokens(path, tokens):
    path.write_text("".join(f"{token}\n" for token in tokens), encoding="utf-8")


def write_old(folder, kind="pretraining", tokens=OLD, **changes):
    found = write_random(folder, kind, vocab_size=len(tokens), **changes)
    write_tokens(folder / "vocab.txt", tokens)
    return found


@pytest.mark.parametrize(
    "kind, tables",
    (
        ("pretraining", ["cls/predictions/output_bias"]),
        ("permutation", ["cls/predictions/output_bias"]),
        ("replaced_tokens", ["cls/predictions/output_bias", "generator/masked_lm/output_bias"]),
        ("encoder", []),
    ),
)
def test_row_by_row(tmp_path, kind, tables):
    sizes = {"hidden_size": 16, "num_attention_heads": 4}
    config, weights = write_old(tmp_path / "old", kind, **sizes)
    tables = ["bert/embeddings/word_embeddings", *tables]
    assert {n for n, value in weights.items() if len(OLD) in value.shape} == {*tables}
    write_tokens(tmp_path / "new.txt", NEW)
    report = convert(
        tmp_path / "old", tmp_path / "new", "nezha_tf", new_vocab_file=str(tmp_path / "new.txt")
    )
    assert "17 tokens become 14: 9 keep their rows, 2 begin as [UNK], 3 as the mean" in report
    expected = dict(weights)
    for name in tables:
        rows = [
            sum(weights[name][OLD.index(piece)] for piece in ORIGINS.get(token, [token]))
            / np.float32(len(ORIGINS.get(token, [token])))
            for token in NEW
        ]
        expected[name] = np.array(rows, "float32")
    found = weights_in(tmp_path / "new" / "model.ckpt-7")
    for name in tables:
        np.testing.assert_allclose(found.pop(name), expected.pop(name), rtol=1e-6, atol=1e-7)
    assert_equal(found, expected)
    assert (tmp_path / "new" / "vocab.txt").read_text(encoding="utf-8").split() == NEW
    renewed = NezhaConfig.from_json_file(tmp_path / "new" / "bert_config.json")
    assert renewed.to_dict() == {**config.to_dict(), "vocab_size": len(NEW)}


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    """A model of characters, and the same with characters in another order and new ones."""
    folder = tmp_path_factory.mktemp("pair")
    write_old(folder / "old", tokens=[*SPECIAL_TOKENS, *"天地玄黄宇宙"], max_position_embeddings=40)
    write_tokens(folder / "new.txt", ["洪", *"宙玄荒地", *reversed(SPECIAL_TOKENS), *"天，宇黄"])
    convert(folder / "old", folder / "new", "nezha_tf", new_vocab_file=str(folder / "new.txt"))
    return nezha_tf.load(folder / "old"), nezha_tf.load(folder / "new")


@settings(deadline=None, max_examples=20)
@given(text=st.text("天地玄黄宇宙洪荒，。秋 ", min_size=1, max_size=20))
def test_any_text_of_characters_is_computed_as_before(pair, text):
    """What the old vocabulary has keeps its numbers; what it lacks was, and is, as [UNK]."""
    outputs = []
    for tokenizer, model in pair:
        ids = tokenizer.convert_tokens_to_ids(["[CLS]", *tokenizer.tokenize(text), "[SEP]"])
        inputs = {
            "input_ids": ids,
            "input_mask": [1] * len(ids),
            "masked_lm_positions": range(len(ids)),
        }
        found = model({n: np.array([v]) for n, v in inputs.items()}, all_outputs=True)
        vocabulary = tokenizer.vocabulary
        columns = vocabulary.ids_of(["天", "宙", "[MASK]", "[UNK]"])
        outputs.append(
            (found["sequence_output"].numpy(), found["masked_lm_logits"].numpy()[..., columns])
        )
    for before, after in zip(*outputs, strict=True):
        np.testing.assert_allclose(after, before, atol=1e-5)


def test_the_same_vocabulary_changes_nothing_in_any_layout(tmp_path):
    _, weights = write_old(tmp_path / "old", position_encoding="absolute")
    vocab_file = str(tmp_path / "old" / "vocab.txt")
    convert(tmp_path / "old", tmp_path / "same", "nezha_tf", new_vocab_file=vocab_file)
    assert_equal(weights_in(tmp_path / "same" / "model.ckpt-7"), weights)
    for layout in ("hugging_face", "tf1"):
        for name, flags in (("plain", {}), ("again", {"new_vocab_file": vocab_file})):
            convert(tmp_path / "old", tmp_path / name / layout, layout, **flags)
        plain, again = (
            {p.name: p.read_bytes() for p in (tmp_path / name / layout).iterdir()}
            for name in ("plain", "again")
        )
        for file in plain.keys() - {"README.md"}:
            assert again[file] == plain[file], file


def test_hugging_faces_files_have_the_new_tokens(tmp_path):
    write_old(tmp_path / "old", "masked_lm", position_encoding="absolute")
    write_tokens(tmp_path / "new.txt", NEW)
    convert(
        tmp_path / "old", tmp_path / "hf", "hugging_face", new_vocab_file=str(tmp_path / "new.txt")
    )
    values = json.loads((tmp_path / "hf" / "config.json").read_text())
    assert (values["vocab_size"], values["pad_token_id"]) == (len(NEW), 0)
    tokens = json.loads((tmp_path / "hf" / "tokenizer.json").read_text(encoding="utf-8"))
    assert tokens["model"]["vocab"] == {token: index for index, token in enumerate(NEW)}
    tokenizer, model = nezha_tf.load(tmp_path / "hf")
    ids = tokenizer.convert_tokens_to_ids(tokenizer.tokenize("洪abc天"))
    assert ids == [NEW.index("洪"), NEW.index("abc"), NEW.index("[UNK]")]
    found = model({"input_ids": np.array([ids])}, all_outputs=True)
    assert found["sequence_output"].shape[:2] == (1, 3)


def turned(record):
    """Returns a record with the ids of the same tokens where all but [PAD] are in reverse order."""
    example = tf.train.Example.FromString(record)
    ids = example.features.feature["input_ids"].int64_list.value
    ids[:] = [len(small_runs.TOKENS) - index if index else 0 for index in ids]
    return example.SerializeToString()


def test_what_a_run_has_learnt_goes_over(tmp_path):
    """Where ids mean other tokens, the converted model predicts the next ones as well as before."""
    small_runs.write_data(tmp_path, hidden_size=32)
    flags = ("--num_train_steps=200", "--learning_rate=2e-2", "--do_eval")
    before = small_runs.train(tmp_path, "first", "causal", *flags)
    assert before["next_token_accuracy"] > 0.5
    write_tokens(tmp_path / "vocab.txt", [small_runs.TOKENS[0], *small_runs.TOKENS[:0:-1]])
    vocab_file, start = str(tmp_path / "vocab.txt"), tmp_path / "start"
    convert(tmp_path / "first", start, "nezha_tf", new_vocab_file=vocab_file)
    records = map(turned, map(small_runs.record, range(200, 240)))
    write(tmp_path / "eval.tfrecord", records)
    flags = (f"--init_checkpoint={start}", f"--bert_config_file={start}/bert_config.json")
    after = small_runs.train(tmp_path, "after", "causal", *flags, "--do_eval", "--nodo_train")
    np.testing.assert_allclose(after["loss"], before["loss"], rtol=1e-5)


@pytest.mark.parametrize(
    "tokens, drop, message",
    (
        (["[PAD]", "天"], (), r"new\.txt lacks \[UNK\], \[CLS\], \[SEP\], \[MASK\]"),
        (
            NEW,
            ("bert/embeddings/word",),
            "--new_vocab_file: the weights have no bert/embeddings/wo",
        ),
    ),
)
def test_what_cannot_have_a_new_vocabulary(tmp_path, tokens, drop, message):
    write_old(tmp_path / "old")
    write_tokens(tmp_path / "new.txt", tokens)
    flags = {"new_vocab_file": str(tmp_path / "new.txt"), "drop": drop, "allow_missing": drop}
    with pytest.raises(UserError, match=message):
        convert(tmp_path / "old", tmp_path / "new", "nezha_tf", **flags)
    assert not (tmp_path / "new").exists()


def test_a_model_without_a_vocabulary(tmp_path):
    write_old(tmp_path / "old")
    (tmp_path / "old" / "vocab.txt").rename(tmp_path / "new.txt")
    with pytest.raises(UserError, match=r"no vocab\.txt in .*pass --vocab_file"):
        convert(
            tmp_path / "old", tmp_path / "new", "nezha_tf", new_vocab_file=str(tmp_path / "new.txt")
        )
