"""A WordPiece vocabulary from a corpus: Chinese by character, the rest by learned pieces."""

import collections
import string

from nezha_tf import console
from nezha_tf.errors import UserError
from nezha_tf.text import characters
from nezha_tf.text.tokenization import basic_tokens
from nezha_tf.text.vocabulary import CLS, MASK, PAD, SEP, UNK

# The head of BERT's Chinese vocabulary: the same names at the same ids.
SPECIALS = (PAD, *(f"[unused{n}]" for n in range(1, 100)), UNK, CLS, SEP, MASK)
PUNCTUATION = string.punctuation + "，。、；：？！“”‘’（）《》〈〉【】「」『』〔〕—…·～￥％＋－×÷°℃"


def build_vocabulary(
    sentences,
    vocab_size,
    *,
    do_lower_case=True,
    min_character_count=2,
    common_characters=False,
    include=(),
):
    """Makes the pieces of a vocabulary.

    In this order: BERT's special pieces, CJK characters by falling frequency, pieces asked for,
    ASCII and usual punctuation, and what tensorflow-text's learner finds in the words that are
    not Chinese. No `##` form of a Chinese character is made: the tokenizer never needs one.

    Args:
      sentences: iterable of str.
      vocab_size: bound on the number of pieces.
      do_lower_case: as for `FullTokenizer`, which must use the same value.
      min_character_count: CJK characters seen less often are left out.
      common_characters: also take the characters of GB 2312 level 1 (3,755 simplified ones) and
        Big5 level 1 (5,401 traditional ones).
      include: pieces to take in any case.

    Returns:
      (list of pieces, share of the CJK characters read that it covers).

    Raises:
      UserError: no text, or `vocab_size` is too small for the characters.
    """
    cjk, words = _count(sentences, do_lower_case)
    if not cjk and not words:
        raise UserError("no text to build a vocabulary of")
    chosen = [char for char, count in _by_frequency(cjk) if count >= min_character_count]
    common = _common_characters() if common_characters else ()
    alphabet = string.ascii_lowercase + string.digits
    alphabet += "" if do_lower_case else string.ascii_uppercase
    # dict.fromkeys drops repetitions and keeps the order.
    pieces = list(
        dict.fromkeys(
            [
                *SPECIALS,
                *chosen,
                *common,
                *include,
                *PUNCTUATION,
                *alphabet,
                *(f"##{char}" for char in alphabet),
            ]
        )
    )
    if len(pieces) > vocab_size:
        raise UserError(
            f"--vocab_size={vocab_size} is too small: {len(pieces)} pieces are needed; raise it, "
            "or --min_character_count"
        )
    if words and len(pieces) < vocab_size:
        learned = set(_learn(words, vocab_size - len(pieces))) - set(pieces)
        pieces += sorted(piece for piece in learned if not _is_inner_punctuation(piece))
    known = set(pieces)
    covered = sum(count for char, count in cjk.items() if char in known)
    return pieces, covered / max(cjk.total(), 1)


def _count(sentences, do_lower_case):
    """Returns Counters of the CJK characters and of the other tokens."""
    cjk, words = collections.Counter(), collections.Counter()
    for sentence in console.progress(sentences, desc="counting", unit="sentence"):
        for token in basic_tokens(sentence, do_lower_case):
            is_cjk = characters.kind_of(token.text[0]) == characters.ALONE
            (cjk if is_cjk else words)[token.text] += 1
    return cjk, words


def _by_frequency(counter):
    return sorted(counter.items(), key=lambda item: (-item[1], item[0]))


def _learn(words, size):
    """Returns at most `size` pieces: those above the lowest threshold that gives so few.

    The learner's own search for the threshold may return more pieces than it was asked for.
    """
    from tensorflow_text.tools.wordpiece_vocab import wordpiece_tokenizer_learner_lib as learner

    counts = _by_frequency(words)
    threshold = 2
    while True:
        pieces = learner.learn(
            counts, size, reserved_tokens=[], upper_thresh=threshold, lower_thresh=threshold
        )
        if len(pieces) <= size or threshold > counts[0][1]:
            return pieces[:size]
        threshold = max(threshold + 1, int(threshold * 1.25))


def _is_inner_punctuation(piece):
    """Whether a piece stands for punctuation inside a token, which no token holds."""
    return piece.startswith("##") and any(map(characters.is_punctuation, piece[2:]))


def _common_characters():
    """Yields the characters of the first levels of GB 2312 and Big5, by their code tables."""
    for encoding, leads, trails in (
        ("gb2312", range(0xB0, 0xD8), range(0xA1, 0xFF)),
        ("big5", range(0xA4, 0xC7), (*range(0x40, 0x7F), *range(0xA1, 0xFF))),
    ):
        for lead in leads:
            for trail in trails:
                try:
                    char = bytes((lead, trail)).decode(encoding)
                except UnicodeDecodeError:
                    continue  # the tables have gaps
                if characters.kind_of(char) == characters.ALONE:
                    yield char
