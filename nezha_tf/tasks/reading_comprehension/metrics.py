"""F1 and exact match of answers, as defined by CMRC2018 and by SQuAD."""

import collections
import difflib
import re
import string

from nezha_tf.util.errors import require_modules

METRICS = ("cmrc", "squad")
NAMES = ("f1", "em", "average")

# The punctuation that cmrc2018_evaluate.py removes. It lists "……" too, but compares single
# characters, so an ellipsis is not removed; "‘", "." and "," are not in its list.
_CMRC_PUNCTUATION = "-:_*^/\\~`+=，。：？！“”；’《》·、「」（）－～『』"
_WITHOUT_CMRC_PUNCTUATION = str.maketrans("", "", _CMRC_PUNCTUATION)
_CHINESE_OR_OTHER = re.compile(r"[\u4e00-\u9fa5]|[^\u4e00-\u9fa5]+")
_WITHOUT_ASCII_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLE = re.compile(r"\b(a|an|the)\b")


def require_libraries(metric):
    """Raises a `UserError` if a metric's library of the extra [eval] is not installed."""
    if metric == "cmrc":
        what = "--metric=cmrc needs nltk for Latin words"
        require_modules(what, "eval", "nltk", otherwise=", or pass --metric=squad")


def measure(predictions, references, metric):
    """Measures answers; each is compared with the best of its references.

    Args:
      predictions: list of n str, n at least 1; "" is no answer.
      references: list of n lists of str; an empty list is for a question without an answer, for
        which every text is wrong.
      metric: "cmrc" or "squad".

    Returns:
      Dict of name to float, each a mean in percent: `f1`, `em` (exact match), and `average`, the
      mean of these two. If some questions have no answer, also `no_answer_accuracy`,
      `has_answer_f1` and `has_answer_em`.

    Raises:
      UserError: the library is not installed.
    """
    require_libraries(metric)
    scorer = _cmrc if metric == "cmrc" else _squad
    scores = [scorer(*pair) for pair in zip(predictions, references, strict=True)]
    f1, em = _means(scores)
    results = {"f1": f1, "em": em, "average": (f1 + em) / 2}
    answerable = [score for score, texts in zip(scores, references, strict=True) if texts]
    impossible = [score for score, texts in zip(scores, references, strict=True) if not texts]
    if impossible:
        results["no_answer_accuracy"] = _means(impossible)[1]
    if impossible and answerable:
        results["has_answer_f1"], results["has_answer_em"] = _means(answerable)
    return results


def _means(scores):
    return [100.0 * sum(values) / len(scores) for values in zip(*scores, strict=True)]


def _cmrc(prediction, references):
    """Returns (F1, exact match) of CMRC2018's official program (Cui et al., arXiv 1810.07366).

    F1 counts the longest run of common tokens: `find_lcs` there finds a common substring, not a
    subsequence. Exact match ignores case and punctuation, but not inner white space. A text of
    punctuation only has no tokens, so its F1 is 0 even against itself.
    """
    if not references:
        return (float(not prediction),) * 2
    f1 = max(_cmrc_f1(cmrc_tokens(prediction), cmrc_tokens(text)) for text in references)
    return f1, float(_cmrc_bare(prediction) in map(_cmrc_bare, references))


def cmrc_tokens(text):
    """Returns the tokens for CMRC's F1: each Chinese character; nltk splits the other text.

    Punctuation is removed first, so "2008-2009" is one token. In the official program, nltk also
    splits a run of other text into sentences, which needs another model. Here a run is one
    sentence; tokens can differ only if a full stop is between several Latin words.
    """
    from nltk import word_tokenize

    tokens = []
    for run in _CHINESE_OR_OTHER.findall(_cmrc_bare(text)):
        is_chinese = len(run) == 1 and "\u4e00" <= run <= "\u9fa5"
        tokens += [run] if is_chinese else word_tokenize(run, preserve_line=True)
    return tokens


def _cmrc_bare(text):
    return text.lower().strip().translate(_WITHOUT_CMRC_PUNCTUATION)


def _cmrc_f1(prediction, reference):
    matcher = difflib.SequenceMatcher(None, prediction, reference, autojunk=False)
    return _f1(matcher.find_longest_match().size, len(prediction), len(reference))


def _squad(prediction, references):
    """Returns (F1, exact match) of SQuAD's official evaluate-v2.0.py.

    F1 counts common words in any order, each as often as both texts have it. SQuAD 1.1's program
    differs for references of articles or punctuation only: here they are left out, and if none
    remains, the empty answer is right.
    """
    bare = _squad_bare(prediction)
    references = list(filter(None, map(_squad_bare, references))) or [""]
    return max(_squad_f1(bare, text) for text in references), float(bare in references)


def _squad_bare(text):
    text = _ARTICLE.sub(" ", text.lower().translate(_WITHOUT_ASCII_PUNCTUATION))
    return " ".join(text.split())


def _squad_f1(prediction, reference):
    prediction, reference = prediction.split(), reference.split()
    if not prediction or not reference:
        return float(prediction == reference)
    common = collections.Counter(prediction) & collections.Counter(reference)
    return _f1(common.total(), len(prediction), len(reference))


def _f1(common, predicted, wanted):
    """Returns the harmonic mean of common / predicted and common / wanted; 0 if common is 0."""
    return 2 * common / (predicted + wanted) if common else 0.0
