"""Draws how much each token of a sentence attends to each token, for each layer and head."""

import math

from keras import ops

from nezha_tf.pictures import fonts
from nezha_tf.pictures.grid import Grid
from nezha_tf.pictures.sentence import check_segments, lay_out
from nezha_tf.util.errors import UserError


def draw(encoder, tokenizer, text, text_pair="", layers=(), heads=(), objective="bidirectional"):
    """Draws a row of panels for each layer, with a panel for each head.

    If there is only one layer or one head, the panels are arranged as a square.

    Args:
      encoder: `NezhaEncoder`.
      tokenizer: `FullTokenizer`.
      text, text_pair: as for `sentence.lay_out`.
      layers, heads: sequences of numbers: 0 is the first, -1 the last; empty: all.
      objective: name of the objective whose segments and attention mask the sentence gets.

    Returns:
      (a matplotlib figure; a line for the user, or "").

    Raises:
      UserError: as for `sentence.lay_out`, or the model has no such layer or head.
    """
    from matplotlib.colors import PowerNorm

    config = encoder.config
    layers = chosen(layers, config.num_hidden_layers, "layers")
    heads = chosen(heads, config.num_attention_heads, "heads")
    check_segments(config, objective)
    sentence = lay_out(tokenizer, objective, text, text_pair)
    grid = Grid(*_shape(len(layers), len(heads)), len(sentence.tokens), has_colorbar=True)
    probs = encoder.attention_probabilities(sentence.inputs())
    labels, style, said = fonts.labels(sentence.tokens)
    # The colours follow the square root of the shares, because most shares are small.
    norm = PowerNorm(0.5, vmin=0, vmax=1)
    places = [(layer, head) for layer in layers for head in heads]
    for panel in grid.panels[len(places) :]:
        panel.remove()
    panels = grid.panels[: len(places)]
    for panel, (layer, head) in zip(panels, places, strict=True):
        image = panel.pcolormesh(
            ops.convert_to_numpy(probs[layer][0, head]), cmap="Blues", norm=norm
        )
        grid.label(panel, labels, style)
        grid.title(panel, f"layer {layer}, head {head}")
    grid.figure.supylabel("token that attends")
    grid.figure.supxlabel("token that is attended to")
    shares = grid.figure.colorbar(image, ax=panels, aspect=40, ticks=[0, 0.05, 0.2, 0.5, 1])
    shares.ax.set_yticklabels(["0 %", "5 %", "20 %", "50 %", "100 %"])
    return grid.figure, said


def _shape(layers, heads):
    """Returns (rows, columns) of the panels."""
    if min(layers, heads) > 1:
        return layers, heads
    columns = math.ceil(math.sqrt(layers * heads))
    return math.ceil(layers * heads / columns), columns


def chosen(numbers, count, name):
    """Returns the indices of the layers or heads that the user chose: list of int.

    Args:
      numbers: sequence of int or str: 0 is the first, -1 the last; empty: all.
      count: number of layers or heads.
      name: name of the flag, for the message.

    Raises:
      UserError: something is no number, or there is no such layer or head.
    """
    found = []
    for number in numbers:
        try:
            index = range(count)[int(number)]
        except (ValueError, IndexError):
            raise UserError(
                f"--{name}: {number} is none of the {count}; take numbers from 0 to {count - 1}"
            ) from None
        found.append(index)
    return found or list(range(count))
