"""The program of the page on corpora that splits paragraphs."""

import re

import laws
import pages
import pytest
from hypothesis import example, given
from hypothesis import strategies as st


def splitter(page):
    """Returns the function `sentences` of a page."""
    [block] = [block for block in pages.blocks(page, "python") if "def sentences" in block.text]
    names = {}
    exec(block.text, names)
    return names["sentences"]


@pytest.mark.parametrize("language", pages.LANGUAGES)
@laws.examples(200)
@example("他说：“好！”。走吧。")
@example("……好吧。")
@example("……")
@given(st.text(alphabet="好吧，：。！？…“”『』「」（）a \n", max_size=20))
def test_sentences_are_the_paragraph(language, paragraph):
    """Nothing is lost, and a sentence ends where the next one begins."""
    found = splitter(f"docs/{language}/corpus.md")(paragraph)
    assert "".join(found) == paragraph and all(found)
    for sentence in found[:-1]:
        assert re.search("[。！？…][”』」）]*$", sentence)
    for sentence in found[1:]:
        assert sentence[0] not in "。！？…"


@pytest.mark.parametrize("language", pages.LANGUAGES)
def test_closing_quotes_stay_with_their_sentence(language):
    sentences = splitter(f"docs/{language}/corpus.md")
    text = [
        "豆浆是新磨的。",
        "趁热喝！",
        "“好喝吗？”",
        "她问。",
        "（是！）",
        "他说：“好！”。",
        "走吧……",
    ]
    assert sentences("".join(text)) == text
