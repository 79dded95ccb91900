"""The words of segmenters, and the user's own words."""

import random
import sys
import tempfile

import jieba
import jieba.finalseg
import pytest
import rjieba
from conftest import RESOURCES

from nezha_tf.text.user_dictionary import Entities, UserWord, read_user_dictionary
from nezha_tf.text.word_segmentation import make_segmenter, never_found, read_frequencies
from nezha_tf.util.errors import UserError


@pytest.fixture(scope="module")
def sentences():
    return (RESOURCES / "sample_corpus.txt").read_text(encoding="utf-8").split("\n")


def test_segmenters_are_those_of_their_names(sentences):
    ours, rust = make_segmenter("jieba"), make_segmenter("rjieba")
    for sentence in sentences:
        assert ours(sentence) == jieba.lcut(sentence)
        assert rust(sentence) == rjieba.cut(sentence)
        assert "".join(ours(sentence)) == "".join(rust(sentence)) == sentence


def test_the_dictionary_is_read_as_jieba_reads_it():
    theirs = jieba.Tokenizer()
    with theirs.get_dict_file() as file:
        assert read_frequencies(file) == theirs.gen_pfdict(theirs.get_dict_file())


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


def test_words_of_odd_text_are_those_of_jieba(sentences):
    """Characters in random order are mostly in no dictionary, so jieba's model splits them."""
    rng = random.Random(2)
    characters = sorted(set("".join(sentences)) | set("ａ\U0001f600\t\r\n\u3000éÀ龘靐Ω%+&#-._ "))
    cut = make_segmenter("jieba")
    texts = ["".join(rng.choices(characters, k=rng.randint(0, 30))) for _ in range(8000)]
    for text in [*texts, "a\r\nb \r\r\n", "3.14%是1.5.2", "".join(sentences), "中" * 500]:
        assert cut(text) == jieba.lcut(text)


def test_user_words_change_jieba_as_they_change_ours(sentences):
    theirs = jieba.Tokenizer()
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
        whole, theirs = jieba.lcut(text), jieba.Tokenizer()
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
    run = "龘龖靐" * 100_000  # jieba copies 4 * 300,000 ** 2 / 2 states: minutes.
    assert "".join(make_segmenter("jieba")(run)) == run


@pytest.mark.parametrize("name", ["jieba", "rjieba"])
def test_user_words_are_cut_out(name):
    text = "我在硅谷云上读书。"
    words = [UserWord("硅谷云"), UserWord("上读书", 100_000, "nz")]
    assert "硅谷云" not in make_segmenter(name)(text)
    assert make_segmenter(name, words)(text) == ["我", "在", "硅谷云", "上读书", "。"]
    assert "硅谷云" not in make_segmenter(name)(
        text
    )  # Words of other people's dictionaries do not change.


@pytest.mark.parametrize("name", ["jieba", "rjieba"])
def test_words_that_no_frequency_makes_a_segmenter_find(name):
    found = ["云计算", "C++", "AT&T", "硅谷云3号", "的", "我在", "我在硅谷", "龦人"]
    lost = ["奥黛丽·赫本", "東京タワー", "ＡＢＣ公司", "3·15"]
    words = [UserWord(text, frequency) for text in found + lost for frequency in (None, 1)]
    assert never_found(name, words) == [text for text in lost for _ in range(2)]
    assert never_found(name, [UserWord("3·15", 0)]) == never_found(name, []) == []
    # jieba's own way to make a word found.
    theirs = jieba.Tokenizer()
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
    theirs = jieba.Tokenizer()
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
