"""The settings of run_mrc.py."""

import dataclasses

from nezha_tf.tasks.finetuning.settings import FineTuningSettings
from nezha_tf.tasks.reading_comprehension.metrics import METRICS, NAMES
from nezha_tf.util.settings import GIVEN, default_of, flag


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReadingComprehensionSettings(FineTuningSettings):
    """The questions, the windows of passages, and the choice of answers."""

    train_file: str | None = flag(
        None,
        "Questions to train on: JSON in the form of SQuAD 1.1 and 2.0, of CMRC2018's two, of "
        "Hugging Face's rows, or of prepared DuReader; file names or globs, separated by commas.",
    )
    eval_file: str | None = flag(None, "Questions to evaluate on, in the same forms.")
    predict_file: str | None = flag(
        None, "Questions to answer, in the same forms; answers may be left out."
    )
    # Chinese passages have about 500 tokens.
    max_seq_length: int = default_of(FineTuningSettings, "max_seq_length", 512)
    max_query_length: int = flag(64, "Most tokens of a question; longer ones are cut.", 1)
    doc_stride: int = flag(128, "Tokens between the starts of two windows of a passage.", 1)
    n_best_size: int = flag(20, "Number of candidates to write for a question.", 1)
    max_answer_length: int = flag(50, "Most tokens of an answer.", 1)
    version_2_with_negative: bool = flag(
        False, "Some questions have no answer in the passage (SQuAD 2.0)."
    )
    null_score_diff_threshold: float = flag(
        0.0,
        "With --version_2_with_negative: predict no answer if its score minus the best answer's "
        "score is above this.",
        read_with={"version_2_with_negative": GIVEN},
    )
    metric: str = flag("cmrc", "Definition of F1 and exact match.", choices=METRICS)
    best_metric: str = flag(
        "f1",
        "Metric that chooses the best checkpoint.",
        choices=("loss", "span_accuracy", *NAMES),
    )
