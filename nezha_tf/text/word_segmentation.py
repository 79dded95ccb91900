"""Words of a text: where a segmenter cuts."""

import functools
import re

from nezha_tf.errors import UserError

SEGMENTERS = ("jieba", "rjieba")

# jieba parts at every character but these, and a run of them takes it quadratic time: its
# search for names copies the path at each character. So a longer run is cut at this length,
# and longer text after a character where jieba parts in any case.
_LONGEST = 1000
_PART = re.compile(rf"(?s).{{1,{_LONGEST - 1}}}[^\u4E00-\u9FD5a-zA-Z0-9+#&._%\-]|.{{1,{_LONGEST}}}")


def make_segmenter(name, words=()):
    """Returns a function that cuts a text into words, a list of str that joined are the text.

    Args:
      name: "jieba" (the reference) or "rjieba", the same in Rust: 99.8 % of the words are equal.
      words: the user's own, `UserWord`s; both segmenters weigh them against the other words, so
        that one of a low frequency may still be parted.

    Raises:
      UserError: rjieba is not installed.
    """
    if name == "jieba":
        return _make_jieba(words)
    try:
        import rjieba
    except ImportError as error:
        raise UserError(
            "--segmenter=rjieba needs rjieba; install it with pip install -e '.[fast]', or "
            "take --segmenter=jieba"
        ) from error
    segmenter = rjieba.Jieba()
    for word in words:
        segmenter.add_word(word.text, word.frequency, word.tag)
    return segmenter.cut


def _make_jieba(words):
    module = _jieba()
    if words:
        segmenter = module.Tokenizer()  # The module's own is left as it is.
        for word in words:
            segmenter.add_word(*word)
        cut = segmenter.lcut
    else:
        cut = module.lcut

    def cut_bounded(text):
        if len(text) <= _LONGEST:
            return cut(text)
        return [word for part in _PART.findall(text) for word in cut(part)]

    return cut_bounded


@functools.cache
def _jieba():
    import jieba

    jieba.setLogLevel("WARNING")  # jieba reports its dictionary's loading on stderr
    jieba.initialize()
    return jieba
