"""What is drawn: the cells, their names, and mistakes in one line."""

import shutil
import sys

import keras
import numpy as np
import pytest
from commands import assert_one_line, run
from conftest import GOLDEN, RESOURCES

from nezha_tf import FullTokenizer, NezhaConfig, NezhaEncoder, Vocabulary
from nezha_tf.objectives.table import OBJECTIVES
from nezha_tf.pictures import attention_maps, attention_masks, relative_positions
from nezha_tf.pictures.sentence import lay_out
from nezha_tf.pictures.settings import VisualizeSettings
from nezha_tf.pictures.visualize import visualize
from nezha_tf.text.vocabulary import SPECIAL_TOKENS
from nezha_tf.util.errors import UserError

STANDARD = {
    "picture": "attention_masks",
    "output_file": "picture.png",
    "vocab_file": str(RESOURCES / "vocab.txt"),
}


@pytest.fixture(scope="module")
def tokenizer():
    return FullTokenizer(vocabulary=Vocabulary([*SPECIAL_TOKENS, *"abcdef"]))


@pytest.fixture(scope="module")
def encoder():
    config = NezhaConfig(
        vocab_size=11,
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=16,
        type_vocab_size=6,
        initializer_range=0.5,
        position_encoding="learned_relative",
        max_relative_position=4,
    )
    keras.utils.set_random_seed(1)
    return NezhaEncoder(config)


def cells(panel):
    """The values of a panel's cells, the rows from the top."""
    [mesh] = panel.collections
    return np.array(mesh.get_array())


def names(panel):
    return [text.get_text() for text in panel.get_yticklabels()]


def panels_by_title(figure):
    return {panel.get_title(): panel for panel in figure.axes if panel.get_title()}


def lower(size):
    return np.tril(np.ones((size, size)))


@pytest.mark.parametrize("pair", ("c", ""))
def test_masks_of_a_sentence(tokenizer, pair):
    """Literally, as UniLM's paper draws them; a text alone is source and target by halves."""
    text = "a b" if pair else "a b c"
    figure, said = attention_masks.draw(tokenizer, text, pair)
    panels = panels_by_title(figure)
    assert said == "" and list(panels) == [
        "bidirectional",
        "left to right",
        "right to left",
        "seq2seq",
        "permutation",
    ]
    one_text = ["[CLS]", "a", "b", "c", "[SEP]"]
    two_texts = ["[CLS]", "a", "b", "[SEP]", "c", "[SEP]"]
    np.testing.assert_array_equal(cells(panels["bidirectional"]), 1)
    assert names(panels["bidirectional"]) == (two_texts if pair else one_text)
    np.testing.assert_array_equal(cells(panels["left to right"]), lower(5))
    np.testing.assert_array_equal(cells(panels["right to left"]), lower(5).T)
    assert names(panels["left to right"]) == names(panels["right to left"]) == one_text
    source = len(two_texts) - (2 if pair else 3)
    expected = lower(6)
    expected[:, :source] = 1
    expected[:source, source:] = 0
    np.testing.assert_array_equal(cells(panels["seq2seq"]), expected)
    assert names(panels["seq2seq"])[source - 1] == "[SEP]"
    # An order: of two tokens, one sees the other; and one token is predicted from the others.
    order = cells(panels["permutation"]).astype(bool)
    assert (order | order.T).all() and not order.all()
    assert names(panels["permutation"]) == (two_texts if pair else one_text)
    assert [text.get_text() for text in panels["seq2seq"].get_xticklabels()] == names(
        panels["seq2seq"]
    )


@pytest.mark.parametrize("name", [name for name, each in OBJECTIVES.items() if each.shown_as])
def test_objectives_that_change_a_text_are_shown_with_all_of_it(tokenizer, name):
    objective = OBJECTIVES[name]
    sentence = lay_out(tokenizer, name, "a b", "c")
    assert [token for token in sentence.tokens if token[0] != "["] == ["a", "b", "c"]
    assert set(sentence.segment_ids) == set(objective.segment_ids)
    # Whoever sees whom in the picture does so in training.
    ranks = objective.ranks(sentence.inputs())
    np.testing.assert_array_equal(ranks[0], sentence.ranks)


def test_attention_by_layer_and_head(tokenizer, encoder):
    figure, _ = attention_maps.draw(encoder, tokenizer, "abc", layers=["-1", "0"], heads=[1])
    panels = panels_by_title(figure)
    assert list(panels) == ["layer 1, head 1", "layer 0, head 1"]
    ids = np.array([[2, *tokenizer.convert_tokens_to_ids(tokenizer.tokenize("abc")), 3]])
    ones = np.ones_like(ids)
    probs = encoder.attention_probabilities(
        {"input_ids": ids, "input_mask": ones, "segment_ids": 0 * ones}
    )
    for layer in (0, 1):
        found = cells(panels[f"layer {layer}, head 1"])
        np.testing.assert_allclose(found, probs[layer][0, 1], atol=1e-6)
    figure, _ = attention_maps.draw(encoder, tokenizer, "ab", "c", objective="seq2seq")
    panels = panels_by_title(figure)
    assert len(panels) == 4
    for panel in panels.values():
        assert not cells(panel)[:4, 4:].any() and cells(panel)[4:, :4].all()


def test_the_table_of_relative_positions(encoder):
    figure = relative_positions.draw(relative_positions.functional_tables(4, 6))
    [image] = figure.axes[0].images
    # NEZHA's sinusoid is of the row's number, 0 for the distance -4.
    expected = [np.sin(3), np.cos(3), np.sin(3 / 10000 ** (2 / 6)), np.cos(3 / 10000 ** (2 / 6))]
    np.testing.assert_allclose(image.get_array()[3, :4], expected, rtol=1e-5)
    assert tuple(image.get_extent()) == (-0.5, 5.5, 4.5, -4.5)
    [line] = figure.axes[1].lines
    cosines = dict(zip(line.get_ydata(), line.get_xdata(), strict=True))
    assert cosines[0] == pytest.approx(1) and cosines[3] == pytest.approx(cosines[-3], abs=1e-6)
    angles = 2.0 / 10000 ** (np.arange(3) * 2 / 6)
    assert cosines[2] == pytest.approx(np.cos(angles).mean(), abs=1e-6)
    tables = relative_positions.tables_of(encoder)
    assert list(tables) == ["keys", "values"]
    images = [panel.images[0] for panel in relative_positions.draw(tables).axes if panel.images]
    for image, weight in zip(images, encoder.positions.get_weights(), strict=True):
        np.testing.assert_array_equal(image.get_array(), weight)


def test_mistakes_are_told(tmp_path, tokenizer, encoder, monkeypatch):
    monkeypatch.chdir(tmp_path)
    sizes = {"hidden_size": 24, "num_hidden_layers": 1, "type_vocab_size": 2}
    absolute, rotary = (
        NezhaEncoder(NezhaConfig(vocab_size=9, position_encoding=encoding, **sizes))
        for encoding in ("absolute", "rotary")
    )
    long = "a" * 5 + " b" * 62
    for call, parts in (
        (lambda: attention_masks.draw(tokenizer, "\u200b"), ["--text ", "no token"]),
        (lambda: attention_masks.draw(tokenizer, "a", " "), ["--text_pair ", "no token"]),
        (lambda: attention_masks.draw(tokenizer, long), ["65 tokens", "room for 64"]),
        (
            lambda: attention_maps.draw(encoder, tokenizer, "a", layers=["2"]),
            ["--layers: 2", "0 to 1"],
        ),
        (lambda: attention_maps.draw(encoder, tokenizer, "a", heads=["x"]), ["--heads: x"]),
        (
            lambda: attention_maps.draw(absolute, tokenizer, "a", objective="seq2seq"),
            ["--objective=seq2seq", "the model has only 2"],
        ),
        (
            lambda: attention_maps.draw(encoder, tokenizer, "a", objective="seq2sec"),
            ["--objective=seq2sec: there is no objective 'seq2sec'", "is 'seq2seq' meant?"],
        ),
        (lambda: relative_positions.tables_of(absolute), ["absolute", "no table"]),
        (lambda: relative_positions.tables_of(rotary), ["rotary", "no table"]),
        (lambda: see(picture=None), ["--picture is needed"]),
        (lambda: see(output_file="picture.pdf"), ["picture.pdf", "PNG"]),
        (lambda: see(), ["--text is needed"]),
        (lambda: see(text="甲", vocab_file=None), ["--vocab_file"]),
        (
            lambda: see(text="甲", picture="attention", vocab_file=None),
            ["--model_folder is needed"],
        ),
    ):
        with pytest.raises(UserError) as error:
            call()
        assert all(part in str(error.value) for part in parts), error.value
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(UserError, match=r"pip install -e '\.\[plot\]'"):
        see(text="甲")
    assert not list(tmp_path.iterdir())


def see(**changes):
    return visualize(VisualizeSettings(**{**STANDARD, **changes}))


def test_the_attention_of_a_folder(tmp_path):
    """Of a published one; the numbers are those of `test_attention_by_layer_and_head`."""
    shutil.copytree(GOLDEN / "nezha_tiny", tmp_path, dirs_exist_ok=True)
    tokens = [*SPECIAL_TOKENS, *map(chr, range(0x4E00, 0x4E00 + 206))]
    (tmp_path / "vocab.txt").write_text("\n".join(tokens), encoding="utf-8")
    changes = {"model_folder": str(tmp_path), "output_file": str(tmp_path / "picture.png")}
    changes["vocab_file"] = None
    said = see(picture="attention", text="一丁", layers=["0"], heads=["-1"], **changes)
    assert said.startswith("attention in ") and len(said.splitlines()) == 1
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")
    (tmp_path / "picture.png").unlink()
    see(picture="relative_positions", **changes)
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(UserError, match="--layers: 9"):
        see(picture="attention", text="一丁", layers=["9"], **changes)


def test_flags_that_a_picture_does_not_read_are_refused():
    with pytest.raises(UserError, match="--layers=0 does nothing with --picture=attention_masks"):
        see(text="甲", layers=["0"])


def test_the_command(tmp_path):
    arguments = ("--picture=attention_masks", "--output_file=new/masks.png", "--text=今天abc")
    vocabulary = f"--vocab_file={RESOURCES / 'vocab.txt'}"
    result = run("tools/visualize.py", *arguments, vocabulary, folder=tmp_path)
    assert result.returncode == 0 and result.stderr == "", result.stderr
    assert result.stdout.startswith("attention_masks in new/masks.png")
    assert (tmp_path / "new" / "masks.png").read_bytes().startswith(b"\x89PNG")
    result = run("tools/visualize.py", *arguments, "--vocab_file=none.txt", folder=tmp_path)
    assert_one_line(result, "none.txt", "cannot read")
