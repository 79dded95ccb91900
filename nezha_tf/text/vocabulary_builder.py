"""Builds a WordPiece vocabulary from a corpus: Chinese characters, and learned pieces."""

import collections
import string

from nezha_tf import console
from nezha_tf.errors import UserError
from nezha_tf.text import characters
from nezha_tf.text.tokenization import basic_tokens
from nezha_tf.text.vocabulary import CLS, MASK, PAD, SEP, UNK

# The first pieces of BERT's Chinese vocabulary, with the same ids.
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

    Their order is: BERT's special pieces, CJK characters by falling frequency, common characters
    and the pieces of `include`, punctuation and ASCII, and the pieces that tensorflow-text's
    learner finds in words that are not Chinese. There are no `##` pieces of Chinese characters,
    because the tokenizer never needs them.

    Args:
      sentences: iterable of str.
      vocab_size: bound on the number of pieces.
      do_lower_case: see `FullTokenizer`, which must use the same value.
      min_character_count: rarer CJK characters are left out.
      common_characters: whether to add the characters of GB 2312 level 1 (3,755 simplified ones)
        and Big5 level 1 (5,401 traditional ones).
      include: pieces to add in any case.

    Returns:
      (list of pieces, share of the text's CJK characters that are among them).

    Raises:
      UserError: there is no text, or `vocab_size` is too small for the characters.
    """
    cjk, words = _count(sentences, do_lower_case)
    if not cjk and not words:
        raise UserError("there is no text to build a vocabulary from")
    chosen = [char for char, count in _by_frequency(cjk) if count >= min_character_count]
    common = _common_characters() if common_characters else ()
    alphabet = string.ascii_lowercase + string.digits
    alphabet += "" if do_lower_case else string.ascii_uppercase
    # dict.fromkeys drops duplicates and keeps the order.
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
    """Returns (Counter of the CJK characters, Counter of the other tokens)."""
    cjk, words = collections.Counter(), collections.Counter()
    for sentence in console.progress(sentences, desc="counting", unit="sentence"):
        for token in basic_tokens(sentence, do_lower_case):
            is_cjk = characters.kind_of(token.text[0]) == characters.ALONE
            (cjk if is_cjk else words)[token.text] += 1
    return cjk, words


def _by_frequency(counter):
    return sorted(counter.items(), key=lambda item: (-item[1], item[0]))


def _learn(words, size):
    """Returns at most `size` pieces, with the lowest threshold that gives no more than these.

    The learner's own search for the threshold may return too many pieces.
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
    """Whether a piece is punctuation inside a token, which no token contains."""
    return piece.startswith("##") and any(map(characters.is_punctuation, piece[2:]))


def _common_characters():
    """Yields the characters of level 1 of GB 2312 and of Big5, in the order of their codes."""
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
