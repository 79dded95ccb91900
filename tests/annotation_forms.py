"""A small data set of entities in the forms of annotation programs and data sets, by hand."""

from nezha_tf.data.entity_files import Sentence

TEXTS = ("李白在长安。", "今天很冷。", "😀王维住在蓝田")
# By hand: places of characters.
RIGHT = [
    Sentence(TEXTS[0], [(0, 2, "PER"), (3, 5, "LOC")]),
    Sentence(TEXTS[1], []),
    Sentence(TEXTS[2], [(1, 3, "PER"), (5, 7, "LOC")]),
]


def marks(kind, *spans):
    """Returns Label Studio's values of (start, end, words, label)."""
    return [dict(zip(("start", "end", "text", kind), (*s[:3], [s[3]]), strict=True)) for s in spans]


def task(text, *spans, **changes):
    names = {"from_name": "ner", "to_name": "t"}
    results = [{**names, "type": "labels", "value": mark} for mark in marks("labels", *spans)]
    return {"id": 7, "data": {"body": text}, "annotations": [{"result": results}], **changes}


ALL = (
    ((0, 2, "李白", "PER"), (3, 5, "长安", "LOC")),
    (),
    ((1, 3, "王维", "PER"), (5, 7, "蓝田", "LOC")),
)
# JavaScript counts the emoji as two, UTF-8 as four; a Chinese character has three bytes.
UNITS = (*ALL[:2], ((2, 4, "王维", "PER"), (6, 8, "蓝田", "LOC")))
BYTES = (
    ((0, 6, "李白", "PER"), (9, 15, "长安", "LOC")),
    (),
    ((4, 10, "王维", "PER"), (16, 22, "蓝田", "LOC")),
)
LISTS = [[[start, end, label] for start, end, _, label in spans] for spans in ALL]
CLUENER = (
    {"PER": {"李白": [[0, 1]]}, "LOC": {"长安": [[3, 4]]}},
    {},
    {"PER": {"王维": [[1, 2]]}, "LOC": {"蓝田": [[5, 6]]}},
)
OFFSETS = [
    [{"id": 1, "start_offset": s, "end_offset": e, "label": label} for s, e, label in spans]
    for spans in LISTS
]
TAGS = (
    ["B-PER", "I-PER", "O", "B-LOC", "I-LOC", "O"],
    ["O"] * 5,
    ["O", "B-PER", "I-PER", "O", "O", "B-LOC", "I-LOC"],
)
CUT = (["李白", "在", "长安", "。"], ["今天", "很", "冷", "。"], ["😀", "王维", "住在", "蓝田"])
CUT_TAGS = (["B-PER", "O", "B-LOC", "O"], ["O"] * 4, ["O", "B-PER", "O", "B-LOC"])
INDICES = [
    [{"start_idx": s, "end_idx": e - 1, "type": x, "entity": w} for s, e, w, x in spans]
    for spans in ALL
]


def rows(name, values):
    return [{"text": text, name: value} for text, value in zip(TEXTS, values, strict=True)]


def pairs(first, second, firsts, seconds):
    return [{first: a, second: b} for a, b in zip(firsts, seconds, strict=True)]


FORMS = {
    "doccano, old": rows("label", LISTS),
    "doccano, labels": rows("labels", LISTS),
    "doccano, entities": rows("entities", LISTS),
    "doccano, new": [{**row, "relations": []} for row in rows("entities", OFFSETS)],
    "Label Studio": [task(t, *spans) for t, spans in zip(TEXTS, ALL, strict=True)],
    "Label Studio, UTF-16": [task(t, *spans) for t, spans in zip(TEXTS, UNITS, strict=True)],
    "Label Studio, bytes": [task(t, *spans) for t, spans in zip(TEXTS, BYTES, strict=True)],
    "Label Studio, old": [
        {"data": {"text": t}, "completions": task(t, *spans)["annotations"]}
        for t, spans in zip(TEXTS, ALL, strict=True)
    ],
    "Label Studio, stored": [
        {**task(t, *spans)["annotations"][0], "task": {"id": 1, "data": {"text": t}}}
        for t, spans in zip(TEXTS, ALL, strict=True)
    ],
    # A task without an entity has no key for them.
    "Label Studio, JSON-MIN": [
        {"body": t, "annotation_id": 4, **({"ner": marks("labels", *spans)} if spans else {})}
        for t, spans in zip(TEXTS, ALL, strict=True)
    ],
    "CLUENER": rows("label", CLUENER),
    "CMeEE": rows("entities", INDICES),
    "spaCy": [[t, {"entities": spans}] for t, spans in zip(TEXTS, LISTS, strict=True)],
    "Hugging Face": pairs("tokens", "ner_tags", map(list, TEXTS), TAGS),
    "words with tags": pairs("words", "labels", CUT, CUT_TAGS),
    "characters with tags": pairs("text", "labels", TEXTS, TAGS),
    "its own": rows(
        "entities",
        [[dict(zip(("start", "end", "label"), s, strict=True)) for s in x] for x in LISTS],
    ),
}
