"""Draws the way of the data through the programs and rooms, as data_flow.svg beside this file.

python docs/pictures/draw_flow.py
"""

import pathlib

from svg import arrow, box, document, text

PICTURE = pathlib.Path(__file__).resolve().parent / "data_flow.svg"

TEXT, TENSORS, MODEL, RUN = "#e8eef7", "#e9f3e6", "#f8eede", "#f3e6ee"
# Rows from top to bottom: programs; boxes of (title, what it holds, rooms, colour); whether an
# arrow leads from each box to the next.
ROWS = (
    (
        "tools/build_vocab.py, tools/create_pretraining_data.py",
        (
            ("corpus", "one sentence a line", ("data",), TEXT),
            ("tokens and words", "WordPiece, jieba", ("text",), TEXT),
            ("examples", "pairs, masks, TFRecords", ("corpus",), TENSORS),
            ("batches", "shuffled, [B, T]", ("data",), TENSORS),
        ),
        True,
    ),
    (
        "run_pretraining.py",
        (
            ("encoder and heads", "position encodings", ("modeling",), MODEL),
            ("objective", "masks, losses", ("objectives",), MODEL),
            ("optimizer and loop", "LAMB, AdamW, Muon", ("optimization", "training"), RUN),
            ("model folder", "weights, task.json", ("checkpoints",), RUN),
        ),
        True,
    ),
    (
        "run_classifier.py, run_ner.py, run_mrc.py, run_multiple_choice.py, run_seq2seq.py",
        (
            ("labelled data", "TSV, JSON, BIO, SQuAD", ("data", "tasks"), TEXT),
            ("fine-tuning", "the same loop", ("tasks", "training"), RUN),
            ("predictions", "and their measures", ("tasks", "generation"), TENSORS),
            ("model folder", "best checkpoint, labels", ("checkpoints",), RUN),
        ),
        True,
    ),
    (
        "tools/",
        (
            ("use", "fill, generate, score, vectors", ("generation", "estimators"), TENSORS),
            ("export", "SavedModel of raw text", ("serving",), MODEL),
            ("convert", "TF1, Hugging Face", ("checkpoints",), RUN),
            ("look", "demo, pictures, ablations", ("serving", "pictures", "ablation"), TEXT),
        ),
        False,
    ),
)
# Below all others.
GROUND = ("util", "config_forms", "config", "hub", "resources", "inputs", "cli", "programs")

WIDTH, HEIGHT, STEP, MARGIN, ROW = 236, 92, 274, 24, 176


def drawn_box(x, y, title, content, rooms, colour):
    """Yields the elements of a box."""
    middle = x + WIDTH / 2
    yield box(x, y, WIDTH, HEIGHT, colour)
    yield text(middle, y + 28, title, 17, "#111", more=' font-weight="bold"')
    yield text(middle, y + 51, content, 14)
    yield text(middle, y + 75, ", ".join(rooms), 13, "#666")


def row(top, programs, boxes, is_chain):
    """Yields the elements of a row; `top` is the y of its title."""
    right = MARGIN + STEP * (len(boxes) - 1) + WIDTH
    yield text(MARGIN, top, programs, 15, anchor="start")
    yield f'<path d="M{MARGIN} {top + 10}H{right}" stroke="#888" stroke-width="2"/>'
    for number, content in enumerate(boxes):
        x = MARGIN + STEP * number
        yield from drawn_box(x, top + 24, *content)
        if is_chain and number:
            yield arrow(f"M{x - STEP + WIDTH + 3} {top + 24 + HEIGHT / 2}H{x - 4}")


def picture():
    """Returns the picture as SVG."""
    width = 2 * MARGIN + STEP * 3 + WIDTH
    height = 44 + ROW * len(ROWS) + 20
    parts = []
    last = MARGIN + STEP * 3 + WIDTH / 2
    for number, content in enumerate(ROWS):
        top = 44 + ROW * number
        parts += row(top, *content)
        if number:
            # From the last box of the row above: batches to the model, a model to fine-tuning, and
            # to all of the tools.
            target = (MARGIN + WIDTH - 30, MARGIN + STEP + WIDTH - 24, last)[number - 1]
            end = top + 20 if number < 3 else top - 4
            start = top - ROW + 24 + HEIGHT + 3
            parts.append(arrow(f"M{last} {start}V{start + 18}H{target}V{end}"))
    ground = f"Below all rooms: {', '.join(GROUND)}. Each name is a folder or module of nezha_tf/."
    parts.append(text(MARGIN, height - 12, ground, 13, "#666", anchor="start"))
    label = "The flow of data through programs and rooms"
    return document(width, height, label, parts)


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
