"""A vocabulary in one loop over the tokens of a text, with tensorflow-text's own learner."""

import collections

from tensorflow_text.tools.wordpiece_vocab import wordpiece_tokenizer_learner_lib as library

from nezha_tf.data.corpus import read_documents
from nezha_tf.text import characters
from nezha_tf.text.tokenization import basic_tokens
from nezha_tf.text.vocabulary_builder import PUNCTUATION, SPECIALS


def token_counts(paths, do_lower_case):
    """Returns (Counter of the CJK characters of text files, Counter of their other tokens)."""
    cjk, others = collections.Counter(), collections.Counter()
    for path in paths:
        for document in read_documents(path):
            for line in document:
                for token in basic_tokens(line, do_lower_case):
                    is_cjk = characters.kind_of(token.text[0]) == characters.ALONE
                    (cjk if is_cjk else others)[token.text] += 1
    return cjk, others


def by_frequency(counts):
    """Returns (token, count) pairs, most frequent first, ties by code point."""
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def learned_tokens(counts, size):
    """Tries one threshold after the other with the library; `counts` are by falling frequency."""
    threshold = 2
    while True:
        tokens = library.learn(counts, size, [], upper_thresh=threshold, lower_thresh=threshold)
        if len(tokens) <= size or threshold > counts[0][1]:
            return tokens[:size]
        threshold = max(threshold + 1, int(threshold * 1.25))


def plain_vocabulary(paths, size, least, do_lower_case):
    """Returns the tokens that `VocabularyBuilder` should give for text files, a list."""
    cjk, others = token_counts(paths, do_lower_case)
    ascii_tokens = "abcdefghijklmnopqrstuvwxyz0123456789"
    ascii_tokens += "" if do_lower_case else "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    tokens = [*SPECIALS, *(char for char, count in by_frequency(cjk) if count >= least)]
    tokens += [*PUNCTUATION, *ascii_tokens, *(f"##{char}" for char in ascii_tokens)]
    learned = set(learned_tokens(by_frequency(others), size - len(tokens))) - set(tokens)
    for token in sorted(learned):
        if not (token.startswith("##") and any(map(characters.is_punctuation, token[2:]))):
            tokens.append(token)
    return tokens
