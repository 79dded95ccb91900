"""What the page's objects say of a text, against a model's outputs decoded by hand."""

import generation_models
import numpy as np
import pytest
import tensorflow as tf
from conftest import RESOURCES
from demo_folders import SETTINGS, TAGS, write_folder

import nezha_tf
from nezha_tf import FullTokenizer, TargetFormat
from nezha_tf.demo.models import open_models
from nezha_tf.util.errors import UserError

ABILITIES = {
    "classification": ["likeness", "pairs", "reviews"],
    "tagging": ["names", "names_crf"],
    "reading_comprehension": ["questions"],
    "multiple_choice": ["choices", "idioms"],
    "seq2seq": ["titles"],
    "fill_mask": ["nezha"],
}
TEXT, PASSAGE = "他在北京，她在上海。", "甲乙丙丁在北京看书"


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Dict of name to (folder, model)."""
    root = tmp_path_factory.mktemp("models")
    paths = {name: write_folder(root, name) for name in SETTINGS}
    return {name: (path, nezha_tf.load(path)[1]) for name, path in paths.items()}


@pytest.fixture(scope="module")
def models(folders):
    return open_models([path for path, _ in folders.values()])


@pytest.fixture(scope="module")
def read():
    """Returns a function of texts to what a model reads of them."""
    tokenizer = FullTokenizer(RESOURCES / "vocab.txt")

    def pack(*texts):
        tokens = [["[CLS]", *tokenizer.tokenize(texts[0]), "[SEP]"]]
        tokens += [[*tokenizer.tokenize(text), "[SEP]"] for text in texts[1:]]
        ids = tokenizer.convert_tokens_to_ids([token for part in tokens for token in part])
        segment_ids = [number for number, part in enumerate(tokens) for _ in part]
        return {
            "input_ids": tf.constant([ids]),
            "input_mask": tf.ones((1, len(ids)), tf.int32),
            "segment_ids": tf.constant([segment_ids]),
        }

    return pack


def test_each_folder_is_there_for_what_it_can_do(models):
    assert set(models) == {*ABILITIES, "attention"}
    for ability, names in ABILITIES.items():
        assert sorted(models[ability]) == names
    assert set(models["attention"]) == set(SETTINGS)


def test_classes(models, folders, read):
    found = models["classification"]["reviews"](TEXT)
    logits = folders["reviews"][1](read(TEXT))["logits"][0].numpy()
    expected = np.exp(logits) / np.exp(logits).sum()
    assert list(found.probabilities) == ["差评", "好评"]
    np.testing.assert_allclose(list(found.probabilities.values()), expected, atol=1e-5)
    assert found.predicted == [["差评", "好评"][expected.argmax()]]
    found = models["classification"]["pairs"](TEXT, PASSAGE)
    logits = folders["pairs"][1](read(TEXT, PASSAGE))["logits"][0].numpy()
    np.testing.assert_allclose(
        list(found.probabilities.values()), 1 / (1 + np.exp(-logits)), atol=1e-5
    )
    assert found.predicted == [name for name, x in zip("abc", logits, strict=True) if x >= 0]
    found = models["classification"]["likeness"](TEXT, PASSAGE)
    value = folders["likeness"][1](read(TEXT, PASSAGE))["logits"][0, 0]
    assert found.value == pytest.approx(float(value), abs=1e-5)


def test_entities(models, folders, read):
    """Runs of B- and I- in the likeliest tags, character by character."""
    found = models["tagging"]["names"](TEXT)
    logits = folders["names"][1](read(TEXT))["logits"][0].numpy()[1:-1]
    probs = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    tags = [TAGS[number] for number in probs.argmax(-1)] + ["O"]
    expected = []
    for start, tag in enumerate(tags):
        if tag[0] == "B":
            end = start + 1
            while tags[end] == f"I-{tag[2:]}":
                end += 1
            expected.append((start, end, TEXT[start:end], tag[2:]))
    assert expected and [(f.start, f.end, f.text, f.label) for f in found] == expected
    for entity in found:
        assert entity.probability == pytest.approx(
            probs.max(-1)[entity.start : entity.end].min(), abs=1e-5
        )
    long = TEXT * 8
    for name in ("names", "names_crf"):
        found = models["tagging"][name](long)
        assert found and max(f.end for f in found) > 40
        assert all(f.text == long[f.start : f.end] and 0 < f.probability <= 1 for f in found)


def test_answers(models, folders, read):
    """All spans of one window by brute force, and no answer where it scores higher."""
    found = models["reading_comprehension"]["questions"]("谁看书", PASSAGE)
    outputs = folders["questions"][1](read("谁看书", PASSAGE))
    starts, ends = (outputs[f"{end}_logits"][0].numpy() for end in ("start", "end"))
    first = 5  # [CLS] and the question with its [SEP] stand before the passage.
    scores = {
        PASSAGE[a : b + 1]: float(starts[first + a] + ends[first + b])
        for a in range(len(PASSAGE))
        for b in range(a, min(a + 5, len(PASSAGE)))
    }
    scores[""] = float(starts[0] + ends[0])
    best = sorted(scores, key=scores.get, reverse=True)
    assert found[0].text == best[0]
    expected = {text: scores[text] for text in {*best[:4], ""}}
    total = sum(map(np.exp, expected.values()))
    for answer in found:
        share = np.exp(expected.pop(answer.text)) / total
        assert answer.probability == pytest.approx(share, abs=1e-4)
        if answer.text:
            assert PASSAGE[answer.start : answer.end] == answer.text
    assert not expected


def test_written_texts_have_the_score_of_their_tokens(models, folders, read, monkeypatch):
    written = models["seq2seq"]["titles"](TEXT)
    scores = [score for _, score in written]
    assert len(written) == 2 and scores == sorted(scores, reverse=True)
    tokenizer = FullTokenizer(RESOURCES / "vocab.txt")
    monkeypatch.setattr(generation_models, "MASK", tokenizer.vocabulary.mask_id)
    source = read(TEXT)["input_ids"][0].numpy().tolist()
    for text, score in written:
        ids = tokenizer.convert_tokens_to_ids(tokenizer.tokenize(text))
        if len(ids) < 8:
            ids.append(tokenizer.vocabulary.sep_id)
        total = 0.0
        for n, token in enumerate(ids):
            logits = generation_models.next_logits(
                folders["titles"][1], source, [ids[:n]], TargetFormat()
            )
            total += float(tf.nn.log_softmax(logits)[0, token])
        assert score == pytest.approx(total / ((5 + len(ids)) / 6) ** 0.7, abs=1e-3)


def test_blanks_and_attention(models):
    blanks = models["fill_mask"]["nezha"]("他在[MASK]京[MASK]")
    assert [len(candidates) for candidates in blanks] == [10, 10]
    figure, line = models["attention"]["reviews"](TEXT, "", ["-1"], ["1"])
    assert line == "" or "U+" in line
    assert "layer 0, head 1" in [panel.get_title() for panel in figure.axes]


def test_mistakes_are_told(models, folders, tmp_path):
    classify, answer = models["classification"], models["reading_comprehension"]["questions"]
    for call, message in (
        (lambda: classify["reviews"](" "), "the text holds no token"),
        (lambda: classify["pairs"]("a", ""), "the second text holds no token"),
        (lambda: models["tagging"]["names"]("\u200b"), "the text holds no token"),
        (lambda: answer("", PASSAGE), "the question holds no token"),
        (lambda: answer("甲", "\n"), "the passage holds no token"),
        (lambda: models["seq2seq"]["titles"](""), "the text holds no token"),
        (lambda: models["fill_mask"]["nezha"]("甲"), r"no \[MASK\]"),
        (lambda: models["attention"]["names"]("", "", [], []), "holds no token"),
        (lambda: open_models([str(tmp_path)]), "no weights in"),
        (lambda: open_models([damaged_export(tmp_path)]), "cannot be read as an export"),
        (lambda: open_models([folders["names"][0]] * 2), "a folder twice"),
        (lambda: open_models(()), "--model_folder is needed"),
    ):
        with pytest.raises(UserError, match=message):
            call()


def damaged_export(folder):
    path = folder / "export"
    path.mkdir(exist_ok=True)
    (path / "saved_model.pb").write_bytes(b"no")
    return str(path)
