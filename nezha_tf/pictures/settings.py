"""The settings of tools/visualize.py and tools/plot_metrics.py."""

import dataclasses

from nezha_tf.util.settings import flag

PICTURES = ("relative_positions", "attention_masks", "attention")


@dataclasses.dataclass(frozen=True, kw_only=True)
class VisualizeSettings:
    """The settings of tools/visualize.py."""

    picture: str | None = flag(
        None,
        "What to draw. relative_positions: the table of relative positions; attention_masks: which "
        "tokens of a text see which, for each objective; attention: how much each token attends "
        "to each, for each layer and head.",
        choices=PICTURES,
    )
    output_file: str | None = flag(None, "PNG file to write.")
    model_folder: str | None = flag(
        None,
        "The model: the --output_dir of a run, or the folder of a published model; default of "
        "relative_positions: the positions of NEZHA.",
    )
    text: str | None = flag(
        None, "Sentence to draw.", read_with={"picture": ("attention_masks", "attention")}
    )
    text_pair: str = flag(
        "",
        "Second sentence, if the text is a pair.",
        read_with={"picture": ("attention_masks", "attention")},
    )
    vocab_file: str | None = flag(
        None,
        "Vocabulary that cuts the text of attention_masks, without --model_folder.",
        read_with={"picture": ("attention_masks",), "model_folder": (None,)},
    )
    do_lower_case: bool | None = flag(
        None,
        "Lower-case the text and strip accents; default: what the model folder says, or yes.",
        read_with={"picture": ("attention_masks", "attention")},
    )
    layers: tuple[str, ...] = flag(
        (),
        "Layers to draw, comma-separated: 0 is the first, -1 the last; default: all.",
        read_with={"picture": ("attention",)},
    )
    heads: tuple[str, ...] = flag(
        (),
        "Heads to draw, comma-separated: 0 is the first, -1 the last; default: all.",
        read_with={"picture": ("attention",)},
    )
    objective: str | None = flag(
        None,
        "Objective whose segments and attention mask the sentence of attention gets; default: one "
        "that the model was trained for.",
        read_with={"picture": ("attention",)},
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class PlotSettings:
    """The settings of tools/plot_metrics.py."""

    runs: tuple[str, ...] | None = flag(
        None, "Folders of runs (their --output_dir), comma-separated."
    )
    output_file: str | None = flag(None, "PNG file to write.")
    labels: tuple[str, ...] = flag(
        (), "Names of the runs in the legend, comma-separated; default: the names of the folders."
    )
    metrics: tuple[str, ...] = flag(
        (),
        "Metrics to draw, by their names in metrics.jsonl, comma-separated; default: the usual "
        "ones.",
    )
    smoothing: int = flag(
        1,
        "Draw each training value as the mean of this many entries around it; 1: no smoothing.",
        1,
    )
