"""How good predicted classes or numbers are, by scikit-learn and SciPy."""

import contextlib
import math
import warnings

from nezha_tf.errors import UserError

# What is measured of labels of a type; the first is the default choice of --best_metric.
OF_LABEL_TYPE = {
    "single": ("accuracy", "macro_f1", "matthews_correlation"),
    "multi": ("micro_f1", "macro_f1", "exact_match"),
    "regression": ("spearman", "pearson", "mean_squared_error"),
}
NAMES = tuple(dict.fromkeys(name for names in OF_LABEL_TYPE.values() for name in names))


def require_libraries():
    """Raises a `UserError` where the libraries of the extra [eval] are not installed."""
    try:
        import scipy  # noqa: F401
        import sklearn  # noqa: F401
    except ImportError as error:
        raise UserError(
            f"classes are measured with scikit-learn ({error}): pip install -e '.[eval]' in the "
            "clone"
        ) from error


def single(predicted, label_ids, labels):
    """Measures one class of several.

    Args:
      predicted: int [n], n at least 1.
      label_ids: int [n].
      labels: names of the L classes.

    Returns:
      Dict of name to float: those of the label type, and `f1/<label>` for each class, which is 0
      where it is neither there nor predicted; the mean `macro_f1` leaves such classes out, as
      scikit-learn does.
    """
    from sklearn import metrics

    return {
        "accuracy": float(metrics.accuracy_score(label_ids, predicted)),
        "macro_f1": _f1(label_ids, predicted, average="macro"),
        "matthews_correlation": float(metrics.matthews_corrcoef(label_ids, predicted)),
        **_f1_by_class(label_ids, predicted, labels),
    }


def multi(predicted, label_ids, labels):
    """Measures any of several classes.

    Args:
      predicted: int [n, L], 0 or 1.
      label_ids: likewise.
      labels: names of the L classes.

    Returns:
      Dict of name to float: those of the label type, and `f1/<label>` for each class.
      `exact_match` is the share of examples with all their classes and no other.
    """
    from sklearn import metrics

    return {
        "micro_f1": _f1(label_ids, predicted, average="micro"),
        "macro_f1": _f1(label_ids, predicted, average="macro"),
        "exact_match": float(metrics.accuracy_score(label_ids, predicted)),
        **_f1_by_class(label_ids, predicted, labels),
    }


def regression(predicted, label_ids):
    """Measures numbers.

    Args:
      predicted: float [n], n at least 1.
      label_ids: likewise.

    Returns:
      Dict of name to float: those of the label type; a correlation with what never changes is 0.
    """
    from scipy import stats
    from sklearn import metrics

    found = {"spearman": 0.0, "pearson": 0.0}
    if len(predicted) > 1:
        with _silence():
            found["spearman"] = float(stats.spearmanr(predicted, label_ids).statistic)
            found["pearson"] = float(stats.pearsonr(predicted, label_ids).statistic)
    found = {name: 0.0 if math.isnan(value) else value for name, value in found.items()}
    return {**found, "mean_squared_error": float(metrics.mean_squared_error(label_ids, predicted))}


def _f1(label_ids, predicted, **options):
    from sklearn.metrics import f1_score

    found = f1_score(label_ids, predicted, zero_division=0, **options)
    return float(found) if options["average"] else found.tolist()


def _f1_by_class(label_ids, predicted, labels):
    found = _f1(label_ids, predicted, average=None, labels=range(len(labels)))
    return {f"f1/{label}": score for label, score in zip(labels, found, strict=True)}


@contextlib.contextmanager
def _silence():
    """That a correlation with a constant is not defined is no news."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
