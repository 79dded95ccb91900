"""The settings of the tools that run a trained model."""

import dataclasses

from nezha_tf.config import TARGET_PREDICTIONS
from nezha_tf.tasks.seq2seq.settings import ENDS, SEARCH_DEFAULTS, PairColumns, SearchSettings
from nezha_tf.util.settings import flag, undecided


@dataclasses.dataclass(frozen=True, kw_only=True)
class ModelSettings:
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
class FormSettings(ModelSettings):
    """How a target follows its source."""

    target_prediction: str | None = flag(
        None,
        "Where the model predicts the next token. masked: at a [MASK] after the last token; "
        "shift: at the last token itself; default: what the model folder says, or masked.",
        choices=TARGET_PREDICTIONS,
    )
    segment_ids: tuple[str, ...] | None = flag(
        None, "Segment ids of source and target, as 0,1; default: those of --mode."
    )
    max_source_length: int | None = flag(
        None,
        "Longest source or prompt in tokens, [CLS] and [SEP] included; default: what the model "
        "folder says, or 128.",
        3,
    )
    max_target_length: int | None = flag(
        None,
        "Longest target in tokens, the final [SEP] included; default: what the model folder says, "
        "or 64.",
        2,
    )
    truncate_source: str | None = flag(
        None,
        "Which end of a source that is too long is cut off; default: what the model folder says, "
        "or tail. The default for a prompt is always head.",
        choices=ENDS,
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class GenerateSettings(undecided(SearchSettings, SEARCH_DEFAULTS), PairColumns, FormSettings):
    """The settings of tools/generate_text.py; the model folder decides how targets are searched."""

    input_file: str | None = flag(
        None,
        'Sources or prompts: .json or .jsonl with {"src": ...} on each line, or .tsv or .txt with '
        "one on each line; .gz too; file names or globs, comma-separated.",
    )
    prompt: str | None = flag(None, "One source or prompt, instead of --input_file.")
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
    jit_compile: bool = flag(True, "Compile the search with XLA.")


@dataclasses.dataclass(frozen=True, kw_only=True)
class ScoreSettings(PairColumns, FormSettings):
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
    predict_batch_size: int = flag(16, "Texts in a scoring step.", 1)


@dataclasses.dataclass(frozen=True, kw_only=True)
class FillMaskSettings(ModelSettings):
    """The settings of tools/fill_mask.py."""

    input_file: str | None = flag(
        None, "File with one text on each line; .gz too; default: texts are read as they are typed."
    )
    text: str | None = flag(None, "One text, instead of --input_file.")
    top_k: int = flag(5, "Number of candidates for each [MASK].", 1)


@dataclasses.dataclass(frozen=True, kw_only=True)
class ExtractSettings(ModelSettings):
    """The settings of tools/extract_features.py."""

    input_file: str | None = flag(
        None,
        'Texts: .txt or .tsv with one on each line, or .json or .jsonl with {"text": ...} on each '
        'line; pairs have a second column, or "text_pair"; .gz too; file names or globs, '
        "comma-separated. The first line of a .tsv may name its columns; it must if flags name "
        "other columns than these.",
    )
    output_file: str | None = flag(
        None,
        "File to write, in the order of the input. .jsonl: one line for each text; .npy: one row "
        "for each text, or for each token or character of all texts one after the other. Default "
        "with --similarity: the similarities are shown on the screen.",
    )
    level: str = flag(
        "text",
        "What has a vector: each text, each of its tokens ([CLS] and [SEP] are tokens), or each "
        "of its characters.",
        choices=("token", "character", "text"),
    )
    layers: tuple[str, ...] | None = flag(
        None,
        "Layers whose vectors are joined, comma-separated: 0 is the embeddings, -1 the last layer, "
        "mix the learned mixture of all layers of a model that was trained with --layer_mix; "
        "default: mix of such a model, -1 of others.",
    )
    pooling: str | None = flag(
        None,
        "How a text gets one vector; default: what the model folder says, or mean. mean, max: mean "
        "or maximum of its tokens without [CLS] and [SEP]; cls: the vector of [CLS]; pooler: the "
        "output of the pooler.",
        choices=("mean", "cls", "max", "pooler"),
    )
    similarity: bool = flag(
        False, "Write the cosine similarity of the two texts of each pair instead of vectors."
    )
    text_column: str = flag("text", "Column, or key, of the text.")
    text_pair_column: str = flag("text_pair", "Column of the second text of a pair.")
    label_column: str | None = flag(
        None,
        "With --similarity: column of how alike the texts are, a number; then the correlation of "
        "Spearman is told.",
    )
    max_seq_length: int | None = flag(
        None,
        "Longest text in tokens, [CLS] and [SEP] included; default: what the model folder says, "
        "or 128.",
        3,
    )
    predict_batch_size: int = flag(32, "Texts that the model reads at a time.", 1)
