"""Property tests of files with entities: round trips, and at most one line for any bytes."""

import json

import laws
from annotation_forms import FORMS
from hypothesis import given
from hypothesis import strategies as st
from mutated_json import mutations

from nezha_tf.data.entity_files import Sentence, read_entity_file
from nezha_tf.data.entity_tags import SCHEMES, Entity, tags_of
from nezha_tf.data.lines import BadRows
from nezha_tf.tasks.tagging.data import FoundEntity
from nezha_tf.util.errors import UserError

# No lone surrogate, which is not text, and no line end.
CHARACTERS = st.sampled_from("李四在 \t\u3000\u2028\x85\x1c#\ufeff\0") | st.characters(
    exclude_categories=["Cs"], exclude_characters="\r\n"
)
LABELS = st.sampled_from(["PER", "LOC", "B-C", "地名"])


@st.composite
def sentences(draw):
    """Draws a text that is not blank, with entities that do not overlap."""
    text = "".join(draw(st.lists(CHARACTERS, min_size=1, max_size=12)))
    text += "" if text.strip() else "中"
    places = sorted(draw(st.sets(st.integers(0, len(text)), max_size=6)))
    pairs = zip(places[::2], places[1::2], strict=False)
    return Sentence(text, [Entity(start, end, draw(LABELS)) for start, end in pairs])


@laws.examples(150)
@given(
    st.lists(sentences(), min_size=1, max_size=4),
    st.sampled_from(sorted(SCHEMES)),
    st.sampled_from(" \t"),
    st.sampled_from(("\n", "\r\n")),
)
def test_tagged_characters_come_back(tmp_path, written, scheme, between, end):
    blocks = []
    for text, entities in written:
        tags = tags_of(entities, len(text), scheme)
        blocks.append("".join(f"{c}{between}{t}{end}" for c, t in zip(text, tags, strict=True)))
    path = tmp_path / "sentences.txt"
    # A byte order mark at the start of a file does not belong to a text.
    path.write_bytes(("\ufeff" + end.join(blocks)).encode())
    found = read_entity_file(str(path))
    assert found.sentences == written
    # Without an M, BMEO looks like BIOES.
    assert found.mended == 0 or (scheme, found.scheme) == ("BMEO", "BIOES")
    if any(entities for _, entities in written):
        assert found.scheme == smallest_scheme(written, scheme)


def smallest_scheme(written, scheme):
    tags = [tag for text, entities in written for tag in tags_of(entities, len(text), scheme)]
    if any(tag[0] == "M" for tag in tags):
        return "BMES" if any(tag[0] == "S" for tag in tags) else "BMEO"
    if any(tag[0] == "E" for tag in tags):
        return "BIOES"
    return "BIOS" if any(tag[0] == "S" for tag in tags) else "BIO"


@laws.examples(150)
@given(st.lists(sentences(), min_size=1, max_size=4), st.booleans(), st.randoms())
def test_json_lines_come_back(tmp_path, written, is_ascii, rng):
    lines = []
    for text, entities in written:
        objects = [entity._asdict() for entity in entities]
        rng.shuffle(objects)
        lines.append(json.dumps({"text": text, "entities": objects}, ensure_ascii=is_ascii))
    path = tmp_path / "sentences.jsonl"
    path.write_text("\n".join(lines), encoding="utf-8", newline="")
    assert read_entity_file(str(path)).sentences == written


@laws.examples(100)
@given(st.lists(st.lists(CHARACTERS, max_size=9).map("".join), min_size=1, max_size=4))
def test_raw_lines_come_back(tmp_path, lines):
    """Except blank lines; two characters at the start of a line do not make it a tagged line."""
    written = [f"{line[:1]}中中{line[1:]}" if line else line for line in lines]
    path = tmp_path / "a.txt"
    path.write_bytes(("\ufeff" + "\r\n".join([*written, "\ufeff末尾"])).encode())
    sentences = read_entity_file(str(path), is_labelled=False).sentences
    assert sentences == [Sentence(line, None) for line in [*written, "\ufeff末尾"] if line]


LINES = st.sampled_from(
    [b"\n", "李 B-PER\n".encode(), b"a\tO\n", b"a b\n", b"\xff\n", b'{"text": "ab", "entities": ']
) | st.binary(max_size=12)


@laws.examples(300)
@given(
    st.lists(LINES, max_size=6).map(b"".join),
    st.sampled_from(("a.txt", "a.jsonl", "a.txt.gz", "a.bioes")),
    st.booleans(),
    st.booleans(),
)
def test_any_bytes_are_sentences_or_an_error(tmp_path, content, name, is_labelled, skip):
    path = tmp_path / name
    path.write_bytes(content)
    bad_rows = BadRows(skip)
    try:
        found = read_entity_file(str(path), is_labelled, bad_rows=bad_rows)
    except UserError as error:
        assert name in str(error) and len(str(error).splitlines()) == 1
        return
    assert found.sentences and (skip or not bad_rows.count)
    for text, entities in found.sentences:
        assert text.strip() or entities is not None
        places = [place for e in entities or () for place in range(e.start, e.end)]
        assert places == sorted({*places}) and set(places) <= {*range(len(text))}


@laws.examples(300)
@given(mutations(list(FORMS.values()), 0, 3, "PER", []), st.booleans(), st.booleans())
def test_any_change_of_an_export_is_sentences_or_an_error(tmp_path, values, is_labelled, skip):
    path = tmp_path / "a.json"
    path.write_text(json.dumps(values))
    bad_rows = BadRows(skip)
    try:
        found = read_entity_file(str(path), is_labelled, bad_rows=bad_rows)
    except UserError as error:
        assert str(path) in str(error) and len(str(error).splitlines()) == 1
        str(error).encode()
        return
    assert skip or not bad_rows.count
    for text, entities in found.sentences:
        assert text.strip() and (entities is not None or not is_labelled)
        places = [place for e in entities or () for place in range(e.start, e.end)]
        assert places == sorted({*places}) and set(places) <= {*range(len(text))}
    if found.export:
        made = [
            [FoundEntity(*e, 0.5) for e in s.entities or () if s.text[e.start : e.end].strip()]
            for s in found.sentences
        ]
        found.export(made).encode()
