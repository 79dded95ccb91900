"""Fonts for Chinese text, and what stands for characters that none of them has."""

import pytest
from matplotlib import font_manager

from nezha_tf.pictures import fonts


class Font:
    def __init__(self, name):
        self.name = self.fname = name


@pytest.fixture
def machine(monkeypatch):
    """A machine with three fonts beside the usual one, of which matplotlib knows two."""
    characters = {
        "half": set(map(ord, "a正")),
        "cjk": set(map(ord, "a正面")),
        "new": set(map(ord, "负")),
    }
    monkeypatch.setattr(font_manager, "findfont", lambda properties: "usual")
    monkeypatch.setattr(
        fonts, "_characters", lambda path: characters.get(path, set(map(ord, "a#")))
    )
    manager = font_manager.fontManager
    monkeypatch.setattr(manager, "ttflist", [Font("half"), Font("cjk")])
    monkeypatch.setattr(manager, "addfont", lambda path: manager.ttflist.append(Font(path)))
    monkeypatch.setattr(font_manager, "findSystemFonts", lambda: ["new"])


def test_fonts_have_the_characters(machine):
    assert fonts.font_families("正面 a")[-1] == "cjk"
    assert fonts.font_families("正乙") is None
    assert fonts.find_fonts("正面乙")[0][-1] == "cjk"
    assert fonts.find_fonts("正面乙")[1] == {"乙"}


def test_a_font_that_came_after_matplotlib_made_its_list_is_found(machine):
    assert fonts.font_families("负")[-1] == "new"


def test_of_fonts_that_have_all_a_chinese_one_is_taken(machine, monkeypatch):
    fonts_of_machine = [Font("cjk"), Font("Noto Sans CJK SC")]
    monkeypatch.setattr(font_manager.fontManager, "ttflist", fonts_of_machine)
    monkeypatch.setattr(
        fonts, "_characters", lambda path: set() if path == "usual" else {ord("正")}
    )
    assert fonts.font_families("正")[-1] == "Noto Sans CJK SC"


def test_tokens_without_a_font_are_drawn_as_code_points(machine):
    labels, style, said = fonts.labels(["a", "##正", "乙$", "面"])
    assert labels == ["a", "##正", "U+4E59 U+0024", "面"]
    assert style["family"][-1] == "cjk" and style["parse_math"] is False
    assert "乙" in said and "U+" in said and "fonts-noto-cjk" in said and "\n" not in said
    assert fonts.labels(["a", "正"])[2] == ""


def test_fonts_of_this_machine():
    assert fonts.font_families("plain café")
    # A private character that only the font of last resort has.
    assert fonts.font_families("a\U00100000") is None
