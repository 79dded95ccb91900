"""Draws the table of relative positions, and how similar its rows are."""

import numpy as np

from nezha_tf.modeling.positions.relative import sinusoid_table
from nezha_tf.pictures.fonts import caption
from nezha_tf.util.errors import UserError


def tables_of(encoder):
    """Returns the tables of a `NezhaEncoder`: dict of title to [2m+1, H], distances -m to m.

    Raises:
      UserError: its positions have no such table.
    """
    tables = encoder.positions.distance_tables()
    if not tables:
        raise UserError(
            f"the model has {encoder.config.position_encoding} positions (position_encoding), "
            "which have no table of distances to draw; take a NEZHA model"
        )
    return tables


def functional_tables(max_relative_position=64, head_size=64):
    """Returns what `tables_of` returns, for NEZHA; the defaults fit its published models."""
    return {"": sinusoid_table(max_relative_position, head_size)}


def draw(tables):
    """Returns a figure of `tables_of`, with the cosine of each row with that of distance 0."""
    # Without pyplot, because its state belongs to the whole process.
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 5.4 * len(tables)), layout="constrained")
    panels = figure.subplots(len(tables), 2, squeeze=False, sharey=True, width_ratios=[2.2, 1])
    for (left, right), (name, table) in zip(panels, tables.items(), strict=True):
        _draw_table(figure, left, table, f"relative positions{', ' * bool(name)}{name}")
        _draw_cosines(right, table)
    return figure


def _draw_table(figure, panel, table, title):
    bound = len(table) // 2
    reach = np.abs(table).max()
    image = panel.imshow(
        table,
        cmap="RdBu_r",
        vmin=-reach,
        vmax=reach,
        aspect="auto",
        interpolation="nearest",
        extent=(-0.5, table.shape[1] - 0.5, bound + 0.5, -bound - 0.5),
    )
    for write, message, size in (
        (panel.set_title, title, {"fontsize": "medium"}),
        (panel.set_xlabel, "dimension of the head", {}),
        (panel.set_ylabel, "position of the key − position of the query", {}),
    ):
        text, style = caption(message)
        write(text, **size, **style)
    panel.set_yticks(np.unique(np.linspace(-bound, bound, 9).round().astype(int)))
    figure.colorbar(image, ax=panel, location="bottom", shrink=0.6, aspect=40)


def _draw_cosines(panel, table):
    bound = len(table) // 2
    norms = np.linalg.norm(table, axis=1)
    cosines = table @ table[bound] / np.maximum(norms * norms[bound], 1e-12)
    panel.plot(cosines, np.arange(-bound, bound + 1))
    text, style = caption("cosine with distance 0")
    panel.set_title(text, fontsize="medium", **style)
    panel.grid(alpha=0.3)
