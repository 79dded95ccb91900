"""The settings of search, and of the tools that run a trained model."""

import dataclasses

from nezha_tf.config import SEARCH_METHODS, TARGET_PREDICTIONS
from nezha_tf.util.settings import GIVEN, default_of, flag, undecided

ENDS = ("tail", "head")


@dataclasses.dataclass(frozen=True, kw_only=True)
class SearchSettings:
    """The settings of the search for targets."""

    decoding: str = flag("beam", "Method of the search for targets.", choices=SEARCH_METHODS)
    predict_batch_size: int = flag(16, "Number of sources in a decoding step.", 1)
    beam_size: int = flag(
        4, "Number of hypotheses that beam search keeps.", 1, read_with={"decoding": ("beam",)}
    )
    length_penalty: float = flag(
        0.7, "Exponent of the length penalty; larger values prefer longer targets."
    )
    num_return_sequences: int = flag(1, "Number of targets for a source.", 1)
    min_target_length: int = flag(2, "Fewest tokens of a target, the final [SEP] included.", 1)
    temperature: float = flag(
        1.0, "Temperature of sampling.", 0, read_with={"decoding": ("sample",)}
    )
    top_k: int = flag(
        0,
        "Sample from this many most probable tokens; 0: from all.",
        0,
        read_with={"decoding": ("sample",)},
    )
    top_p: float = flag(
        1.0,
        "Sample from the most probable tokens that together have this probability.",
        0,
        1,
        read_with={"decoding": ("sample",)},
    )
    repetition_penalty: float = flag(
        1.0,
        "The logits of tokens that a target already has are divided by this if positive, else "
        "multiplied; 1: off.",
        1,
    )
    no_repeat_ngram_size: int = flag(
        0, "No n-gram of this size occurs twice in a target; 0: off.", 0
    )
    exempt_words: tuple[str, ...] = flag(
        (), "Words whose n-grams may be repeated.", read_with={"no_repeat_ngram_size": GIVEN}
    )
    banned_words: tuple[str, ...] = flag((), "Words of one token that must not be written.")


@dataclasses.dataclass(frozen=True, kw_only=True)
class FormatSettings:
    """How a target follows its source."""

    max_source_length: int = flag(
        128, "Most tokens of a source or prompt, [CLS] and [SEP] included.", 1
    )
    max_target_length: int = flag(64, "Most tokens of a target, the final [SEP] included.", 1)
    truncate_source: str = flag(
        "tail", "The end to cut off from sources that are too long.", choices=ENDS
    )
    target_prediction: str = flag(
        "masked",
        "masked: predict the masked tokens of the target; shift: predict the next token at each "
        "position of the target.",
        choices=TARGET_PREDICTIONS,
    )


def _defaults(settings_class, *others):
    fields = dataclasses.fields(settings_class)
    return {field.name: field.default for field in fields if field.name not in others}


# The defaults of the fields that `task.json` contains.
SEARCH_DEFAULTS = _defaults(SearchSettings, "predict_batch_size")
FORMAT_DEFAULTS = _defaults(FormatSettings)


@dataclasses.dataclass(frozen=True, kw_only=True)
class PairColumns:
    """Which columns of a file are the source and the target."""

    source_column: str = flag("src", "Column, or key, of the source.")
    target_column: str = flag("tgt", "Column, or key, of the target.")

    @property
    def pair_columns(self):
        """Both names, as for `read_pairs`."""
        return self.source_column, self.target_column


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainedModelSettings:
    """Which model runs: a folder, or a bare checkpoint with its configuration and vocabulary."""

    model_folder: str | None = flag(
        None,
        "Folder of the model: the --output_dir of a run, or a published model (configuration, "
        "weights and vocab.txt), or hf:OWNER/NAME, a model of a hub; default: mini, the model of "
        "the package. Its task.json says how text is lower-cased, how long texts are, how targets "
        "are predicted and searched; flags that are given replace what it says.",
    )
    bert_config_file: str | None = flag(
        None,
        "JSON file with the configuration of a bare checkpoint; default: that beside the weights.",
    )
    vocab_file: str | None = flag(
        None,
        "Vocabulary of a bare checkpoint, one token a line; default: that beside the weights.",
    )
    init_checkpoint: str | None = flag(
        None,
        "A bare checkpoint of TF1, of this project or of Hugging Face, or the folder that it is "
        "in; instead of --model_folder.",
    )
    do_lower_case: bool | None = flag(
        None,
        "Lower-case the text and strip accents; default: what the model folder says, or yes.",
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class ModelFormatSettings(undecided(FormatSettings, FORMAT_DEFAULTS), TrainedModelSettings):
    """How a target follows its source; what is not given is as the model folder says.

    Without a model folder, it is as for run_seq2seq.py; but of a prompt the head is cut off.
    """

    segment_ids: tuple[str, ...] | None = flag(
        None, "Segment ids of source and target, as 0,1; default: those of --mode."
    )


_OF_FILES = {"prompt": (None,)}


@dataclasses.dataclass(frozen=True, kw_only=True)
class GenerateSettings(
    undecided(SearchSettings, SEARCH_DEFAULTS), PairColumns, ModelFormatSettings
):
    """The settings of tools/generate_text.py; the model folder decides how targets are searched."""

    input_file: str | None = flag(
        None,
        'Sources or prompts: .json or .jsonl with {"src": ...} on each line, or .tsv or .txt with '
        "one on each line; .gz too; file names or globs, comma-separated.",
    )
    prompt: str | None = flag(None, "One source or prompt, instead of --input_file.")
    source_column: str = default_of(PairColumns, "source_column", "src", read_with=_OF_FILES)
    target_column: str = default_of(PairColumns, "target_column", "tgt", read_with=_OF_FILES)
    output_file: str | None = flag(
        None, "JSON lines to write; default: the texts are shown on the screen."
    )
    mode: str | None = flag(
        None,
        "seq2seq: write a target for a source that the model sees as a whole; left_to_right: "
        "continue a prompt; default: what the model was trained for, seq2seq if it was trained "
        "for both.",
        choices=("seq2seq", "left_to_right"),
    )
    seed: int = flag(1, "Seed of sampling; the same seed gives the same text.", 0, 2**32 - 1)
    jit_compile: bool | None = flag(
        None, "Compile the search with XLA, which takes seconds; default: for more than one batch."
    )


_OF_PAIRS = {"mode": ("seq2seq",)}
_OF_TARGETS = {"mode": ("seq2seq", "left_to_right")}


@dataclasses.dataclass(frozen=True, kw_only=True)
class ScoreSettings(PairColumns, ModelFormatSettings):
    """The settings of tools/score_text.py."""

    input_file: str | None = flag(
        None,
        'Pairs: .json or .jsonl with {"src": ..., "tgt": ...} on each line, or .tsv or .txt with '
        'two columns; or texts: {"text": ...}, or one column; .gz too; file names or globs, '
        "comma-separated.",
    )
    output_file: str | None = flag(
        None, "JSON lines to write; default: the scores are shown on the screen."
    )
    mode: str | None = flag(
        None,
        "What is scored. seq2seq: targets for their sources; left_to_right: texts, each token "
        "after those before it; bidirectional: texts, each token masked while all others are seen "
        "(the pseudo-perplexity); default: what the model was pretrained for (if for several, the "
        "first of these), or seq2seq.",
        choices=("seq2seq", "left_to_right", "bidirectional"),
    )
    source_column: str = default_of(PairColumns, "source_column", "src", read_with=_OF_PAIRS)
    target_column: str = default_of(PairColumns, "target_column", "tgt", read_with=_OF_PAIRS)
    max_source_length: int | None = default_of(
        ModelFormatSettings, "max_source_length", None, read_with=_OF_PAIRS
    )
    max_target_length: int | None = default_of(
        ModelFormatSettings, "max_target_length", None, read_with=_OF_PAIRS
    )
    truncate_source: str | None = default_of(
        ModelFormatSettings, "truncate_source", None, read_with=_OF_PAIRS
    )
    target_prediction: str | None = default_of(
        ModelFormatSettings, "target_prediction", None, read_with=_OF_TARGETS
    )
    segment_ids: tuple[str, ...] | None = default_of(
        ModelFormatSettings, "segment_ids", None, read_with=_OF_TARGETS
    )
    predict_batch_size: int = flag(16, "Texts in a scoring step.", 1)


@dataclasses.dataclass(frozen=True, kw_only=True)
class FillMaskSettings(TrainedModelSettings):
    """The settings of tools/fill_mask.py."""

    input_file: str | None = flag(
        None, "File with one text on each line; .gz too; default: texts are read as they are typed."
    )
    text: str | None = flag(None, "One text, instead of --input_file.")
    top_k: int = flag(5, "Number of candidates for each [MASK].", 1)
