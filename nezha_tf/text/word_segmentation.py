"""Words of a text: where jieba cuts, and which pieces lie in which word."""

import functools


@functools.cache
def _jieba():
    import jieba

    jieba.setLogLevel("WARNING")  # jieba reports its dictionary's loading on stderr
    jieba.initialize()
    return jieba


def word_of_character(text):
    """Returns for each character of the text the number of its word, by jieba (list of int)."""
    words = []
    for number, word in enumerate(_jieba().cut(text)):
        words.extend([number] * len(word))
    return words


def word_starts(text, pieces):
    """Tells which pieces begin a word.

    A word is what jieba cuts out of the raw text. A token that WordPiece split (an ASCII word
    or number, say) belongs whole to the word of its first character, also where jieba would
    cut it: a unit of whole-word masking never parts the pieces of one token.

    Args:
      text: the raw text.
      pieces: its `Piece`s, in order.

    Returns:
      List of bool, one for each piece.
    """
    words = word_of_character(text)
    starts = []
    previous_word = previous_token = None
    for piece in pieces:
        if piece.token == previous_token:
            starts.append(False)
            continue
        word = words[piece.start]
        starts.append(word != previous_word)
        previous_word, previous_token = word, piece.token
    return starts
