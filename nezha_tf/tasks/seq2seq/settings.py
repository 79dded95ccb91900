"""The settings of run_seq2seq.py."""

import dataclasses

from nezha_tf.generation.settings import ENDS, FormatSettings, PairColumns, SearchSettings
from nezha_tf.tasks.seq2seq.metrics import NAMES
from nezha_tf.training.settings import AdapterSettings, LayerMixSettings, RunSettings
from nezha_tf.util.settings import default_of, flag


@dataclasses.dataclass(frozen=True, kw_only=True)
class Seq2SeqSettings(
    SearchSettings, FormatSettings, PairColumns, LayerMixSettings, AdapterSettings, RunSettings
):
    """The pairs, the predictions in a target, and the search for targets.

    The defaults of training are those of UniLM's fine-tuning.
    """

    do_lower_case: bool = flag(True, "Lower-case the text and strip accents.")
    train_file: str | None = flag(
        None,
        'Pairs to train on: .json or .jsonl with {"src": ..., "tgt": ...} per line or in one '
        "array, or .tsv or .txt with two columns; also .gz; file names or globs, separated by "
        "commas.",
    )
    eval_file: str | None = flag(None, "Pairs to evaluate on, in the same formats.")
    predict_file: str | None = flag(
        None, "Sources to write targets for, in the same formats; targets may be left out."
    )
    do_predict: bool = flag(
        False, "Write predictions.jsonl with the targets of the best checkpoint."
    )
    truncate_target: str = flag(
        "tail", "The end to cut off from targets that are too long.", choices=ENDS
    )
    masked_lm_prob: float = flag(
        0.7,
        "Share of the target's tokens to mask.",
        0,
        1,
        read_with={"target_prediction": ("masked",)},
    )
    max_predictions_per_seq: int | None = flag(
        None,
        "Most masked tokens; default: --masked_lm_prob of the longest target.",
        1,
        read_with={"target_prediction": ("masked",)},
    )
    best_metric: str = flag(
        "loss",
        "Metric that chooses the best checkpoint.",
        choices=("loss", "masked_lm_accuracy", *NAMES),
    )
    max_eval_generated: int = flag(
        200,
        "Number of held-out sources for which an evaluation writes and measures targets; 0: it "
        "measures only the loss.",
        0,
    )
    optimizer: str = default_of(RunSettings, "optimizer", "adamw")
    learning_rate: float = default_of(RunSettings, "learning_rate", 3e-5)
    warmup_proportion: float | None = default_of(RunSettings, "warmup_proportion", 0.1)
    num_warmup_steps: int | None = default_of(RunSettings, "num_warmup_steps", None)
    train_batch_size: int = default_of(RunSettings, "train_batch_size", 64)
    num_train_steps: int | None = default_of(RunSettings, "num_train_steps", 10_000)
