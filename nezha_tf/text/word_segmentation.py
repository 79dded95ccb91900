"""Segmenters, which split a text into words."""

import functools
import importlib.util

from nezha_tf.text.jieba_words import JiebaWords
from nezha_tf.text.user_dictionary import UserWord
from nezha_tf.util.errors import UserError

SEGMENTERS = ("jieba", "rjieba")


def make_segmenter(name, words=()):
    """Returns a function that splits a text into a list of words, whose concatenation is the text.

    Args:
      name: "jieba" (the reference) or "rjieba", its port to Rust: 99.8 % of the words are equal.
      words: the user's own words, `UserWord`s. Both segmenters weigh them against other words,
        so a word of low frequency may still be split.

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


def never_found(name, words):
    """Returns those of the user's words that a segmenter finds at no frequency, a list of str.

    Both segmenters split a text at other characters than letters, digits, ideographs and a few
    signs first, and look for words between them.

    Args:
      name: see `make_segmenter`.
      words: `UserWord`s; those of frequency 0 are not meant to be found.
    """
    # More frequent than all words of the segmenters' own dictionary together.
    often = [UserWord(word.text, 10**8) for word in words if word.frequency != 0]
    cut = make_segmenter(name, often)
    return [word.text for word in often if list(cut(word.text)) != [word.text]]


def require_segmenter(name):
    """Raises a `UserError` if a segmenter is not installed."""
    if importlib.util.find_spec(name) is None:
        raise UserError(
            f"--segmenter={name} needs {name}; install it with pip install -e '.[fast]', or "
            "pass --segmenter=jieba"
        )


def _make_jieba(words):
    import jieba

    tokenizer = jieba.Tokenizer()
    frequencies, tokenizer.total = _jieba_frequencies()
    # A user's words change the table.
    tokenizer.FREQ = dict(frequencies) if words else frequencies
    tokenizer.initialized = True
    for word in words:
        if word.frequency == 0:
            # add_word would also forbid the word to all other tokenizers of the process.
            tokenizer.FREQ[word.text] = 0
        else:
            tokenizer.add_word(*word)
    return JiebaWords(tokenizer, (word.text for word in words if word.frequency == 0)).cut


@functools.cache
def _jieba_frequencies():
    """Returns the result of `read_frequencies` for jieba's dictionary.

    jieba's own initialization reads a cache in the folder for temporary files, where other users
    could place a file, and takes longer.
    """
    import jieba

    with jieba.Tokenizer().get_dict_file() as file:
        return read_frequencies(file)


def read_frequencies(file):
    """Returns the result of `jieba.Tokenizer.gen_pfdict` for a dictionary of three columns.

    Args:
      file: binary file; each line has a word, its frequency and its part of speech.

    Returns:
      (dict of word to frequency, and of each beginning of a word that is not a word to 0; the
      sum of the frequencies).
    """
    fields = file.read().decode().split()
    words, counts = fields[::3], list(map(int, fields[1::3]))
    frequencies, length = dict(zip(words, counts, strict=True)), 1
    while words := [word for word in words if len(word) > length]:
        for beginning in {word[:length] for word in words}:
            frequencies.setdefault(beginning, 0)
        length += 1
    return frequencies, sum(counts)
