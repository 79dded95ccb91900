"""The settings of every program that fine-tunes for understanding."""

import dataclasses

from nezha_tf.settings import default_of, flag
from nezha_tf.training.settings import RunSettings

PREDICTION_FORMATS = ("jsonl", "tsv")


@dataclasses.dataclass(frozen=True, kw_only=True)
class FineTuningSettings(RunSettings):
    """What all tasks on labelled examples have; a program's settings are a subclass.

    The defaults are those of the originals' run_classifier.py, except that an evaluation reads all
    examples.
    """

    do_lower_case: bool = flag(True, "Lower-case the text and strip accents.")
    do_eval: bool = flag(False, "Evaluate at each checkpoint, and the best checkpoint at the end.")
    do_predict: bool = flag(False, "Write predictions of the best checkpoint.")
    max_seq_length: int = flag(128, "Most pieces of an example, special pieces counted.", 3)
    num_train_epochs: float = flag(3.0, "Number of passes over the training data.", 0)
    bucket_by_length: bool = flag(
        True,
        "Put examples of similar length into a batch and pad it to its longest; off: pad all to "
        "--max_seq_length, as a TPU needs it.",
    )
    skip_bad_rows: bool = flag(
        False, "Skip rows of the data that cannot be read, and report their number."
    )
    predict_batch_size: int = flag(32, "Examples in a prediction step.", 1)
    predictions_format: str = flag(
        "jsonl", "Format of the predictions.", choices=PREDICTION_FORMATS
    )
    num_seeds: int = flag(
        1, "Number of runs for each learning rate: with --seed, --seed + 1, and so on.", 1
    )
    r_drop_alpha: float = flag(0.0, "Weight of the R-Drop loss; 0: off.", 0)
    # Of a sweep; each of its runs has one number.
    learning_rate: float | tuple[str, ...] = flag(
        ("5e-05",), "Learning rate at the end of the warmup; of several, each is tried."
    )
    optimizer: str = default_of(RunSettings, "optimizer", "adamw")
    warmup_proportion: float | None = default_of(RunSettings, "warmup_proportion", 0.1)
    num_train_steps: int | None = flag(
        None, "Number of training steps; default: by --num_train_epochs.", 1
    )
    save_checkpoints_steps: int | None = flag(
        None, "Steps between two checkpoints; default: an epoch.", 1
    )
    max_eval_steps: int | None = flag(
        None, "Batches that an evaluation reads, at most; default: all.", 1
    )
    keep_checkpoint_max: int = default_of(RunSettings, "keep_checkpoint_max", 1)
    eval_batch_size: int = default_of(RunSettings, "eval_batch_size", 32)
