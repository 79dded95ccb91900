"""Which pieces form a word."""

from conftest import RESOURCES

from nezha_tf import FullTokenizer
from nezha_tf.text.word_segmentation import word_starts


def words(text):
    tokenizer = FullTokenizer(RESOURCES / "vocab.txt")
    pieces = tokenizer.tokenize_with_offsets(text)
    found = []
    for piece, starts in zip(pieces, word_starts(text, pieces), strict=True):
        if starts:
            found.append("")
        found[-1] += piece.text.removeprefix("##")
    return found


def test_words_are_those_of_jieba():
    import jieba

    text = "工程师通过传感器收集温度和振动数据，效率提高了很多。"
    assert words(text) == jieba.lcut(text)


def test_a_split_latin_word_is_one_unit():
    assert "unbelievableness" in words("这真是 unbelievableness 啊")
    assert "131888" in words("全程131888公里")


def test_a_token_that_jieba_cuts_stays_whole():
    # jieba parts the word at the accented letter; WordPiece sees one token, "cafeteria".
    assert "cafeteria" in words("去cafétéria吃饭")
