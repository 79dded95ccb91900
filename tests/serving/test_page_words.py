"""What the page says by itself: its title, its Chinese, and what its own texts are answered."""

import ast
import itertools
import re

import pytest
from conftest import REPOSITORY

from nezha_tf.serving import page_words
from nezha_tf.serving.page import all_tabs, make_page, open_models
from nezha_tf.util import language

TABS = REPOSITORY / "nezha_tf" / "serving" / "tabs.py"
CHINESE = re.compile("[\u4e00-\u9fff]")


@pytest.fixture(scope="module")
def mini():
    """What the package's model does, dict of a tab's title to the model."""
    return {title: of_tab["mini"] for title, of_tab in open_models(["mini"]).items()}


@pytest.fixture(autouse=True)
def in_english():
    yield
    language.use("en")


def said_by_tabs():
    """Returns what the code of the tabs gives to the functions that show it."""
    shows = {"text_box": slice(0, 1), "fill_tab": slice(1, 2), "table": slice(None)}
    found = {tab.title for tab in all_tabs()}
    for call in ast.walk(ast.parse(TABS.read_text(encoding="utf-8"))):
        name = getattr(getattr(call, "func", None), "id", None)
        if name in shows or name == "in_language":
            arguments = call.args[shows.get(name, slice(None))]
            found |= {a.value for a in arguments if isinstance(a, ast.Constant)}
    return found


def test_all_that_the_tabs_say_has_its_chinese():
    said = said_by_tabs()
    assert len(said) > 30
    language.use("zh")
    for text in said - {"[MASK] 1"}:
        assert CHINESE.search(page_words.shown(text))
    # What a text must have written in it is the same in both.
    for english, chinese in page_words.CHINESE.items():
        marks = re.compile(r"\[MASK\]|#idiom#|0,3|-1")
        assert set(marks.findall(english)) == set(marks.findall(chinese)), english


def shown_by(page):
    """Returns the texts of a page: its labels, buttons, tabs, and headers of tables."""
    names = ("label", "headers", "value")
    found = set()
    for component in page.get_config_file()["components"]:
        kind, values = component["type"], component["props"]
        shown = [values.get(name) for name in names if name != "value" or kind == "button"]
        for each in shown:
            found.update(each if isinstance(each, list) else [each])
    return found - {None, ""}


def test_the_page_names_its_models_and_speaks_chinese():
    pytest.importorskip("gradio", reason="the page is made with gradio")
    models = open_models(["mini"])
    models["Fill in"]["a_b*<i>"] = models["Fill in"]["mini"]
    pages = {}
    for name in ("en", "zh"):
        language.use(name)
        pages[name] = make_page(models)
    for page in pages.values():
        assert page.title == "mini, a_b*<i> - nezha_tf"
        texts = [c["props"].get("value") for c in page.get_config_file()["components"]]
        assert "# mini, a\\_b\\*\\<i\\>" in texts
    english, chinese = map(shown_by, pages.values())
    assert {"Fill in", "Continuation", "Prompt", "Draw", "score"} <= english
    assert not any(map(CHINESE.search, english))
    assert {"填空", "续写", "画图", "分数"} <= chinese
    assert {text for text in chinese if not CHINESE.search(text)} == {"[MASK] 1"}


def test_what_is_written_appears_while_it_is_written(mini):
    for title, text in (("Continuation", page_words.PROMPT), ("Writing", page_words.SOURCE)):
        name = {"Continuation": "continuations"}.get(title, "texts")
        *parts, whole = mini[title].in_parts(text=text)
        answer = mini[title](text=text)
        assert whole[name] == answer[name] and len(parts) > 1
        assert 1 < max(map(len, parts[0][name])) <= 5 < len(whole[name][0])


def test_the_texts_that_the_page_proposes_are_answered_by_the_packages_model(mini):
    """Nobody can test for sense; but nothing is said over and over, and texts are no stubs."""
    assert set(mini) == {"Fill in", "Writing", "Continuation", "Attention"}
    candidates = mini["Fill in"](text=page_words.BLANKS)["candidates"]
    assert candidates[0][0] in "到往回去"
    first, second, end = page_words.SOURCE.split("。")
    written = mini["Writing"](text=page_words.SOURCE)["texts"]
    assert written[0] == f"{second}。{first}。" and not end
    for text in mini["Continuation"](text=page_words.PROMPT)["continuations"]:
        runs = [len(list(run)) for _, run in itertools.groupby(text)]
        assert len(text) > 8 and max(runs) <= 2
        pieces = [text[i : i + 3] for i in range(len(text) - 2)]
        assert len(set(pieces)) == len(pieces)
