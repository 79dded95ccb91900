"""The words of segmenters and of the user: jieba's words for any text and dictionary."""

import io
import itertools
import math
import random
import sys
import tempfile

import jieba
import jieba.finalseg
import laws
import pytest
import rjieba
from any_texts import texts
from conftest import RESOURCES
from hypothesis import given
from hypothesis import strategies as st

from nezha_tf.text.jieba_words import JiebaWords
from nezha_tf.text.words import (
    Entities,
    UserWord,
    make_segmenter,
    never_found,
    read_user_dictionary,
)
from nezha_tf.util.errors import UserError


@pytest.fixture(scope="module")
def sentences():
    return (RESOURCES / "sample_corpus.txt").read_text(encoding="utf-8").split("\n")


def fresh_jieba():
    """Returns a `jieba.Tokenizer` with the words of the package; to read them takes a second."""
    jieba.initialize()
    tokenizer = jieba.Tokenizer()
    tokenizer.FREQ, tokenizer.total = dict(jieba.dt.FREQ), jieba.dt.total
    tokenizer.initialized = True
    return tokenizer


def test_segmenters_are_those_of_their_names(sentences):
    ours, rust = make_segmenter("jieba"), make_segmenter("rjieba")
    for sentence in sentences:
        assert ours(sentence) == jieba.lcut(sentence)
        assert rust(sentence) == rjieba.cut(sentence)


def test_the_cache_of_jieba_is_not_read(tmp_path, monkeypatch):
    """It is in a folder where every user can write."""
    (tmp_path / "jieba.cache").write_bytes(b"of somebody else")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert "".join(make_segmenter("jieba")("北京大学")) == "北京大学"
    assert (tmp_path / "jieba.cache").read_bytes() == b"of somebody else"


def test_a_missing_rjieba_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "rjieba", None)
    with pytest.raises(UserError, match=r"--segmenter=rjieba needs rjieba.*\[fast\]"):
        make_segmenter("rjieba")


def test_user_words_change_jieba_as_they_change_ours(sentences):
    theirs = fresh_jieba()
    words = [
        UserWord("今天天", 10**6),
        UserWord("们去", 3),
        UserWord("数据中心"),
        UserWord("的", 0),
    ]
    for word in words:
        theirs.add_word(*word)
    cut = make_segmenter("jieba", words)
    found = [cut(sentence) for sentence in sentences]
    assert found == [theirs.lcut(sentence) for sentence in sentences]
    assert found != [jieba.lcut(sentence) for sentence in sentences]


def test_a_word_of_frequency_0_is_split_by_its_own_segmenter_alone(monkeypatch):
    """The model of names finds 杭研; jieba keeps what it must not find for the whole process."""
    text, words = "他来到了网易杭研大厦", [UserWord("杭研", 0), UserWord("大厦", 0)]
    with monkeypatch.context() as patched:
        patched.setattr(jieba.finalseg, "Force_Split_Words", set())
        whole, theirs = jieba.lcut(text), fresh_jieba()
        for word in words:
            theirs.add_word(*word)
        split = theirs.lcut(text)
        # Whatever another program in the process has forbidden.
        patched.setattr(jieba.finalseg, "Force_Split_Words", {"网易", "杭研"})
        assert make_segmenter("jieba")(text) == whole
    assert "杭研" in whole and "杭研" not in split
    for _ in range(2):
        assert make_segmenter("jieba", words)(text) == split
        assert make_segmenter("jieba")(text) == whole == jieba.lcut(text)


def test_a_long_run_takes_no_quadratic_time():
    run = "龘龖靐" * 50_000  # jieba copies 4 * 150,000 ** 2 / 2 states: minutes.
    assert "".join(make_segmenter("jieba")(run)) == run


@pytest.mark.parametrize("name", ["jieba", "rjieba"])
def test_user_words_are_cut_out(name):
    text = "我在硅谷云上读书。"
    words = [UserWord("硅谷云"), UserWord("上读书", 100_000, "nz")]
    assert "硅谷云" not in make_segmenter(name)(text)
    assert make_segmenter(name, words)(text) == ["我", "在", "硅谷云", "上读书", "。"]
    assert "硅谷云" not in make_segmenter(name)(text)  # other people's words do not change


@pytest.mark.parametrize("name", ["jieba", "rjieba"])
def test_words_that_no_frequency_makes_a_segmenter_find(name):
    found = ["云计算", "C++", "AT&T", "硅谷云3号", "的", "我在", "我在硅谷", "龦人"]
    lost = ["奥黛丽·赫本", "東京タワー", "ＡＢＣ公司", "3·15"]
    words = [UserWord(text, frequency) for text in found + lost for frequency in (None, 1)]
    assert never_found(name, words) == [text for text in lost for _ in range(2)]
    assert never_found(name, [UserWord("3·15", 0)]) == never_found(name, []) == []
    # jieba's own way to make a word found.
    theirs = fresh_jieba()
    for text in found + lost:
        theirs.suggest_freq(text, tune=True)
        assert (text in theirs.lcut(f"，{text}，")) == (text in found)


def test_user_dictionary_is_in_the_format_of_jieba(tmp_path):
    path = tmp_path / "words.txt"
    path.write_bytes("\ufeff云计算 5 n\r\n\n李小福 2\n创新办\ncafé  nz\n".encode())
    assert read_user_dictionary(path) == [
        UserWord("云计算", 5, "n"),
        UserWord("李小福", 2),
        UserWord("创新办"),
        UserWord("café", None, "nz"),
    ]
    theirs = fresh_jieba()
    theirs.load_userdict(str(path))
    assert theirs.FREQ["云计算"] == 5 and theirs.FREQ["李小福"] == 2
    # jieba reads words with a space, too, and never finds them.
    spaced = ["Los Angeles 3 nz", "New York", "Windows 10 5", "硅 谷云 5 n", "硅谷云 NZ"]
    path.write_text("\n".join(["云计算 5 n", *spaced, "李小福 2 NR"]), encoding="utf-8")
    lines = []
    words = [UserWord("云计算", 5, "n"), UserWord("李小福", 2, "NR")]
    assert read_user_dictionary(path, lines) == read_user_dictionary(path) == words
    assert lines == spaced
    theirs.load_userdict(str(path))
    for word in ("Los Angeles", "New York", "Windows 10", "硅 谷云", "硅谷云 NZ"):
        assert theirs.FREQ[word] > 0 and word not in theirs.lcut(f"在{word}，")


@pytest.mark.parametrize(
    "content, message",
    [
        ("云计算 5 n\n李小福\t2\tnr\n".encode(), r"words.txt, line 2: '李小福.*spaces between"),
        ("云计算 4.5\n".encode(), r"words.txt, line 1: '云计算 4.5' is not a word"),
        ("云计算 -1 n\n".encode(), r"words.txt, line 1: "),
        ("云计算 5\n".encode() + "李".encode("gbk"), r"words.txt, line 2: not UTF-8"),
        (b"\n\n", r"words.txt has no word"),
        (b"New York\n", r"words.txt has no word; write one per line; 1 have a space"),
        (None, r"cannot read --user_dict .*words.txt: No such file"),
    ],
)
def test_a_bad_user_dictionary_is_told_in_one_line(tmp_path, content, message):
    if content is not None:
        (tmp_path / "words.txt").write_bytes(content)
    with pytest.raises(UserError, match=message) as error:
        read_user_dictionary(tmp_path / "words.txt")
    assert "\n" not in str(error.value)


def test_entities_are_the_longest_from_the_left():
    rng = random.Random(1)
    for _ in range(300):
        words = {"".join(rng.choices("甲乙丙].", k=rng.randint(1, 4))) for _ in range(6)}
        text = "".join(rng.choices("甲乙丙].x", k=30))
        found, position = [], 0
        while position < len(text):
            longest = max((w for w in words if text.startswith(w, position)), key=len, default="")
            if longest:
                found.append((position, position + len(longest)))
            position += max(1, len(longest))
        assert list(Entities(map(UserWord, words)).find(text)) == found
    assert not list(Entities([UserWord("甲", 0)]).find("甲"))


# Ideographs of jieba's block and others, common and rare, and characters with special rules.
LETTERS = "我来到北京清华大学的了𠮷龘龖靐㐀\u9fd5\u9fd6aZ09.%+#&-_ \t\r\n，😀é\u2028\x85\x1c"


@pytest.fixture(scope="module")
def segmenters():
    return {name: make_segmenter(name) for name in ("jieba", "rjieba")}


IDEOGRAPHS = st.characters(min_codepoint=0x4E00, max_codepoint=0x9FD5)
COMMON = "一不中了二人以你做全再到前力北华合同国在地大天夫女好学家小山工市张明是来林海王的英高"


@laws.examples(400)
@given(
    text=st.text(COMMON, max_size=30)
    | st.text(IDEOGRAPHS, max_size=20)
    | st.text(LETTERS, max_size=40)
    | texts()
)
def test_words_are_those_of_jieba_and_joined_they_are_the_text(segmenters, text):
    assert segmenters["jieba"](text) == jieba.lcut(text)
    for cut in segmenters.values():
        words = cut(text)
        assert "".join(words) == text and "" not in words


WORDS = st.text("甲乙丙丁aB1", min_size=1, max_size=4)
ENTRIES = st.lists(st.tuples(WORDS, st.integers(0, 10**9)), min_size=1, max_size=15)
# Most words of two letters, with equal frequencies: several paths have the same probability.
SHORT = ["".join(word) for n in (1, 2, 3) for word in itertools.product("甲乙", repeat=n)]
EQUAL = st.sets(st.sampled_from(SHORT), min_size=6).map(
    lambda found: [(w, 7) for w in sorted(found)]
)


@laws.examples(300)
@given(
    entries=ENTRIES | EQUAL,
    words=st.lists(st.builds(UserWord, WORDS, st.none() | st.integers(0, 10**6)), max_size=4),
    text=st.text("甲乙丙丁aB1 。龘", max_size=30) | st.text("甲乙", max_size=12),
)
def test_words_of_any_dictionary_are_those_of_jieba(entries, words, text):
    """Few letters, so that words overlap and have common beginnings."""
    file = io.BytesIO("".join(f"{word} {count} n\n" for word, count in entries).encode())
    file.name = "dictionary.txt"
    theirs = jieba.Tokenizer()
    theirs.FREQ, theirs.total = theirs.gen_pfdict(file)
    theirs.total = max(theirs.total, math.e)  # jieba takes its logarithm
    theirs.initialized = True
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(jieba.finalseg, "Force_Split_Words", set())
        for word in words:
            theirs.add_word(*word)
        never = [word.text for word in words if word.frequency == 0]
        assert JiebaWords(theirs.FREQ, theirs.total, never)(text) == theirs.lcut(text)
