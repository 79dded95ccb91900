"""Panels with a row and a column for each piece of a sentence."""

from nezha_tf.errors import UserError

_PIECE_INCHES = 0.2
_LEAST_PANEL_INCHES = 2.4
_MARGIN_INCHES = 0.8
_COLORBAR_INCHES = 0.9
# Of the picture's shorter way through all panels, in pieces; larger ones are no picture any more.
_MOST_ACROSS = 400


class Grid:
    """A figure of square panels, whose cells are pairs of pieces.

    Attributes:
      figure: of matplotlib.
      panels: list of its axes, row by row.
      font_size: of the pieces' labels, in points.
    """

    def __init__(self, rows, columns, num_pieces, has_colorbar=False):
        """Args:
        rows, columns: of panels.
        num_pieces: T, of the longest sentence.
        has_colorbar: whether there is to be room for one at the right.

        Raises:
          UserError: there is too much for one picture.
        """
        if max(rows, columns) * num_pieces > _MOST_ACROSS:
            raise UserError(
                f"{rows} by {columns} maps of {num_pieces} pieces are too much for one picture; "
                "choose some with --layers and --heads, or give it a shorter text"
            )
        # Not through pyplot, whose figures and backend belong to the whole process.
        from matplotlib.figure import Figure

        cell = max(_PIECE_INCHES, _LEAST_PANEL_INCHES / num_pieces)
        side = cell * num_pieces + _MARGIN_INCHES
        width = columns * side + has_colorbar * _COLORBAR_INCHES
        self.figure = Figure(figsize=(width, rows * side), layout="constrained")
        self.panels = list(self.figure.subplots(rows, columns, squeeze=False).flat)
        self.font_size = min(11, 0.75 * 72 * cell)

    def label(self, panel, labels, style):
        """Names the rows at the left and the columns at the top; the first row is the highest.

        Args:
          panel: one of the panels.
          labels: T strings.
          style: text properties.
        """
        style = {**style, "fontsize": self.font_size}
        places = [place + 0.5 for place in range(len(labels))]
        # Before the labels are set: those at the top are other objects than those at the bottom.
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
