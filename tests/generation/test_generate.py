"""The tools that write and score: they agree, do as folder and flags say, and name mistakes."""

import json
import shutil

import numpy as np
import pytest
import tensorflow as tf
from generation_models import BARE, CONFIG, SOURCES, TOKENS

from nezha_tf.generation import writing
from nezha_tf.generation.score import score_text
from nezha_tf.generation.settings import GenerateSettings, ScoreSettings
from nezha_tf.generation.writing import generate_text
from nezha_tf.util.errors import UserError

TOOLS = ((GenerateSettings, generate_text), (ScoreSettings, score_text))
NO_LENGTHS = {"max_source_length": None, "max_target_length": None}


def test_what_is_written_is_scored_alike(settings, write_lines, read_lines):
    write_lines([{"src": source, "id": "a"} for source in SOURCES])
    # An [UNK] would leave no trace in the text.
    changes = {"length_penalty": 0.0, "num_return_sequences": 3, "banned_words": ["[UNK]"]}
    message = generate_text(settings(GenerateSettings, target_prediction="shift", **changes))
    assert message.startswith("4 texts; too long, so truncated: 1 source; written to")
    written = read_lines()
    assert [(line["line"], line["src"]) for line in written] == list(enumerate(SOURCES, start=1))
    names = {"line", "src", "prediction", "score", "hypotheses"}
    assert all(set(line) == names for line in written)
    # Those that ended before the limit, so that there is a [SEP] in their score.
    pairs = [
        {"src": line["src"], "tgt": hypothesis["text"], "expected": hypothesis["score"]}
        for line in written
        for hypothesis in line["hypotheses"]
        if 0 < len(hypothesis["text"]) < 6
    ]
    assert len(pairs) >= 4
    write_lines(pairs)
    shift = {"target_prediction": "shift", "predict_batch_size": 4}
    message = score_text(settings(ScoreSettings, **shift))
    scores = [line["log_prob"] for line in read_lines()]
    np.testing.assert_allclose(scores, [pair["expected"] for pair in pairs], atol=1e-4)
    assert f"{len(pairs)} texts" in message and f"{sum(scores):.3f}" in message
    assert all(line["tokens"] == len(line["tgt"]) + 1 for line in read_lines())


@pytest.mark.parametrize(
    ("given", "batch_size", "is_compiled"),
    [(None, 4, False), (None, 3, True), (True, 4, True), (False, 3, False)],
)
def test_the_search_of_a_single_batch_is_not_compiled(
    settings, write_lines, monkeypatch, given, batch_size, is_compiled
):
    write_lines([{"src": source} for source in SOURCES])
    seen = []

    class Noted(writing.Generator):
        def __init__(self, *arguments):
            seen.append(arguments[-1])
            super().__init__(*arguments[:-1], False)

    monkeypatch.setattr(writing, "Generator", Noted)
    changes = {"jit_compile": given, "predict_batch_size": batch_size}
    assert len(SOURCES) == 4
    generate_text(settings(GenerateSettings, target_prediction="shift", **changes))
    assert seen == [is_compiled]


def test_scores_of_texts(model, settings, write_lines, read_lines):
    """Perplexity from left to right and with tokens masked in turn, of one token by hand."""
    write_lines([{"text": text} for text in SOURCES])
    for mode, segment, ids in (("left_to_right", 2, [2, 4]), ("bidirectional", 0, [2, 4, 3])):
        score_text(settings(ScoreSettings, mode=mode, **NO_LENGTHS))
        assert [line["tokens"] for line in read_lines()] == [len(text) for text in SOURCES]
        visible = np.ones((len(ids), len(ids)), bool)
        logits = model[1](
            {
                "input_ids": tf.constant([ids]),
                "input_mask": tf.ones((1, len(ids)), tf.int32),
                "segment_ids": tf.fill((1, len(ids)), segment),
                "masked_lm_positions": tf.constant([[1]]),
                "attention_mask": [np.tril(visible) if mode == "left_to_right" else visible],
            }
        )["masked_lm_logits"][0, 0]
        expected = tf.nn.softmax(logits)[TOKENS.index("丁")]
        np.testing.assert_allclose(read_lines()[1]["perplexity"], 1 / expected, rtol=1e-4)


def test_a_text_without_any_likelihood_has_no_perplexity(
    settings, write_lines, tmp_path, monkeypatch
):
    """Its perplexity is no float64, and JSON has no infinity."""
    write_lines([{"text": text} for text in ("甲", "甲乙")])
    for least, is_number in ((-709.7, True), (-709.8, False)):
        monkeypatch.setattr(
            "nezha_tf.generation.score.TargetScorer.__call__",
            lambda *_, least=least: np.array([[least, 0], [least, least]]),
        )
        message = score_text(settings(ScoreSettings, mode="left_to_right", **NO_LENGTHS))
        lines = (tmp_path / "out.jsonl").read_text(encoding="utf-8").splitlines()
        for line in lines:
            found = json.loads(line, parse_constant=pytest.fail)["perplexity"]
            assert found > 1e305 if is_number else found is None
        assert len(lines) == 2 and message.endswith(" inf") != is_number


def test_a_prompt_goes_on(settings):
    """The same seed goes on alike; a prompt that is too long keeps its end."""
    options = {"mode": "left_to_right", "input_file": None, "output_file": None}
    options |= {"decoding": "sample", "num_return_sequences": 3}
    first, other, longer = (
        generate_text(settings(GenerateSettings, prompt=prompt, seed=seed, **options))
        for prompt, seed in (("甲乙丙丁戊己甲", 1), ("甲乙丙丁戊己甲", 2), ("丙甲乙丙丁戊己甲", 1))
    )
    assert first != other and first.endswith("\n1 text")
    assert longer.splitlines()[1:-1] == first.splitlines()[1:-1]
    assert longer.endswith("\n1 text; too long, so truncated: 1 prompt")


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
    "repetition_penalty": 1.2,
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


@pytest.fixture
def ask(model, settings, read_lines, tmp_path):
    """Returns a function: a class, its function, a way to the model, changes -> what is written."""
    shutil.copytree(model[0], tmp_path / "run")
    (tmp_path / "run" / "task.json").write_text(json.dumps(TASK))

    def ask(settings_class, function, is_folder, **changes):
        given = {**NO_LENGTHS, **changes}
        if is_folder:
            given = {**dict.fromkeys(BARE), "model_folder": str(tmp_path / "run"), **given}
        function(settings(settings_class, **given))
        return read_lines()

    return ask


@pytest.mark.parametrize("settings_class, function", TOOLS)
def test_a_folder_says_what_flags_would(ask, write_lines, settings_class, function):
    """And flags that are given win, beside what else the folder says."""
    sources = (*SOURCES, "甲乙丙丁戊己甲乙丙")
    write_lines([{"src": source, "tgt": source[::-1]} for source in sources])
    known = settings_class.__dataclass_fields__
    own, other = ({n: v for n, v in s.items() if n in known} for s in (TASK, OTHER))
    of_folder = ask(settings_class, function, True)
    assert of_folder == ask(settings_class, function, False, **own)
    by_flags = ask(settings_class, function, True, **other)
    # The other way of decoding takes no --beam_size.
    given = {name: value for name, value in {**own, **other}.items() if name != "beam_size"}
    assert by_flags == ask(settings_class, function, False, **given) != of_folder


def test_the_case_is_the_folders(ask, write_lines, tmp_path):
    """Its tokens are cased: `A` is none of those of a lower-cased `a`."""
    tokens = [*TOKENS[:-1], "a"]
    for folder in (tmp_path / "run", tmp_path):
        (folder / "vocab.txt").write_text("\n".join(tokens), encoding="utf-8")
    write_lines([{"text": "甲A"}])
    mode = {"mode": "bidirectional"}
    bare = {**mode, "vocab_file": str(tmp_path / "vocab.txt")}
    cased = ask(ScoreSettings, score_text, False, **bare, do_lower_case=False)
    lowered = ask(ScoreSettings, score_text, False, **bare)
    assert cased != lowered
    assert ask(ScoreSettings, score_text, True, **mode) == cased
    assert ask(ScoreSettings, score_text, True, **mode, do_lower_case=True) == lowered


def test_flags_that_nothing_reads_are_refused(settings, write_lines):
    write_lines([{"text": "甲", "src": "甲"}])
    with pytest.raises(UserError, match="--max_source_length=8 does nothing with --mode=left_to"):
        score_text(settings(ScoreSettings, mode="left_to_right", max_target_length=None))
    with pytest.raises(UserError, match=r"--top_p=0\.9 does nothing with --decoding=beam"):
        generate_text(settings(GenerateSettings, top_p=0.9))


def test_mistakes_are_named(settings, tmp_path):
    changed = {
        "two_rows": {**CONFIG, "type_vocab_size": 2, "use_relative_position": True},
        "absolute": {**CONFIG, "use_relative_position": False},
    }
    for name, config in changed.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(config))
    two_rows, absolute = ({"bert_config_file": str(tmp_path / f"{name}.json")} for name in changed)
    (tmp_path / "in.jsonl").write_text('{"src": "甲", "tgt": "乙"}\n{"src": " ", "tgt": "乙"}\n')
    for settings_class, function in TOOLS:
        with pytest.raises(UserError, match=r"in.jsonl, line 2: src is empty"):
            function(settings(settings_class))
        for name, message in (
            ("", "in.jsonl is also one of the files that are read|in.jsonl"),
            ("/out.jsonl", "in.jsonl is a file, not a folder"),
        ):
            output = {"output_file": str(tmp_path / f"in.jsonl{name}"), "init_checkpoint": "none"}
            with pytest.raises(UserError, match=f"^--output_file=.*{message}"):
                function(settings(settings_class, **output))
    prompt = {"prompt": "甲", "input_file": None}
    for changes, message in (
        ({"input_file": None, "prompt": None}, "one of --prompt and --input_file"),
        ({"input_file": "none.txt", "prompt": None}, "no file matches"),
        ({"init_checkpoint": None}, "--init_checkpoint is needed"),
        ({"segment_ids": ["4"]}, "--segment_ids=4 must be two numbers"),
        ({"prompt": "甲\udcff"}, "--prompt: the text is not UTF-8 from character 2 on"),
        ({"max_source_length": 2}, "--max_source_length=2 leaves no room"),
        (two_rows, r"segments 4 and 5, and the model has 2 .*--segment_ids"),
        ({**two_rows, "segment_ids": ["0", "1"]}, r"token_type_embeddings has shape \[6, 16\]"),
        (
            {**absolute, "max_target_length": 17},
            r"source of 8 tokens and a target of 17 .*embeddings 24",
        ),
    ):
        with pytest.raises(UserError, match=message):
            generate_text(settings(GenerateSettings, **{**prompt, **changes}))
