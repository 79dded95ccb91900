"""Words of a text: where a segmenter cuts."""

import importlib.util

from nezha_tf.errors import UserError
from nezha_tf.text.jieba_words import JiebaWords

SEGMENTERS = ("jieba", "rjieba")


def make_segmenter(name, words=()):
    """Returns a function that cuts a text into words, a list of str that joined are the text.

    Args:
      name: "jieba" (the reference) or "rjieba", the same in Rust: 99.8 % of the words are equal.
      words: the user's own, `UserWord`s; both segmenters weigh them against the other words, so
        that one of a low frequency may still be parted.

    Raises:
      UserError: rjieba is not installed.
    """
    require_segmenter(name)
    if name == "jieba":
        return _make_jieba(words)
    import rjieba

    segmenter = rjieba.Jieba()
    for word in words:
        segmenter.add_word(word.text, word.frequency, word.tag)
    return segmenter.cut


def require_segmenter(name):
    """Raises a `UserError` where a segmenter is not installed."""
    if importlib.util.find_spec(name) is None:
        raise UserError(
            f"--segmenter={name} needs {name}; install it with pip install -e '.[fast]', or "
            "take --segmenter=jieba"
        )


def _make_jieba(words):
    import jieba

    # Its own way in is a cache in the folder of temporary files, where anyone may have put
    # another, and takes longer.
    tokenizer = jieba.Tokenizer()
    with tokenizer.get_dict_file() as file:
        tokenizer.FREQ, tokenizer.total = read_frequencies(file)
    tokenizer.initialized = True
    for word in words:
        tokenizer.add_word(*word)
    return JiebaWords(tokenizer).cut


def read_frequencies(file):
    """Returns what `jieba.Tokenizer.gen_pfdict` does of a dictionary of three fields a line.

    Args:
      file: binary; a word, its frequency and its part of speech a line.

    Returns:
      (dict of word to frequency, with 0 for the beginnings of words that are none themselves;
      the sum of the frequencies).
    """
    fields = file.read().decode().split()
    words, counts = fields[::3], list(map(int, fields[1::3]))
    frequencies, length = dict(zip(words, counts, strict=True)), 1
    while words := [word for word in words if len(word) > length]:
        for beginning in {word[:length] for word in words}:
            frequencies.setdefault(beginning, 0)
        length += 1
    return frequencies, sum(counts)
