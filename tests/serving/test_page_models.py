"""What the models of the page answer, against a model's outputs decoded by hand."""

import generation_models
import numpy as np
import pytest
import tensorflow as tf
from conftest import RESOURCES
from export_folders import SETTINGS, TAGS, write_folder

import nezha_tf
from nezha_tf import FullTokenizer, TargetFormat
from nezha_tf.serving.export import export_folder
from nezha_tf.serving.page import open_models
from nezha_tf.util.errors import UserError

TABS = {
    "Classification": ["likeness", "pairs", "reviews"],
    "Entities": ["names", "names_crf"],
    "Reading comprehension": ["questions"],
    "Multiple choice": ["choices", "idioms"],
    "Writing": ["titles"],
    "Fill in": ["nezha"],
    "Attention": list(SETTINGS),
}
TEXT, PASSAGE = "他在北京，她在上海。", "甲乙丙丁在北京看书"


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Dict of name to (folder, model)."""
    root = tmp_path_factory.mktemp("models")
    for name, settings in SETTINGS.items():
        write_folder(root / name, settings)
    return {name: (str(root / name), nezha_tf.load(root / name)[1]) for name in SETTINGS}


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
    assert {title: sorted(of_tab) for title, of_tab in models.items()} == {
        title: sorted(names) for title, names in TABS.items()
    }


def test_classes(models, folders, read):
    found = models["Classification"]["reviews"](text=TEXT)
    logits = folders["reviews"][1](read(TEXT))["logits"][0].numpy()
    expected = np.exp(logits) / np.exp(logits).sum()
    np.testing.assert_allclose(found["probabilities"], expected, atol=1e-5)
    assert models["Classification"]["reviews"].labels == ["差评", "好评"]
    assert found["label"] == ["差评", "好评"][expected.argmax()]
    found = models["Classification"]["pairs"](text=TEXT, text_pair=PASSAGE)
    logits = folders["pairs"][1](read(TEXT, PASSAGE))["logits"][0].numpy()
    np.testing.assert_allclose(found["probabilities"], 1 / (1 + np.exp(-logits)), atol=1e-5)
    assert found["labels_on"] == [x >= 0 for x in logits]
    found = models["Classification"]["likeness"](text=TEXT, text_pair=PASSAGE)
    value = folders["likeness"][1](read(TEXT, PASSAGE))["logits"][0, 0]
    assert found["value"] == pytest.approx(float(value), abs=1e-5)


def test_entities(models, folders, read):
    """Runs of B- and I- in the likeliest tags, character by character."""
    names = ("start", "end", "entity", "label", "probability")
    found = list(zip(*map(models["Entities"]["names"](text=TEXT).get, names), strict=True))
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
    assert expected and [entity[:4] for entity in found] == expected
    for start, end, *_, probability in found:
        assert probability == pytest.approx(probs.max(-1)[start:end].min(), abs=1e-5)
    long = TEXT * 8
    for name in ("names", "names_crf"):
        found = models["Entities"][name](text=long)
        assert found["num_entities"] and max(found["end"]) > 40
        for start, end, entity, _, share in zip(*map(found.get, names), strict=True):
            assert entity == long[start:end] and 0 < share <= 1


def test_answers(models, folders, read):
    """All spans of one window by brute force, and no answer where it scores higher."""
    found = models["Reading comprehension"]["questions"](question="谁看书", passage=PASSAGE)
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
    assert found["answer"] == found["answers"][0] == best[0]
    expected = {text: scores[text] for text in {*best[:4], ""}}
    total = sum(map(np.exp, expected.values()))
    for text, start, end, probability in zip(
        *map(found.get, ("answers", "starts", "ends", "probabilities")), strict=True
    ):
        if not probability:  # behind the last one
            assert (text, start, end) == ("", -1, -1)
            continue
        share = np.exp(expected.pop(text)) / total
        assert probability == pytest.approx(share, abs=1e-4)
        assert PASSAGE[start:end] == text if text else (start, end) == (-1, -1)
    assert not expected


def test_written_texts_have_the_score_of_their_tokens(models, folders, read, monkeypatch):
    found = models["Writing"]["titles"](text=TEXT)
    written, scores = zip(found["texts"], found["scores"], strict=True), found["scores"]
    assert len(scores) == 2 and scores == sorted(scores, reverse=True)
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
    found = models["Fill in"]["nezha"](text="他在[MASK]京[MASK]")
    assert found["num_masks"] == len(found["candidates"]) == 2
    figure, line = models["Attention"]["reviews"](TEXT, "", ["-1"], ["1"])
    assert line == "" or "U+" in line
    assert "layer 0, head 1" in [panel.get_title() for panel in figure.axes]


def test_an_export_answers_as_its_folder(models, folders, tmp_path):
    """But for the other answers and texts, of which it gives fewer."""
    for tab, name, texts in (
        ("Reading comprehension", "questions", {"question": "谁看书", "passage": PASSAGE}),
        ("Classification", "pairs", {"text": TEXT, "text_pair": PASSAGE}),
    ):
        export_folder(folders[name][0], str(tmp_path / name))
        [(title, opened)] = open_models([str(tmp_path / name)]).items()
        expected, found = models[tab][name](**texts), opened[name](**texts)
        assert title == tab and opened[name].labels == models[tab][name].labels
        assert found == {key: pytest.approx(expected[key], abs=1e-5) for key in found}
        with pytest.raises(UserError, match="holds no token"):
            opened[name](**dict.fromkeys(texts, " "))
    with pytest.raises(UserError, match="the page has no tab"):
        export_folder(folders["nezha"][0], str(tmp_path / "features"), "features")
        open_models([str(tmp_path / "features")])


def test_mistakes_are_told(models, folders, tmp_path):
    classify, answer = models["Classification"], models["Reading comprehension"]["questions"]
    choose = models["Multiple choice"]["choices"]
    for call, message in (
        (lambda: classify["reviews"](text=" "), "the text holds no token"),
        (lambda: classify["pairs"](text="a", text_pair=""), "the second text holds no token"),
        (lambda: models["Entities"]["names"](text="\u200b"), "the text holds no token"),
        (lambda: answer(question="", passage=PASSAGE), "the question holds no token"),
        (lambda: answer(question="甲", passage="\n"), "the passage holds no token"),
        (lambda: choose(context="甲", question="乙", choices=["a", "\u200b"]), "a choice holds no"),
        (lambda: models["Writing"]["titles"](text=None), "the text holds no token"),
        (lambda: models["Attention"]["names"]("", "", [], []), "holds no token"),
        (lambda: open_models([str(tmp_path)]), "no weights in"),
        (lambda: open_models([damaged_export(tmp_path)]), "is no export"),
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
