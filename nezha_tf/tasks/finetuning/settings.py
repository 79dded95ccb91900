"""The settings that all programs for understanding tasks share."""

import dataclasses

from nezha_tf.training.settings import AdapterSettings, LayerMixSettings, RunSettings
from nezha_tf.util.settings import GIVEN, default_of, flag

PREDICTION_FORMATS = ("jsonl", "tsv")
# XLA takes several seconds for each length of a model of 4 layers of 256. Its steps took 0.77 of
# the time of the graph's on AVX512-BF16 (least times 0.92: benchmarks/RESULTS.md).
LEAST_COMPILED_STEPS = 1000


@dataclasses.dataclass(frozen=True, kw_only=True)
class FineTuningSettings(LayerMixSettings, AdapterSettings, RunSettings):
    """The settings of all tasks on labelled examples; each program has a subclass.

    The defaults are those of the originals' run_classifier.py, except that an evaluation reads all
    examples.
    """

    do_lower_case: bool = flag(True, "Lower-case the text and strip accents.")
    do_eval: bool = flag(False, "Evaluate at each checkpoint, and the best checkpoint at the end.")
    do_predict: bool = flag(False, "Write predictions of the best checkpoint.")
    max_seq_length: int = flag(128, "Most tokens of an example, special tokens included.", 3)
    num_train_epochs: float = flag(
        3.0, "Number of passes over the training data.", 0, read_with={"train_minutes": (None,)}
    )
    bucket_by_length: bool = flag(
        True,
        "Put examples of similar length into a batch and pad it as far as needed; off: pad all "
        "batches to --max_seq_length, which TPUs need.",
    )
    batch_by_tokens: bool = flag(
        False,
        "Put more examples into training batches of short texts: as many as have no more tokens, "
        "padding included, than --train_batch_size examples of --max_seq_length.",
        read_with={"bucket_by_length": GIVEN},
    )
    skip_bad_rows: bool = flag(
        False, "Skip rows of the data that cannot be read, and report their number."
    )
    predict_batch_size: int = flag(32, "Number of examples in a prediction step.", 1)
    predictions_format: str = flag(
        "jsonl", "Format of the predictions.", choices=PREDICTION_FORMATS
    )
    num_seeds: int = flag(
        1, "Number of runs for each learning rate: with --seed, --seed + 1, and so on.", 1
    )
    r_drop_alpha: float = flag(
        0.0, "Weight of the R-Drop loss; 0: off.", 0, read_with={"layer_mix": (False,)}
    )
    # A tuple of texts describes a sweep; each run of it has one float.
    learning_rate: float | tuple[str, ...] = flag(
        ("5e-05",), "Learning rate at the end of the warmup; several rates: each is tried."
    )
    optimizer: str = default_of(RunSettings, "optimizer", "adamw")
    warmup_proportion: float | None = default_of(RunSettings, "warmup_proportion", 0.1)
    num_warmup_steps: int | None = default_of(RunSettings, "num_warmup_steps", None)
    num_train_steps: int | None = default_of(
        RunSettings,
        "num_train_steps",
        None,
        help="Number of training steps; default: --num_train_epochs decides.",
    )
    save_checkpoints_steps: int | None = flag(
        None, "Number of steps between two checkpoints; default: an epoch.", 1
    )
    max_eval_steps: int | None = flag(None, "Most batches in an evaluation; default: all.", 1)
    keep_checkpoint_max: int = default_of(RunSettings, "keep_checkpoint_max", 1)
    eval_batch_size: int = default_of(RunSettings, "eval_batch_size", 32)
    jit_compile: bool | None = default_of(
        RunSettings,
        "jit_compile",
        None,
        help="Compile the training step with XLA; default: yes, but on a processor in float32 not "
        f"for fewer than {LEAST_COMPILED_STEPS:,} steps, because each length of batches is "
        "compiled anew.",
    )
