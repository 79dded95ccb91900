"""Classification by the words in a pattern's blanks: packing, loss, a toy task, and mistakes."""

import json

import numpy as np
import pytest
from commands import QUICK_CONFIG
from export_folders import ODD_TEXTS, Served, ask
from helpers import rows_of, write_model_files, write_rows
from hypothesis import given
from hypothesis import strategies as st
from laws import examples

from nezha_tf import FullTokenizer, NezhaConfig, NezhaEncoder, checkpoints
from nezha_tf.checkpoints.folder import open_folder
from nezha_tf.modeling.pretraining import NezhaForMaskedLM
from nezha_tf.tasks.classification.settings import ClassificationSettings
from nezha_tf.tasks.classification.task import Classification
from nezha_tf.tasks.programs import classify
from nezha_tf.tasks.prompting.loss import PromptLoss
from nezha_tf.tasks.prompting.pattern import Pattern, label_tokens
from nezha_tf.tasks.prompting.task import Prompting
from nezha_tf.text.packing import pack_all
from nezha_tf.text.vocabulary import Vocabulary
from nezha_tf.training.run import run as start
from nezha_tf.util.errors import UserError

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
PAD, UNK, CLS, SEP, MASK = range(5)
TOKENS = [*SPECIAL, *"甲乙丙丁很不好差，。是"]
TOKENIZER = FullTokenizer(vocabulary=Vocabulary(TOKENS))
ID = {token: number for number, token in enumerate(TOKENS)}
SETTINGS = {
    "task": "prompting",
    "label_type": "single",
    "labels": ["不像", "像"],
    "max_seq_length": 24,
}


def ids(text):
    return [ID[char] for char in text]


@examples(100)
@given(st.integers(0, 12), st.integers(0, 12), st.integers(13, 30))
def test_a_pattern_is_whole_and_its_texts_are_cut(first, second, length):
    pattern = Pattern("{text_pair}，[MASK]不[MASK]。{text}", TOKENIZER, length, True)
    texts = ids("甲") * first, ids("乙") * second
    (packed,), (segment_ids,), num_cut = pack_all(
        pattern, *([np.array(t, np.int32)] for t in texts)
    )
    kept = [packed.tolist().count(ID[char]) for char in "甲乙"]
    middle = [ID["，"], MASK, ID["不"], MASK, ID["。"]]
    expected = [CLS, *ids("乙") * kept[1], *middle, *ids("甲") * kept[0], SEP]
    assert packed.tolist() == expected and not segment_ids.any()
    room = length - 7
    assert sum(kept) == min(first + second, room)
    if first + second > room:
        assert num_cut == 1 and len(packed) == length
        longer, shorter = max(first, second), min(first, second)
        assert min(kept) >= min(shorter, room // 2) and max(kept) <= longer


def test_the_scores_are_sums_of_log_probabilities():
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(3, 2, len(TOKENS))).astype(np.float32)
    words = [ids("很好"), ids("不好"), ids("是差")]
    loss = PromptLoss(words, MASK)
    batch = {
        "input_ids": np.array([[CLS, MASK, 5, MASK], [MASK, MASK, 6, SEP], [0, 0, 0, 0]]),
        "input_mask": np.array([[1, 1, 1, 1], [1, 1, 1, 1], [0, 0, 0, 0]]),
        "segment_ids": np.zeros((3, 4), int),
        "label_ids": np.array([2, 0, 1]),
    }
    places = np.array(loss.inputs(batch)["masked_lm_positions"])
    assert places[:2].tolist() == [[1, 3], [0, 1]]
    probs = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    joint = np.array([[row[0, a] * row[1, b] for a, b in words] for row in probs])
    expected = joint / joint.sum(1, keepdims=True)
    outputs = {"masked_lm_logits": logits}
    np.testing.assert_allclose(loss.predictions(outputs)["probabilities"], expected, rtol=1e-5)
    (mean,) = loss.losses(outputs, batch).values()
    assert float(mean.weight) == 2  # the third is padding
    wanted = -np.log(expected[0, 2]) - np.log(expected[1, 0])
    assert float(mean.sum) == pytest.approx(wanted, rel=1e-5)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A pretrained model with random weights, and texts whose class shows in them."""
    folder = tmp_path_factory.mktemp("prompting")
    config = {**QUICK_CONFIG, "vocab_size": len(TOKENS)}
    write_model_files(folder, TOKENS, config)
    model = NezhaForMaskedLM(NezhaConfig.from_dict(config))
    checkpoints.save_tf1_checkpoint(model, str(folder / "model.ckpt-1"))
    rng = np.random.default_rng(0)
    for part, count in (("train", 160), ("dev", 40)):
        rows = []
        for label in rng.integers(0, 2, count):
            body = [*rng.choice([*"丙丁"], rng.integers(1, 9)), "甲乙"[label]]
            rows.append({"text": "".join(rng.permutation(body)), "label": ["a", "b"][label]})
        write_rows(folder / f"{part}.jsonl", *rows)
    return folder


@pytest.fixture
def settings(data, tmp_path):
    common = {
        "task_name": "custom",
        "train_file": str(data / "train.jsonl"),
        "eval_file": str(data / "dev.jsonl"),
        "predict_file": str(data / "dev.jsonl"),
        "vocab_file": str(data / "vocab.txt"),
        "bert_config_file": str(data / "config.json"),
        "init_checkpoint": str(data / "model.ckpt-1"),
        "output_dir": str(tmp_path / "run"),
        "pattern": "{text}。是[MASK][MASK]",
        "label_words": ("很好", "很差"),
        "max_seq_length": 16,
        "learning_rate": 1e-2,
        "num_train_epochs": 5.0,
        "train_batch_size": 16,
        "save_checkpoints_steps": 1000,  # once, at the end
        "jit_compile": False,
    }
    return lambda **changes: ClassificationSettings(**{**common, **changes})


def test_classes_are_learnt_and_the_folder_has_the_pattern(settings, tmp_path):
    start(settings(do_train=True, do_eval=True, do_predict=True), Prompting)
    folder = tmp_path / "run"
    assert json.loads((folder / "eval_results.json").read_text())["accuracy"] > 0.9
    opened = open_folder(folder)
    assert type(opened.make_model()) is NezhaForMaskedLM
    assert opened.task["label_words"] == ["很好", "很差"] and opened.task["task"] == "prompting"
    predicted = [row["prediction"] for row in rows_of(folder / "predictions.jsonl")]
    assert set(predicted) == {"a", "b"}
    # The program needs neither pattern nor words later.
    (folder / "predictions.jsonl").unlink()
    later = {"pattern": None, "label_words": (), "init_checkpoint": None}
    classify(settings(do_predict=True, learning_rate=("1",), **later))
    assert [row["prediction"] for row in rows_of(folder / "predictions.jsonl")] == predicted


def test_what_is_served_is_what_the_model_says(tmp_path):
    pattern = "{text_pair}，{text}的意思[MASK]像。"
    settings = {**SETTINGS, "label_words": ["不", "很"], "is_pair": True, "pattern": pattern}
    served = Served(tmp_path / "pair", settings)
    assert f"`{pattern}`" in served.serving.about
    assert "不 for 不像, 很 for 像" in served.serving.about
    assert served.serving.meanings["segment_ids"] == "0, also for a second text"
    assert served.serving.assets()["pattern.txt"] == f"{pattern}\n"
    texts = ["他在北京。", "今天天气不错，" * 9, *[text for text in ODD_TEXTS if text.strip()]]
    others = texts[::-1]
    found = ask(served, text=texts, text_pair=others)
    assert set(map(len, ask(served, text=[], text_pair=[]).values())) == {0}
    model, tokenizer = served.folder.make_model(), served.folder.tokenizer
    packing = Pattern(pattern, tokenizer, 24, True)
    tokens = label_tokens(settings["labels"], settings["label_words"], tokenizer, 1)
    for number, row in enumerate(zip(texts, others, strict=True)):
        ids = (tokenizer.convert_tokens_to_ids(tokenizer.tokenize(text)) for text in row)
        (packed,), _, _ = pack_all(packing, *([np.array(side, np.int32)] for side in ids))
        place = packed.tolist().index(tokenizer.vocabulary.mask_id)
        inputs = {"input_ids": packed, "input_mask": np.ones_like(packed)}
        inputs = {n: v[None] for n, v in {**inputs, "segment_ids": np.zeros_like(packed)}.items()}
        at_blank = {**inputs, "masked_lm_positions": np.array([[place]])}
        logits = model(at_blank)["masked_lm_logits"][0, 0]
        chosen = np.exp([float(logits[token]) for (token,) in tokens])
        expected = chosen / chosen.sum()
        np.testing.assert_allclose(found["probabilities"][number], expected, atol=1e-5)
        by_ids = ask(served, "from_ids", **inputs)["probabilities"][0]
        np.testing.assert_allclose(by_ids, expected, atol=1e-5)


def test_several_blanks_are_served_and_no_texts(tmp_path):
    own = {"label_words": ["也不像", "真的像"], "is_pair": False}
    served = Served(tmp_path / "model", {**SETTINGS, **own, "pattern": "{text}[MASK][MASK][MASK]"})
    assert set(map(len, ask(served, text=[]).values())) == {0}
    assert ask(served, text=["他在北京。"])["label"][0] in SETTINGS["labels"]


def test_it_is_told_which_word_is_of_which_class(settings):
    """Classes that the flags do not name are sorted; words of another order would be swapped."""
    notes = Prompting(settings(do_train=True)).notes
    assert "words of the classes: a: 很好, b: 很差" in notes


def test_without_dropout_r_drop_compares_what_is_the_same(settings):
    """The head of masked LM has no dropout of its own, as that of a classifier has."""
    told = (
        r"config\.json has no dropout .*--r_drop_alpha=1 compares what is the same; pass a --bert"
    )
    with pytest.raises(UserError, match=told):
        Prompting(settings(do_train=True, r_drop_alpha=1.0))
    flags = {"pattern": None, "label_words": (), "r_drop_alpha": 1.0}
    Classification(settings(do_train=True, **flags))


def test_pairs_need_no_segments(settings, data, tmp_path):
    config = json.loads((data / "config.json").read_text())
    (tmp_path / "one.json").write_text(json.dumps({**config, "type_vocab_size": 1}))
    row = {"text": "甲", "text_pair": "乙", "label": "a"}
    path = write_rows(tmp_path / "pairs.jsonl", row, {**row, "label": "b"})
    flags = {"text_pair_column": "text_pair", "pattern": "{text}，{text_pair}[MASK][MASK]"}
    flags |= {"train_file": path, "do_train": True}
    Prompting(settings(**flags, bert_config_file=str(tmp_path / "one.json")))


@pytest.mark.parametrize(
    "changes, message",
    (
        ({"pattern": "是[MASK]"}, r"must have \{text\} once"),
        ({"pattern": "{text}{text}[MASK]"}, r"must have \{text\} once"),
        ({"pattern": "{text}{text_pair}[MASK]"}, "the examples are single texts"),
        ({"pattern": "{text}是"}, r"has no \[MASK\]"),
        ({"pattern": "{{text}}[MASK][MASK]"}, r"has '\{' in '\{', where it would be read as text"),
        ({"pattern": "{text}[MASK][MASK]{label}"}, r"has '\{' in '\{label\}'"),
        ({"pattern": "{text}[SEP]很[MASK][MASK]"}, r"has '\[SEP\]' in '\[SEP\]很'"),
        ({"pattern": "{text}龘[MASK][MASK]"}, "has a character in '龘' that is not in the voc"),
        ({"pattern": "{text}[MASK]"}, r"'很好' has 2 tokens, but --pattern has 1 \[MASK\]"),
        ({"label_words": ("很好",)}, r"has 1 words for 2 classes \(a, b\)"),
        ({"label_words": ("很好", "很好")}, "two classes have the same word"),
        ({"label_words": ("很好", "很龘")}, r"'很龘' \(of b\) is not in the vocabulary"),
        ({"label_words": ()}, "--pattern needs --label_words"),
        ({"label_type": "multi"}, "--pattern needs --label_type=single"),
        ({"max_seq_length": 6}, "beside 6 other tokens; it must be at least 7"),
        ({"text_pair_column": "text", "text_column": "a"}, "must have {text_pair} once, as"),
    ),
)
def test_mistakes(settings, changes, message):
    with pytest.raises(UserError, match=message):
        Prompting(settings(do_train=True, **changes))


def test_the_head_must_be_in_the_checkpoint(settings, data, tmp_path):
    config = NezhaConfig.from_json_file(data / "config.json")
    checkpoints.save_tf1_checkpoint(NezhaEncoder(config), str(tmp_path / "model.ckpt-1"))
    changes = {"init_checkpoint": str(tmp_path / "model.ckpt-1"), "do_train": True}
    with pytest.raises(UserError, match="cls/predictions"):
        start(settings(**changes), Prompting)
