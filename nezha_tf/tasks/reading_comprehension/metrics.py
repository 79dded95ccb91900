"""How near answers come to their references: F1 and exact match, CMRC2018's and SQuAD's."""

import collections
import difflib
import re
import string

from nezha_tf.errors import UserError

METRICS = ("cmrc", "squad")
NAMES = ("f1", "em", "average")

# What cmrc2018_evaluate.py takes for punctuation. It lists "……" too, but compares it with single
# characters, so that an ellipsis stays; so do "‘", "." and ",".
_CMRC_PUNCTUATION = "-:_*^/\\~`+=，。：？！“”；’《》·、「」（）－～『』"
_WITHOUT_CMRC_PUNCTUATION = str.maketrans("", "", _CMRC_PUNCTUATION)
_CHINESE_OR_OTHER = re.compile(r"[\u4e00-\u9fa5]|[^\u4e00-\u9fa5]+")
_WITHOUT_ASCII_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLE = re.compile(r"\b(a|an|the)\b")


def require_libraries(metric):
    """Raises a `UserError` where a metric's library of the extra [eval] is not installed."""
    if metric != "cmrc":
        return
    try:
        import nltk  # noqa: F401
    except ImportError as error:
        raise UserError(
            f"--metric=cmrc parts Latin words with nltk ({error}): pip install -e '.[eval]' in "
            "the clone, or pass --metric=squad"
        ) from error


def measure(predictions, references, metric):
    """Measures answers, each against the best of its references.

    Args:
      predictions: list of str, "" for no answer.
      references: list of lists of str, as many, at least one; an empty list is a question that
        has no answer, and any text is wrong.
      metric: "cmrc" or "squad".

    Returns:
      Dict of name to float, each a mean in percent: `f1`, `em` (exact match), and `average`, the
      mean of these two; where some questions have no answer, `has_answer_f1`, `has_answer_em` and
      `no_answer_accuracy` as well.

    Raises:
      UserError: the library is not installed.
    """
    require_libraries(metric)
    scorer = _cmrc if metric == "cmrc" else _squad
    pairs = list(zip(predictions, references, strict=True))
    scores = [scorer(prediction, texts) for prediction, texts in pairs]
    f1, em = _means(scores)
    found = {"f1": f1, "em": em, "average": (f1 + em) / 2}
    answerable = [score for score, (_, texts) in zip(scores, pairs, strict=True) if texts]
    impossible = [score for score, (_, texts) in zip(scores, pairs, strict=True) if not texts]
    if impossible:
        found["no_answer_accuracy"] = _means(impossible)[1]
        if answerable:
            found["has_answer_f1"], found["has_answer_em"] = _means(answerable)
    return found


def _means(scores):
    return [100.0 * sum(values) / len(scores) for values in zip(*scores, strict=True)]


def _cmrc(prediction, references):
    """Returns (F1, exact match) of the official program of CMRC2018 (Cui et al., 1810.07366).

    F1 is over the longest run of tokens that both have: its `find_lcs` is a common substring, not
    a subsequence. Exact match passes over case and punctuation, but not over inner white space. A
    text that is nothing but punctuation has no tokens: its F1 is 0 also against itself.
    """
    if not references:
        return (float(not prediction),) * 2
    f1 = max(_cmrc_f1(cmrc_tokens(prediction), cmrc_tokens(text)) for text in references)
    return f1, float(_cmrc_bare(prediction) in map(_cmrc_bare, references))


def cmrc_tokens(text):
    """Returns what CMRC's F1 counts: each Chinese character, other runs as nltk parts them.

    Punctuation goes first, so that "2008-2009" is one token. The official program has nltk look
    for ends of sentences within a run, too, which takes a model of its own; here a run is one
    sentence: only a full stop in the middle of several Latin words can part another way.
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
    """Returns (F1, exact match) of the official evaluate-v2.0.py of SQuAD.

    F1 is over the words that both have, in any order, as often as both have them. Of SQuAD 1.1's
    program it differs in references that are nothing but an article or punctuation: these are
    left out, and where none is left, no answer is the right one.
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
    """Returns the harmonic mean of common / predicted and common / wanted; 0 for nothing."""
    return 2 * common / (predicted + wanted) if common else 0.0
