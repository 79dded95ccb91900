"""How much each piece of a sentence attends to each, by layer and head."""

import math

from keras import ops

from nezha_tf.errors import UserError
from nezha_tf.pictures import fonts
from nezha_tf.pictures.grid import Grid
from nezha_tf.pictures.sentence import check_segments, lay_out


def draw(encoder, tokenizer, text, text_pair="", layers=(), heads=(), objective="bidirectional"):
    """Draws a row of panels for each layer, one for each head; of one layer or head a square.

    Args:
      encoder: `NezhaEncoder`.
      tokenizer: `FullTokenizer`.
      text, text_pair: as for `sentence.lay_out`.
      layers, heads: numbers from 0, those below 0 from the end; all, if none.
      objective: whose form and mask the sentence gets.

    Returns:
      (a matplotlib figure; a line for the user, or "").

    Raises:
      UserError: as for `sentence.lay_out`, or there is no such layer or head.
    """
    from matplotlib.colors import PowerNorm

    config = encoder.config
    layers = chosen(layers, config.num_hidden_layers, "layers")
    heads = chosen(heads, config.num_attention_heads, "heads")
    check_segments(config, objective)
    sentence = lay_out(tokenizer, objective, text, text_pair)
    grid = Grid(*_shape(len(layers), len(heads)), len(sentence.pieces), has_colorbar=True)
    probs = encoder.attention_probabilities(sentence.inputs())
    labels, style, said = fonts.labels(sentence.pieces)
    # By the root of the share: most of them are small.
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
    grid.figure.supylabel("piece that attends")
    grid.figure.supxlabel("piece that is attended to")
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
    """Returns which of a number of layers or heads are meant.

    Args:
      numbers: ints or their texts; below 0 from the end; all, if there are none.
      count: how many there are.
      name: the flag, for the error.

    Raises:
      UserError: one of them is no number, or past the end.
    """
    found = []
    for number in numbers:
        try:
            index = range(count)[int(number)]
        except (ValueError, IndexError):
            raise UserError(
                f"--{name}: {number} is none of the {count}; they are 0 to {count - 1}"
            ) from None
        found.append(index)
    return found or list(range(count))
