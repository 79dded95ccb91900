"""What the models of the page answer; of their tasks, see the tests of their servings."""

import numpy as np
import pytest
import tensorflow as tf
from conftest import RESOURCES
from export_folders import SETTINGS, write_folder

import nezha_tf
from nezha_tf import FullTokenizer
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
    reviews, pairs, likeness = map(models["Classification"].get, ("reviews", "pairs", "likeness"))
    found = reviews(text=TEXT)
    assert reviews.labels == ["差评", "好评"]
    assert found["label"] == reviews.labels[np.argmax(found["probabilities"])]
    found = pairs(text=TEXT, text_pair=PASSAGE)
    logits = folders["pairs"][1](read(TEXT, PASSAGE))[0].numpy()
    np.testing.assert_allclose(found["probabilities"], 1 / (1 + np.exp(-logits)), atol=1e-5)
    assert found["labels_on"] == [x >= 0 for x in logits]
    value = folders["likeness"][1](read(TEXT, PASSAGE))[0, 0]
    found = likeness(text=TEXT, text_pair=PASSAGE)
    assert found["value"] == pytest.approx(float(value), abs=1e-5)


@pytest.mark.parametrize("name", ("names", "names_crf"))
def test_entities(models, name):
    """Also behind the first window of a long text."""
    text = TEXT * 8
    found = models["Entities"][name](text=text)
    assert found["num_entities"] and max(found["end"]) > 40
    names = ("start", "end", "entity", "probability")
    for start, end, entity, share in zip(*map(found.get, names), strict=True):
        assert entity == text[start:end] and 0 < share <= 1


def test_answers(models, folders, read):
    """All spans of one window by brute force, and no answer where it scores higher."""
    found = models["Reading comprehension"]["questions"](question="谁看书", passage=PASSAGE)
    outputs = folders["questions"][1](read("谁看书", PASSAGE), all_outputs=True)
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


def test_the_page_shows_all_texts_that_the_search_finds(models):
    found = models["Writing"]["titles"](text=TEXT)
    assert len({*found["texts"]}) == len(found["scores"]) == 2
    assert found["scores"] == sorted(found["scores"], reverse=True)


def test_what_is_written_grows_to_the_answer(models, folders, tmp_path):
    """That of an export comes at once, and under the name of the model."""
    *_, whole = models["Writing"]["titles"].in_parts(text=TEXT)
    found = models["Writing"]["titles"](text=TEXT)
    assert whole == {key: pytest.approx(found[key], abs=1e-5) for key in found}
    with pytest.raises(UserError, match="the text holds no token"):
        next(models["Writing"]["titles"].in_parts(text=" "))
    export_folder(folders["titles"][0], str(tmp_path / "titles" / "1"))
    opened = open_models([str(tmp_path / "titles" / "1")])["Writing"]
    assert list(opened) == ["titles"]
    [answer] = opened["titles"].in_parts(text=TEXT)
    assert answer == opened["titles"](text=TEXT)


def test_blanks_and_attention(models):
    found = models["Fill in"]["nezha"](text="他在[MASK]京[MASK]")
    assert found["num_masks"] == len(found["candidates"]) == 2
    figure, line = models["Attention"]["reviews"](TEXT, "", ["-1"], ["1"])
    assert line == "" or "U+" in line
    assert "layer 0, head 1" in [panel.get_title() for panel in figure.axes]


def test_an_export_answers_as_its_folder(models, folders, tmp_path):
    texts = {"text": TEXT, "text_pair": PASSAGE}
    export_folder(folders["pairs"][0], str(tmp_path / "pairs"))
    [(title, opened)] = open_models([str(tmp_path / "pairs")]).items()
    expected, found = models[title]["pairs"](**texts), opened["pairs"](**texts)
    assert title == "Classification" and opened["pairs"].labels == models[title]["pairs"].labels
    assert found == {key: pytest.approx(expected[key], abs=1e-5) for key in found}
    with pytest.raises(UserError, match="holds no token"):
        opened["pairs"](**dict.fromkeys(texts, " "))
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
