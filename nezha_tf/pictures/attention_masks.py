"""Draws the attention masks of a sentence: which tokens see which, for each objective."""

import math

from nezha_tf.objectives.table import OBJECTIVES
from nezha_tf.pictures import fonts
from nezha_tf.pictures.grid import Grid
from nezha_tf.pictures.sentence import lay_out

_COLORS = ("#f4f4f2", "#4c78a8")


def draw(tokenizer, text, text_pair=""):
    """Draws a panel for each objective, but those that are shown as others.

    Args:
      tokenizer: `FullTokenizer`.
      text, text_pair: as for `sentence.lay_out`.

    Returns:
      (a matplotlib figure; a line for the user, or "").

    Raises:
      UserError: as for `sentence.lay_out`.
    """
    from matplotlib.colors import ListedColormap

    sentences = {
        name: lay_out(tokenizer, name, text, text_pair)
        for name, objective in OBJECTIVES.items()
        if not objective.shown_as
    }
    grid = Grid(
        math.ceil(len(sentences) / 2),
        2,
        max(len(sentence.tokens) for sentence in sentences.values()),
    )
    said = ""
    for panel, (name, sentence) in zip(grid.panels, sentences.items(), strict=False):
        labels, style, said = fonts.labels(sentence.tokens)
        panel.pcolormesh(
            sentence.visible(), cmap=ListedColormap(_COLORS), vmin=0, vmax=1, edgecolors="white"
        )
        grid.label(panel, labels, style)
        grid.title(panel, name.replace("_", " "))
        _number_segments(panel, sentence.segment_ids, grid.font_size)
    for panel in grid.panels[len(sentences) :]:
        panel.set_visible(False)
    grid.figure.supylabel("token that looks")
    grid.figure.supxlabel("token that is seen (blue), and its segment id")
    return grid.figure, said


def _number_segments(panel, segment_ids, font_size):
    """Writes the segment ids below a panel."""
    numbers = panel.secondary_xaxis("bottom")
    places = [place + 0.5 for place in range(len(segment_ids))]
    numbers.set_xticks(places, segment_ids.tolist(), fontsize=font_size)
    numbers.tick_params(length=0)
    numbers.spines[:].set_visible(False)
