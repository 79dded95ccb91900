"""The tools that run a trained model: they agree with each other, and name mistakes."""

import dataclasses
import io
import json
import os
import shutil

import numpy as np
import pytest
import tensorflow as tf
from commands import run_anew

from nezha_tf import NezhaConfig, checkpoints
from nezha_tf.checkpoints.tf1 import write_tensors
from nezha_tf.generation.scoring import PseudoScorer
from nezha_tf.inference.extract import extract_features
from nezha_tf.inference.fill import BlankFiller, fill_mask
from nezha_tf.inference.generate import generate_text
from nezha_tf.inference.score import score_text
from nezha_tf.inference.settings import (
    ExtractSettings,
    FillMaskSettings,
    GenerateSettings,
    ScoreSettings,
)
from nezha_tf.modeling.pretraining import NezhaForMaskedLM
from nezha_tf.text.tokenization import FullTokenizer
from nezha_tf.text.vocabulary import Vocabulary
from nezha_tf.util.errors import UserError

TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"甲乙丙丁戊己"]
CONFIG = {
    "vocab_size": 12,
    "hidden_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "type_vocab_size": 6,
    "max_position_embeddings": 24,
    "initializer_range": 0.5,
}
SOURCES = ["甲乙丙", "丁", "戊己甲乙丙丁戊己", "甲甲"]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A folder with a random model, and the model."""
    folder = tmp_path_factory.mktemp("model")
    config = NezhaConfig(**CONFIG)
    tf.keras.utils.set_random_seed(1)
    model = NezhaForMaskedLM(config)
    model.masked_lm.output_bias.assign(tf.one_hot(TOKENS.index("[SEP]"), 12))
    checkpoints.save_tf1_checkpoint(model, str(folder / "model.ckpt"))
    config.to_json_file(str(folder / "config.json"))
    (folder / "vocab.txt").write_text("\n".join(TOKENS), encoding="utf-8")
    return folder, model


def names_of(settings_class):
    return {field.name for field in dataclasses.fields(settings_class)}


@pytest.fixture
def settings(model, tmp_path):
    """Returns a function: a class, changes -> the settings of a tool with this model."""
    folder, _ = model
    standard = {
        "bert_config_file": str(folder / "config.json"),
        "vocab_file": str(folder / "vocab.txt"),
        "init_checkpoint": str(folder / "model.ckpt"),
        "input_file": str(tmp_path / "in.jsonl"),
        "output_file": str(tmp_path / "out.jsonl"),
        "max_source_length": 8,
        "max_target_length": 6,
        "jit_compile": False,
    }

    def of(settings_class, **changes):
        own = {name: standard[name] for name in names_of(settings_class) & set(standard)}
        return settings_class(**{**own, **changes})

    return of


def write_lines(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def read_lines(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("target_prediction", ("masked", "shift"))
def test_what_is_written_is_scored_alike(settings, tmp_path, target_prediction):
    write_lines(tmp_path / "in.jsonl", [{"src": source, "id": "a"} for source in SOURCES])
    target_format = {"target_prediction": target_prediction}
    # An [UNK] would leave no trace in the text.
    changes = {"length_penalty": 0.0, "num_return_sequences": 3, "banned_words": ["[UNK]"]}
    said = generate_text(settings(GenerateSettings, **target_format, **changes))
    assert said.startswith("4 texts; too long, so truncated: 1 source; written to")
    written = read_lines(tmp_path / "out.jsonl")
    assert [line["src"] for line in written] == SOURCES
    names = {"line", "src", "prediction", "score", "hypotheses"}
    assert all(set(line) == names for line in written)
    assert [line["line"] for line in written] == [1, 2, 3, 4]
    # Those that ended before the limit, so that there is a [SEP] in their score.
    pairs = [
        {"src": line["src"], "tgt": hypothesis["text"], "expected": hypothesis["score"]}
        for line in written
        for hypothesis in line["hypotheses"]
        if 0 < len(hypothesis["text"]) < 6
    ]
    assert len(pairs) >= 4
    write_lines(tmp_path / "in.jsonl", pairs)
    said = score_text(settings(ScoreSettings, **target_format, predict_batch_size=4))
    scores = read_lines(tmp_path / "out.jsonl")
    np.testing.assert_allclose(
        [line["log_prob"] for line in scores], [pair["expected"] for pair in pairs], atol=1e-4
    )
    total = sum(line["log_prob"] for line in scores)
    assert f"{len(pairs)} texts" in said and f"{total:.3f}" in said
    assert all(line["tokens"] == len(line["tgt"]) + 1 for line in scores)


def test_scores_of_texts(model, settings, tmp_path):
    """Perplexity from left to right and with tokens masked in turn, of one token by hand."""
    write_lines(tmp_path / "in.jsonl", [{"text": text} for text in SOURCES])
    own = {"max_source_length": None, "max_target_length": None}  # lengths of pairs
    for mode, segment, ids in (("left_to_right", 2, [2, 4]), ("bidirectional", 0, [2, 4, 3])):
        score_text(settings(ScoreSettings, mode=mode, **own))
        scores = read_lines(tmp_path / "out.jsonl")
        assert [line["tokens"] for line in scores] == [len(text) for text in SOURCES]
        logits = model[1](
            {
                "input_ids": tf.constant([ids]),
                "input_mask": tf.ones((1, len(ids)), tf.int32),
                "segment_ids": tf.fill((1, len(ids)), segment),
                "masked_lm_positions": tf.constant([[1]]),
                **(
                    {"attention_mask": tf.constant([[[True, False], [True, True]]])}
                    if mode == "left_to_right"
                    else {}
                ),
            }
        )["masked_lm_logits"][0, 0]
        expected = tf.nn.softmax(logits)[TOKENS.index("丁")]
        np.testing.assert_allclose(scores[1]["perplexity"], 1 / expected, rtol=1e-4)


@pytest.mark.parametrize(
    "mode, name, value, said",
    (
        ("left_to_right", "max_source_length", 8, "8"),
        ("left_to_right", "max_target_length", 8, "8"),
        ("left_to_right", "truncate_source", "tail", "tail"),
        ("left_to_right", "source_column", "text", "text"),
        ("bidirectional", "segment_ids", ("0", "1"), "0,1"),
        ("bidirectional", "target_prediction", "shift", "shift"),
        ("bidirectional", "max_source_length", 8, "8"),
    ),
)
def test_flags_that_a_mode_does_not_read_are_refused(settings, tmp_path, mode, name, value, said):
    write_lines(tmp_path / "in.jsonl", [{"text": "甲"}])
    none = {"max_source_length": None, "max_target_length": None}
    with pytest.raises(UserError, match=f"--{name}={said} does nothing with --mode={mode}"):
        score_text(settings(ScoreSettings, mode=mode, **{**none, name: value}))


@pytest.mark.parametrize(
    "changes, said",
    (
        ({"top_p": 0.9}, "--top_p=0.9 does nothing with --decoding=beam"),
        ({"top_k": 3, "decoding": "greedy"}, "--top_k=3 does nothing with --decoding=greedy"),
        ({"beam_size": 8, "decoding": "sample"}, "--beam_size=8 does nothing with --decoding=sam"),
        ({"exempt_words": ("甲",)}, "--exempt_words=甲 does nothing with --no_repeat_ngram_size=0"),
        (
            {"prompt": "甲", "input_file": None, "source_column": "text"},
            "text does nothing with --p",
        ),
    ),
)
def test_flags_that_a_search_does_not_read_are_refused(settings, tmp_path, changes, said):
    write_lines(tmp_path / "in.jsonl", [{"src": "甲"}])
    with pytest.raises(UserError, match=said):
        generate_text(settings(GenerateSettings, **changes))


def test_a_text_past_the_table_of_positions_is_one_line():
    config = NezhaConfig(**CONFIG, position_encoding="absolute")
    model, tokenizer = NezhaForMaskedLM(config), FullTokenizer(vocabulary=Vocabulary(TOKENS))
    longest = CONFIG["max_position_embeddings"] - 2
    told = rf"^a text of {longest + 3} tokens is past the table of absolute positions .*[^\n]$"
    filler = BlankFiller(model, tokenizer, 2)
    assert len(filler("甲" * (longest - 1) + "[MASK]")) == 1
    with pytest.raises(UserError, match=told):
        filler("甲" * longest + "[MASK]")
    scorer = PseudoScorer(model, tokenizer.vocabulary, jit_compile=False)
    assert len(scorer([5] * longest, 99, 4)) == longest
    with pytest.raises(UserError, match=told):
        scorer([5] * (longest + 1), 99, 4)


def test_blank_lines_of_a_file_have_no_blanks_to_fill(settings, tmp_path, capsys):
    path = tmp_path / "in.txt"
    path.write_text("甲[MASK]\n", encoding="utf-8")
    fill_mask(settings(FillMaskSettings, input_file=str(path)))
    plain = capsys.readouterr().out
    path.write_text("\n甲[MASK]\n\u3000\u200b\n", encoding="utf-8")
    fill_mask(settings(FillMaskSettings, input_file=str(path)))
    said = f"blank lines passed over: 2 (the first: {path}, line 1)\n"
    assert capsys.readouterr().out == plain + said


@pytest.mark.parametrize("errors", ("strict", "surrogateescape"))
def test_a_typed_line_that_is_not_utf_8_is_told(settings, monkeypatch, capsys, errors):
    typed = io.BytesIO("甲[MASK]\n".encode() + "甲[MASK]\n".encode("gb18030"))
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(typed, "utf-8", errors))
    with pytest.raises(UserError, match="the line is not UTF-8; convert the text"):
        fill_mask(settings(FillMaskSettings, input_file=None))
    # Python decodes what it reads at once, so that a wrong byte may stop the line before, too.
    assert errors == "strict" or capsys.readouterr().out.startswith("甲[MASK]\n")


def test_a_prompt_goes_on(settings):
    """The same seed goes on alike; a prompt that is too long keeps its end."""
    options = {"mode": "left_to_right", "input_file": None, "output_file": None}
    options |= {"decoding": "sample", "num_return_sequences": 3}
    said = [
        generate_text(settings(GenerateSettings, prompt=prompt, seed=seed, **options))
        for prompt, seed in (("甲乙丙丁戊己甲", 1), ("甲乙丙丁戊己甲", 1), ("甲乙丙丁戊己甲", 2))
    ]
    assert said[0] == said[1] != said[2]
    assert said[0].endswith("\n1 text")
    longer = generate_text(settings(GenerateSettings, prompt="丙甲乙丙丁戊己甲", seed=1, **options))
    assert longer.splitlines()[1:-1] == said[0].splitlines()[1:-1]
    assert longer.endswith("\n1 text; too long, so truncated: 1 prompt")


@pytest.mark.parametrize(
    "way",
    (
        ["--model_folder=."],
        [
            "--bert_config_file=config.json",
            "--vocab_file=vocab.txt",
            "--init_checkpoint=model.ckpt",
        ],
    ),
)
def test_blanks_are_filled(model, tmp_path, way):
    folder, filled = model
    result = run_anew(
        "tools/fill_mask.py",
        *way,
        "--top_k=2",
        folder=folder,
        stdin=write_input(tmp_path, "甲[MASK]丙[MASK]\n乙\n"),
    )
    assert result.returncode == 0 and result.stderr == "", result.stderr
    ids = tf.constant([[2, 5, 4, 7, 4, 3]])
    logits = filled(
        {
            "input_ids": ids,
            "input_mask": tf.ones_like(ids),
            "segment_ids": tf.zeros_like(ids),
            "masked_lm_positions": tf.constant([[2, 4]]),
        }
    )["masked_lm_logits"][0]
    expected = ["甲[MASK]丙[MASK]"]
    for number, probs in enumerate(tf.nn.softmax(logits).numpy()[:, :11], start=1):
        expected.append(f"[MASK] {number}")
        expected += [f"{TOKENS[i]} {probs[i]:.2%}" for i in np.argsort(-probs)[:2]]
    expected.append("no [MASK] in the text; write one for each token to fill in")
    assert [" ".join(line.split()) for line in result.stdout.splitlines()] == expected


def write_input(folder, text):
    (folder / "typed.txt").write_text(text, encoding="utf-8")
    return (folder / "typed.txt").open()


def test_mistakes_are_named(settings, tmp_path):
    changed = {
        "two_rows": {**CONFIG, "type_vocab_size": 2, "use_relative_position": True},
        "absolute": {**CONFIG, "use_relative_position": False},
    }
    for name, config in changed.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(config))
    two_rows, absolute = ({"bert_config_file": str(tmp_path / f"{name}.json")} for name in changed)
    (tmp_path / "in.jsonl").write_text('{"src": "甲", "tgt": "乙"}\n{"src": " ", "tgt": "乙"}\n')
    (tmp_path / "blank.txt").write_text("\n \u200b\n", encoding="utf-8")
    for settings_class, function, changes, message in (
        (GenerateSettings, generate_text, {}, r"in.jsonl, line 2: src is empty"),
        (ScoreSettings, score_text, {}, r"in.jsonl, line 2: src is empty"),
        (GenerateSettings, generate_text, {"input_file": None}, "one of --prompt and --input_file"),
        (GenerateSettings, generate_text, {"input_file": "none.txt"}, "no file matches"),
        (
            FillMaskSettings,
            fill_mask,
            {"input_file": str(tmp_path / "blank.txt")},
            "blank.txt has no lines",
        ),
        (FillMaskSettings, fill_mask, {"input_file": str(tmp_path / "no.txt")}, "cannot read"),
        (FillMaskSettings, fill_mask, {"input_file": "a", "text": "[MASK]"}, "pass one of them"),
        (
            FillMaskSettings,
            fill_mask,
            {"input_file": str(tmp_path / "in.jsonl")},
            r"line 1: no \[MASK",
        ),
        (FillMaskSettings, fill_mask, {"init_checkpoint": "none"}, "no checkpoint at none"),
        (FillMaskSettings, fill_mask, {"text": "\udcff[MASK]", "input_file": None}, "not UTF-8"),
    ):
        with pytest.raises(UserError, match=message):
            function(settings(settings_class, **changes))
    prompt = {"prompt": "甲", "input_file": None}
    for changes, message in (
        ({"init_checkpoint": None}, "--init_checkpoint is needed"),
        ({"segment_ids": ["4"]}, "--segment_ids=4 must be two numbers"),
        ({"prompt": "甲\udcff"}, "--prompt: the text is not UTF-8 from character 2 on"),
        (two_rows, r"segments 4 and 5, and the model has 2 .*--segment_ids"),
        ({**two_rows, "segment_ids": ["0", "1"]}, r"token_type_embeddings has shape \[6, 16\]"),
        (
            {**absolute, "max_target_length": 17},
            r"source of 8 tokens and a target of 17 .*embeddings 24",
        ),
    ):
        with pytest.raises(UserError, match=message):
            generate_text(settings(GenerateSettings, **{**prompt, **changes}))


@pytest.mark.parametrize(
    "settings_class, function, changes",
    (
        (GenerateSettings, generate_text, {}),
        (GenerateSettings, generate_text, {"input_file": None, "prompt": "甲"}),
        (ScoreSettings, score_text, {}),
        (ExtractSettings, extract_features, {}),
    ),
)
def test_a_file_that_cannot_be_written_is_told_before_the_work(
    settings, tmp_path, settings_class, function, changes
):
    """No model is opened: there is none."""
    write_lines(tmp_path / "in.jsonl", [{"src": "甲", "tgt": "乙", "text": "甲"}])
    (tmp_path / "folder.jsonl").mkdir()
    for name, told in (
        ("folder.jsonl", "folder.jsonl is a folder; name a file in it"),
        ("in.jsonl/out.jsonl", "in.jsonl is a file, not a folder"),
    ):
        output = {"output_file": str(tmp_path / name), "init_checkpoint": "none"}
        with pytest.raises(UserError, match=rf"^--output_file=.*{told}"):
            function(settings(settings_class, **changes, **output))


@pytest.mark.parametrize("value", (np.nan, -np.inf))
def test_weights_that_are_not_finite_are_told(model, settings, tmp_path, value):
    """By the name of the first, whichever program reads them; nothing is written."""
    write_lines(tmp_path / "in.jsonl", [{"src": "甲", "tgt": "乙", "text": "甲"}])
    reader = tf.train.load_checkpoint(str(model[0] / "model.ckpt"))
    tensors = {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}
    tensors["bert/embeddings/token_type_embeddings"][4, 3] = value
    write_tensors(tmp_path / "bad.ckpt", tensors)
    given = {"init_checkpoint": str(tmp_path / "bad.ckpt")}
    told = "bad.ckpt: bert/embeddings/token_type_embeddings holds NaN or infinity; take an earlier"
    for settings_class, function, changes in (
        (GenerateSettings, generate_text, {}),
        (ScoreSettings, score_text, {}),
        (FillMaskSettings, fill_mask, {"input_file": None, "text": "甲[MASK]"}),
        (ExtractSettings, extract_features, {}),
    ):
        with pytest.raises(UserError, match=told) as error:
            function(settings(settings_class, **changes, **given))
        assert "\n" not in str(error.value)
    assert not (tmp_path / "out.jsonl").exists()


def test_a_text_without_any_likelihood_has_no_perplexity(settings, tmp_path, monkeypatch):
    """Its perplexity is no float64, and JSON has no infinity."""
    write_lines(tmp_path / "in.jsonl", [{"text": text} for text in ("甲", "甲乙")])
    changes = {"mode": "left_to_right", "max_source_length": None, "max_target_length": None}
    for least, is_number in ((-709.7, True), (-709.8, False)):
        monkeypatch.setattr(
            "nezha_tf.inference.score.TargetScorer.__call__",
            lambda *_, least=least: np.array([[least, 0], [least, least]]),
        )
        said = score_text(settings(ScoreSettings, **changes))
        lines = (tmp_path / "out.jsonl").read_text(encoding="utf-8").splitlines()
        for line in lines:
            found = json.loads(line, parse_constant=pytest.fail)["perplexity"]
            assert found > 1e305 if is_number else found is None
        assert len(lines) == 2 and said.endswith(" inf") != is_number


TASK = {
    "task": "seq2seq",
    "do_lower_case": False,
    "max_seq_length": 14,
    "uses_averages": False,
    "target_prediction": "shift",
    "max_source_length": 7,
    "max_target_length": 5,
    "truncate_source": "head",
    "min_target_length": 3,
    "decoding": "beam",
    "beam_size": 3,
    "num_return_sequences": 2,
    "length_penalty": 0.3,
    "temperature": 1.0,
    "top_k": 0,
    "top_p": 1.0,
    "no_repeat_ngram_size": 2,
    "exempt_words": ["甲"],
    "banned_words": ["[UNK]", "丙"],
}
# Neither the tools' defaults nor the folder's.
OTHER = {
    "target_prediction": "masked",
    "max_target_length": 4,
    "decoding": "greedy",
    "num_return_sequences": 1,
    "banned_words": ["[UNK]"],
}
BARE = ("bert_config_file", "vocab_file", "init_checkpoint")


@pytest.fixture
def ask(model, settings, tmp_path):
    """Returns a function: a class, its function, a way to the model, changes -> what is written."""
    folder, _ = model
    run_folder = tmp_path / "run"
    shutil.copytree(folder, run_folder)
    (run_folder / "config.json").rename(run_folder / "bert_config.json")
    (run_folder / "task.json").write_text(json.dumps(TASK))

    def ask(settings_class, function, is_folder, **changes):
        given = {"max_source_length": None, "max_target_length": None, **changes}
        if is_folder:
            given = {**dict.fromkeys(BARE), "model_folder": str(run_folder), **given}
        function(settings(settings_class, **given))
        return read_lines(tmp_path / "out.jsonl")

    return ask


@pytest.mark.parametrize(
    "settings_class, function", ((GenerateSettings, generate_text), (ScoreSettings, score_text))
)
def test_a_folder_says_what_flags_would(ask, tmp_path, settings_class, function):
    """And flags that are given win, beside what else the folder says."""
    rows = [{"src": source, "tgt": source[::-1]} for source in (*SOURCES, "甲乙丙丁戊己甲乙丙")]
    write_lines(tmp_path / "in.jsonl", rows)
    known = names_of(settings_class)
    own, other = ({n: v for n, v in s.items() if n in known} for s in (TASK, OTHER))
    of_folder = ask(settings_class, function, True)
    assert of_folder == ask(settings_class, function, False, **own)
    by_flags = ask(settings_class, function, True, **other)
    # The other way of decoding takes no --beam_size.
    given = {name: value for name, value in {**own, **other}.items() if name != "beam_size"}
    assert by_flags == ask(settings_class, function, False, **given) != of_folder


def test_a_prompt_keeps_its_end_whatever_a_folder_says_of_sources(ask, tmp_path):
    write_lines(tmp_path / "in.jsonl", [{"src": "甲乙丙丁戊己甲乙丙"}])
    path = tmp_path / "run" / "task.json"
    written = []
    for end in ("head", "tail"):
        path.write_text(json.dumps({**TASK, "truncate_source": end}))
        written.append(ask(GenerateSettings, generate_text, True, mode="left_to_right"))
    assert written[0] == written[1]
    cut = ask(GenerateSettings, generate_text, True, mode="left_to_right", truncate_source="tail")
    assert cut != written[0]


def test_the_case_is_the_folders(ask, model, tmp_path):
    """Its tokens are cased: `A` is none of those of a lower-cased `a`."""
    tokens = [*TOKENS[:-1], "a"]
    for folder in (tmp_path / "run", tmp_path):
        (folder / "vocab.txt").write_text("\n".join(tokens), encoding="utf-8")
    write_lines(tmp_path / "in.jsonl", [{"text": "甲A"}])
    mode = {"mode": "bidirectional"}
    bare = {**mode, "vocab_file": str(tmp_path / "vocab.txt")}
    cased = ask(ScoreSettings, score_text, False, **bare, do_lower_case=False)
    lowered = ask(ScoreSettings, score_text, False, **bare)
    assert cased != lowered
    assert ask(ScoreSettings, score_text, True, **mode) == cased
    assert ask(ScoreSettings, score_text, True, **mode, do_lower_case=True) == lowered


def test_there_is_one_way_to_the_model(ask, settings, tmp_path):
    write_lines(tmp_path / "in.jsonl", [{"src": "甲", "tgt": "乙", "text": "甲"}])
    (tmp_path / "blank.txt").write_text("甲[MASK]\n", encoding="utf-8")
    extract = {"input_file": str(tmp_path / "in.jsonl")}
    for settings_class, function, changes in (
        (GenerateSettings, generate_text, {}),
        (ScoreSettings, score_text, {}),
        (FillMaskSettings, fill_mask, {"input_file": str(tmp_path / "blank.txt")}),
        (ExtractSettings, extract_features, extract),
    ):
        given = settings(settings_class, **changes)
        folder = str(tmp_path / "run")
        for bare in (BARE, BARE[1:2], BARE[::2]):
            left_out = {name: None for name in BARE if name not in bare}
            named = ", ".join(f"--{name}" for name in bare)
            message = f"--model_folder={folder} holds a whole model; leave out {named}$"
            with pytest.raises(UserError, match=message):
                function(dataclasses.replace(given, model_folder=folder, **left_out))
        with pytest.raises(UserError, match="--init_checkpoint is needed"):
            function(dataclasses.replace(given, init_checkpoint=None))
        os.makedirs(tmp_path / "alone", exist_ok=True)
        for name in ("index", "data-00000-of-00001"):
            shutil.copy(f"{given.init_checkpoint}.{name}", tmp_path / "alone" / f"model.{name}")
        alone = {"init_checkpoint": str(tmp_path / "alone" / "model")}
        with pytest.raises(UserError, match="--vocab_file is needed"):
            function(dataclasses.replace(given, **alone, vocab_file=None))
