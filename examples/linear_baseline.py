"""What a linear model makes of labelled texts: TF-IDF of characters and logistic regression.

  python examples/linear_baseline.py train.tsv dev.tsv

The files have `text<TAB>label` a line, as run_classifier.py --task_name=custom reads them with
--columns=text,label. It needs scikit-learn: pip install -e '.[eval]'.
"""

import sys

try:
    from nezha_tf.data.rows import read_rows
    from nezha_tf.util.errors import UserError
except ImportError as error:
    sys.exit(f"{error}; install the project first: pip install -e .")


def main(train_file, eval_file):
    try:
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.linear_model import LogisticRegression
        from sklearn.metrics import accuracy_score, f1_score
        from sklearn.pipeline import make_pipeline
    except ImportError as error:
        sys.exit(f"{error}: pip install -e '.[eval]' in the clone")
    # Runs of one to three characters, the rarest left out; all else as scikit-learn has it.
    model = make_pipeline(
        TfidfVectorizer(analyzer="char", ngram_range=(1, 3), min_df=2, sublinear_tf=True),
        LogisticRegression(C=10, max_iter=1000),
    )
    texts, labels = _read(train_file)
    eval_texts, eval_labels = _read(eval_file)
    try:
        model.fit(texts, labels)
    except ValueError as error:  # one label alone, or nothing that is in two texts
        raise UserError(f"cannot learn from {train_file}: {error}") from error
    predicted = model.predict(eval_texts)
    print(f"accuracy = {accuracy_score(eval_labels, predicted):.4f}")
    print(f"macro_f1 = {f1_score(eval_labels, predicted, average='macro'):.4f}")


def _read(path):
    rows = [row.values for row in read_rows(path, ("text", "label"))]
    return [row["text"] for row in rows], [row["label"] for row in rows]


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: python examples/linear_baseline.py train.tsv dev.tsv")
    try:
        main(*sys.argv[1:])
    except UserError as error:
        sys.exit(f"linear_baseline.py: error: {error}")
