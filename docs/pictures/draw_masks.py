"""Draws who sees whom under UniLM's four objectives, as unilm_masks.svg beside this file.

python docs/pictures/draw_masks.py
"""

import pathlib

import numpy as np
from svg import document, text

from nezha_tf import attention_mask
from nezha_tf.config import SEGMENT_IDS

PICTURE = pathlib.Path(__file__).resolve().parent / "unilm_masks.svg"

PAIR = ("[CLS]", "a", "b", "[SEP]", "c", "d", "[SEP]")
ALONE = ("[CLS]", "a", "b", "c", "d", "[SEP]")
# Name to (tokens, where the second segment or the target begins).
PANELS = {
    "bidirectional": (PAIR, 4),
    "seq2seq": (PAIR, 4),
    "left_to_right": (ALONE, len(ALONE)),
    "right_to_left": (ALONE, len(ALONE)),
}
CELL, TOP, MARGIN, STEP = 24, 80, 66, 236
SEEN, HIDDEN = "#5b84b1", "#f2f2f2"


def panel(name, tokens, second):
    """Returns (mask, bool [T, T]: whether the row sees the column; segment ids, list of T)."""
    is_second = np.arange(len(tokens)) >= second
    first_id, second_id = SEGMENT_IDS[name]
    segments = np.where(is_second, second_id, first_id)[None].astype("int32")
    arguments = [np.ones_like(segments)]
    if name == "seq2seq":
        arguments.append(segments)
    mask = np.array(getattr(attention_mask, name)(*arguments))
    shape = (len(tokens), len(tokens))
    return np.broadcast_to(mask.reshape(-1, len(tokens)), shape), segments[0].tolist()


def drawn_panel(left, name, tokens, second):
    """Yields the elements of one panel."""
    mask, segments = panel(name, tokens, second)
    size = CELL * len(tokens)
    yield text(left + size / 2, 24, name, 16, "#111", more=' font-weight="bold"')
    for number, token in enumerate(tokens):
        x, y = left + CELL * number, TOP + CELL * number
        turned = f' transform="rotate(-60 {x + 12} {TOP - 8})"' if len(token) > 1 else ""
        anchor = "start" if turned else "middle"
        yield text(x + 12, TOP - 8, token, 11 if turned else 15, anchor=anchor, more=turned)
        yield text(left - 6, y + 17, token, 11 if turned else 15, anchor="end")
        yield text(x + 12, TOP + size + 18, segments[number], 13, "#666")
        for column in range(len(tokens)):
            fill = SEEN if mask[number, column] else HIDDEN
            place = f'x="{left + CELL * column}" y="{y}" width="{CELL}" height="{CELL}"'
            yield f'<rect {place} fill="{fill}" stroke="#fff"/>'


def picture():
    """Returns the picture as SVG."""
    width, height = MARGIN + STEP * len(PANELS), TOP + CELL * len(PAIR) + 56
    parts = []
    for number, (name, content) in enumerate(PANELS.items()):
        parts += drawn_panel(MARGIN + STEP * number, name, *content)
    legend = "A row is a token that looks; blue is what it sees. Below each column: its segment id."
    parts.append(text(20, height - 10, legend, 14, "#666", "start"))
    label = (
        "The attention masks of four objectives: rows are tokens that look, columns what they see"
    )
    return document(width, height, label, parts)


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
