"""The settings of tools/extract_features.py."""

import dataclasses

from nezha_tf.generation.settings import TrainedModelSettings
from nezha_tf.util.settings import GIVEN, flag

POOLINGS = ("mean", "cls", "max", "mean_all", "max_all", "pooler")


@dataclasses.dataclass(frozen=True, kw_only=True)
class ExtractSettings(TrainedModelSettings):
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
        "or maximum of its tokens without [CLS] and [SEP]; mean_all, max_all: with them, as "
        "sentence-transformers has it; cls: the vector of [CLS]; pooler: the output of the pooler.",
        choices=POOLINGS,
        read_with={"level": ("text",)},
    )
    normalize: bool | None = flag(
        None,
        "Divide each text's vector by its length; default: what the model folder says, or not.",
        read_with={"level": ("text",)},
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
        read_with={"similarity": GIVEN},
    )
    max_seq_length: int | None = flag(
        None,
        "Longest text in tokens, [CLS] and [SEP] included; default: what the model folder says, "
        "or 128.",
        3,
    )
    predict_batch_size: int = flag(32, "Texts that the model reads at a time.", 1)
