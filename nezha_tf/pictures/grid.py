"""A figure of square panels that have a row and a column for each token of a sentence."""

from nezha_tf.util.errors import UserError

_TOKEN_INCHES = 0.2
_LEAST_PANEL_INCHES = 2.4
_MARGIN_INCHES = 0.8
_COLORBAR_INCHES = 0.9
# Largest number of tokens along a side of the picture, over all panels.
_MOST_ACROSS = 400


class Grid:
    """A figure of square panels; each cell of a panel is a pair of tokens.

    Attributes:
      figure: the matplotlib figure.
      panels: list of its axes, row by row.
      font_size: font size of the tokens, in points.
    """

    def __init__(self, rows, columns, num_tokens, has_colorbar=False):
        """Args:
        rows, columns: numbers of rows and columns of panels.
        num_tokens: T, number of tokens of the longest sentence.
        has_colorbar: whether to leave room for a colour bar at the right.

        Raises:
          UserError: the picture would be too large.
        """
        if max(rows, columns) * num_tokens > _MOST_ACROSS:
            raise UserError(
                f"{rows} by {columns} panels of {num_tokens} tokens are too much for one picture; "
                "choose some with --layers and --heads, or take a shorter text"
            )
        # Without pyplot, because its state belongs to the whole process.
        from matplotlib.figure import Figure

        cell = max(_TOKEN_INCHES, _LEAST_PANEL_INCHES / num_tokens)
        side = cell * num_tokens + _MARGIN_INCHES
        width = columns * side + has_colorbar * _COLORBAR_INCHES
        self.figure = Figure(figsize=(width, rows * side), layout="constrained")
        self.panels = list(self.figure.subplots(rows, columns, squeeze=False).flat)
        self.font_size = min(11, 0.75 * 72 * cell)

    def label(self, panel, labels, style):
        """Writes labels at the left of the rows and above the columns; the first row is at the top.

        Args:
          panel: one of `panels`.
          labels: list of T strings.
          style: dict of matplotlib's text properties.
        """
        style = {**style, "fontsize": self.font_size}
        places = [place + 0.5 for place in range(len(labels))]
        # This comes before the labels, because matplotlib has other labels at the top than below.
        panel.tick_params(length=0, bottom=False, top=True, labelbottom=False, labeltop=True)
        panel.set_xticks(places, labels, **style)
        panel.set_yticks(places, labels, **style)
        for label, text in zip(labels, panel.get_xticklabels(), strict=True):
            text.set_rotation(90 if len(label) > 1 else 0)
        panel.invert_yaxis()
        panel.set_aspect("equal")
        panel.spines[:].set_visible(False)

    def title(self, panel, text):
        """Writes a title above a panel."""
        panel.set_title(text, fontsize="medium", fontweight="bold")
