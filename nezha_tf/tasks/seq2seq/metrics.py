"""Metrics of generated texts against references: ROUGE, BLEU, chrF and exact match."""

import re
from types import SimpleNamespace

from nezha_tf.util.errors import require_modules

NAMES = ("rouge_1", "rouge_2", "rouge_l", "bleu", "chrf", "exact_match")

# A run of Latin letters and digits, or any other character.
_TOKEN = re.compile(r"[0-9a-z\u00df-\u024f]+|\S")
_ROUGE = {"rouge_1": "rouge1", "rouge_2": "rouge2", "rouge_l": "rougeL"}


def require_libraries():
    """Raises a `UserError` if the libraries of the extra [eval] are not installed."""
    what = "metrics of texts need rouge-score and sacrebleu"
    require_modules(what, "eval", "rouge_score", "sacrebleu")


def tokens(text):
    """Returns the tokens for ROUGE, in lower case: Latin words, numbers, and other characters."""
    return _TOKEN.findall(text.lower())


def measure(predictions, references):
    """Measures predictions, a list of at least one str, each against one reference.

    Returns:
      Dict of name to float: `rouge_1`, `rouge_2`, `rouge_l` (means of F1, 0 to 1), `bleu`
      (BLEU-4 of all texts together by sacrebleu with its Chinese tokenizer, 0 to 100), `chrf`
      (chrF of all texts together by sacrebleu: F2 of runs of one to six characters, 0 to 100) and
      `exact_match` (share of texts that equal their reference, ignoring case and white space).

    Raises:
      UserError: the libraries are not installed.
    """
    require_libraries()
    import sacrebleu
    from rouge_score.rouge_scorer import RougeScorer

    scorer = RougeScorer(list(_ROUGE.values()), tokenizer=SimpleNamespace(tokenize=tokens))
    pairs = list(zip(predictions, references, strict=True))
    scores = [scorer.score(reference, prediction) for prediction, reference in pairs]
    results = {
        name: sum(score[key].fmeasure for score in scores) / len(scores)
        for name, key in _ROUGE.items()
    }
    results["bleu"] = sacrebleu.corpus_bleu(predictions, [references], tokenize="zh").score
    results["chrf"] = sacrebleu.corpus_chrf(predictions, [references]).score
    results["exact_match"] = sum(_bare(a) == _bare(b) for a, b in pairs) / len(pairs)
    return results


def _bare(text):
    return "".join(text.lower().split())
