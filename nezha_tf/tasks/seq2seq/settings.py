"""The settings of run_seq2seq.py, and of all programs that search for targets."""

import dataclasses

from nezha_tf.config import TARGET_PREDICTIONS
from nezha_tf.generation.options import METHODS
from nezha_tf.tasks.seq2seq.metrics import NAMES
from nezha_tf.training.settings import LayerMixSettings, RunSettings
from nezha_tf.util.settings import default_of, flag

ENDS = ("tail", "head")


@dataclasses.dataclass(frozen=True, kw_only=True)
class SearchSettings:
    """The settings of the search for targets."""

    decoding: str = flag("beam", "Method of the search for targets.", choices=METHODS)
    predict_batch_size: int = flag(16, "Number of sources in a decoding step.", 1)
    beam_size: int = flag(4, "Number of hypotheses that beam search keeps.", 1)
    length_penalty: float = flag(
        0.7, "Exponent of the length penalty; larger values prefer longer targets."
    )
    num_return_sequences: int = flag(1, "Number of targets for a source.", 1)
    min_target_length: int = flag(2, "Fewest tokens of a target, the final [SEP] included.", 1)
    temperature: float = flag(1.0, "Temperature of sampling.", 0)
    top_k: int = flag(0, "Sample from this many most probable tokens; 0: from all.", 0)
    top_p: float = flag(
        1.0, "Sample from the most probable tokens that together have this probability.", 0, 1
    )
    no_repeat_ngram_size: int = flag(
        0, "No n-gram of this size occurs twice in a target; 0: off.", 0
    )
    exempt_words: tuple[str, ...] = flag((), "Words whose n-grams may be repeated.")
    banned_words: tuple[str, ...] = flag((), "Words of one token that must not be written.")


@dataclasses.dataclass(frozen=True, kw_only=True)
class PairColumns:
    """Which columns of a file are the source and the target."""

    source_column: str = flag("src", "Column, or key, of the source.")
    target_column: str = flag("tgt", "Column, or key, of the target.")

    @property
    def pair_columns(self):
        """Both names, as for `read_pairs`."""
        return self.source_column, self.target_column


# The defaults of the fields that `task.json` contains.
SEARCH_DEFAULTS = {
    field.name: field.default
    for field in dataclasses.fields(SearchSettings)
    if field.name != "predict_batch_size"
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Seq2SeqSettings(SearchSettings, PairColumns, LayerMixSettings, RunSettings):
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
    max_source_length: int = flag(128, "Most tokens of a source, [CLS] and [SEP] included.", 1)
    max_target_length: int = flag(64, "Most tokens of a target, the final [SEP] included.", 1)
    truncate_source: str = flag(
        "tail", "The end to cut off from sources that are too long.", choices=ENDS
    )
    truncate_target: str = flag(
        "tail", "The end to cut off from targets that are too long.", choices=ENDS
    )
    target_prediction: str = flag(
        "masked",
        "masked: predict the masked tokens of the target; shift: predict the next token at each "
        "position of the target.",
        choices=TARGET_PREDICTIONS,
    )
    masked_lm_prob: float = flag(0.7, "Share of the target's tokens to mask.", 0, 1)
    max_predictions_per_seq: int | None = flag(
        None, "Most masked tokens; default: --masked_lm_prob of the longest target.", 1
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
