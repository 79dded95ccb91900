"""The settings of run_sentence_vectors.py."""

import dataclasses

from nezha_tf.tasks.finetuning.settings import FineTuningSettings
from nezha_tf.tasks.sentence_vectors.loss import POOLINGS
from nezha_tf.util.settings import default_of, flag


@dataclasses.dataclass(frozen=True, kw_only=True)
class SentenceVectorSettings(FineTuningSettings):
    """The texts, the pairs, and what the vector of a text is."""

    train_file: str | None = flag(
        None,
        "Texts to train on: .txt with a text on each line (blank lines are left out), or .json, "
        ".jsonl, .tsv or .csv with columns, where a second text of a pair is a text, too; also "
        ".gz; file names or globs, separated by commas.",
    )
    eval_file: str | None = flag(
        None, "Pairs of texts with a number that says how alike they are: .json, .tsv or .csv."
    )
    predict_file: str | None = flag(
        None, "Pairs whose similarity is written, in the same formats; labels may be left out."
    )
    text_column: str = flag("text", "Column, or key, of the text.")
    text_pair_column: str = flag("text_pair", "Column of the second text of a pair.")
    label_column: str = flag("label", "Column of how alike the texts of a pair are.")
    pooling: str = flag(
        "cls",
        "The vector of a text. cls: that of [CLS], with the pooler behind it in training; mean: "
        "the mean of its tokens without [CLS] and [SEP].",
        choices=POOLINGS,
    )
    temperature: float = flag(0.05, "Divides the cosines in the loss.", 0)
    # The settings of the paper's models without labels.
    max_seq_length: int = default_of(FineTuningSettings, "max_seq_length", 64)
    num_train_epochs: float = default_of(FineTuningSettings, "num_train_epochs", 1.0)
    train_batch_size: int = default_of(FineTuningSettings, "train_batch_size", 64)
    best_metric: str = flag(
        "spearman",
        "Metric that chooses the best checkpoint.",
        choices=("spearman", "pearson"),
    )
