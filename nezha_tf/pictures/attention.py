"""Draws who sees whom in a sentence, and how much each token attends to each token."""

import math

from keras import ops

from nezha_tf.objectives.table import OBJECTIVES
from nezha_tf.pictures import fonts
from nezha_tf.pictures.sentence import check_segments, lay_out
from nezha_tf.util.errors import UserError

_TOKEN_INCHES = 0.2
_LEAST_PANEL_INCHES = 2.4
_MARGIN_INCHES = 0.8
_COLORBAR_INCHES = 0.9
# Largest number of tokens along a side of the picture, over all panels.
_MOST_ACROSS = 400
_MASK_COLORS = ("#f4f4f2", "#4c78a8")


def draw_masks(tokenizer, text, text_pair=""):
    """Draws the attention mask of each objective, but of those that are shown as others.

    Arguments and errors are those of `sentence.lay_out`. Returns (a matplotlib figure; a line for
    the user, or "").
    """
    from matplotlib.colors import ListedColormap

    sentences = {
        name: lay_out(tokenizer, name, text, text_pair)
        for name, objective in OBJECTIVES.items()
        if not objective.shown_as
    }
    longest = max(len(sentence.tokens) for sentence in sentences.values())
    figure, panels, font_size = _panels(math.ceil(len(sentences) / 2), 2, longest)
    for panel, (name, sentence) in zip(panels, sentences.items(), strict=False):
        labels, style, note = fonts.labels(sentence.tokens)
        colors = {"cmap": ListedColormap(_MASK_COLORS), "vmin": 0, "vmax": 1}
        panel.pcolormesh(sentence.visible(), edgecolors="white", **colors)
        _dress(panel, name.replace("_", " "), labels, {**style, "fontsize": font_size})
        numbers = panel.secondary_xaxis("bottom")
        numbers.set_xticks(_centers(labels), sentence.segment_ids.tolist(), fontsize=font_size)
        numbers.tick_params(length=0)
        numbers.spines[:].set_visible(False)
    for panel in panels[len(sentences) :]:
        panel.set_visible(False)
    _caption(figure, "token that looks", "token that is seen (blue), and its segment id")
    return figure, note


def draw_shares(
    encoder, tokenizer, text, text_pair="", layers=(), heads=(), objective="bidirectional"
):
    """Draws the attention probabilities: a row of panels for each layer, a panel for each head.

    If there is only one layer or one head, the panels are arranged as a square.

    Args:
      encoder: `NezhaEncoder`.
      tokenizer, text, text_pair, objective: as for `sentence.lay_out`.
      layers, heads: sequences of int or str: 0 is the first, -1 the last; empty: all.

    Returns:
      (a matplotlib figure; a line for the user, or "").

    Raises:
      UserError: as for `sentence.lay_out`, or the model has no such layer, head or segment.
    """
    from matplotlib.colors import PowerNorm

    config = encoder.config
    layers = _chosen(layers, config.num_hidden_layers, "layers")
    heads = _chosen(heads, config.num_attention_heads, "heads")
    check_segments(config, objective)
    sentence = lay_out(tokenizer, objective, text, text_pair)
    places = [(layer, head) for layer in layers for head in heads]
    rows, columns = len(layers), len(heads)
    if min(rows, columns) == 1:
        columns = math.ceil(math.sqrt(len(places)))
        rows = math.ceil(len(places) / columns)
    length = len(sentence.tokens)
    figure, panels, font_size = _panels(rows, columns, length, _COLORBAR_INCHES)
    for panel in panels[len(places) :]:
        panel.remove()
    panels = panels[: len(places)]
    probs = encoder.attention_probabilities(sentence.inputs())
    labels, style, note = fonts.labels(sentence.tokens)
    # The colours follow the square root of the shares, because most shares are small.
    colors = {"cmap": "Blues", "norm": PowerNorm(0.5, vmin=0, vmax=1)}
    for panel, (layer, head) in zip(panels, places, strict=True):
        image = panel.pcolormesh(ops.convert_to_numpy(probs[layer][0, head]), **colors)
        _dress(panel, f"layer {layer}, head {head}", labels, {**style, "fontsize": font_size})
    _caption(figure, "token that attends", "token that is attended to")
    shares = figure.colorbar(image, ax=panels, aspect=40, ticks=[0, 0.05, 0.2, 0.5, 1])
    shares.ax.set_yticklabels(["0 %", "5 %", "20 %", "50 %", "100 %"])
    return figure, note


def _chosen(numbers, count, flag):
    """Returns the indices of the layers or heads that the user chose."""
    indices = []
    for number in numbers:
        try:
            indices.append(range(count)[int(number)])
        except (ValueError, IndexError):
            raise UserError(
                f"--{flag}: {number} is none of the {count}; take numbers from 0 to {count - 1}"
            ) from None
    return indices or list(range(count))


def _panels(rows, columns, num_tokens, more_width=0.0):
    """Returns (a figure of square panels, list of the panels, font size of tokens in points)."""
    if max(rows, columns) * num_tokens > _MOST_ACROSS:
        raise UserError(
            f"{rows} by {columns} panels of {num_tokens} tokens are too much for one picture; "
            "choose some with --layers and --heads, or take a shorter text"
        )
    # Without pyplot, because its state belongs to the whole process.
    from matplotlib.figure import Figure

    cell = max(_TOKEN_INCHES, _LEAST_PANEL_INCHES / num_tokens)
    side = cell * num_tokens + _MARGIN_INCHES
    figure = Figure(figsize=(columns * side + more_width, rows * side), layout="constrained")
    panels = list(figure.subplots(rows, columns, squeeze=False).flat)
    return figure, panels, min(11, 0.75 * 72 * cell)


def _dress(panel, title, labels, style):
    """Writes the title, and the labels at the rows and above the columns, the first row on top."""
    title, title_style = fonts.caption(title)
    panel.set_title(title, fontsize="medium", fontweight="bold", **title_style)
    # This comes before the labels, because matplotlib has other labels at the top than below.
    panel.tick_params(length=0, bottom=False, top=True, labelbottom=False, labeltop=True)
    panel.set_xticks(_centers(labels), labels, **style)
    panel.set_yticks(_centers(labels), labels, **style)
    for label, text in zip(labels, panel.get_xticklabels(), strict=True):
        text.set_rotation(90 if len(label) > 1 else 0)
    panel.invert_yaxis()
    panel.set_aspect("equal")
    panel.spines[:].set_visible(False)


def _caption(figure, beside, below):
    for write, message in ((figure.supylabel, beside), (figure.supxlabel, below)):
        text, style = fonts.caption(message)
        write(text, **style)


def _centers(labels):
    return [place + 0.5 for place in range(len(labels))]
