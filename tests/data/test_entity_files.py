"""Files of sentences with entities: their formats, and one line for each fault."""

import gzip
import json

import pytest

from nezha_tf.data.bad_rows import BadRows
from nezha_tf.data.entity_files import Sentence, read_entity_file
from nezha_tf.errors import UserError

JSON = {"text": "李四在北京", "entities": [{"start": 3, "end": 5, "label": "LOC"}]}


def read(tmp_path, name, text, *arguments, **options):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8", newline="")
    return read_entity_file(str(path), *arguments, **options)


def test_tags_by_space_or_tab_in_either_scheme(tmp_path):
    text = "\n\n李 B-PER\n四\tI-PER\r\n  O\n\n\u3000 O\n北 B-LOC\n京 I-LOC \n沪 B-LOC\n"
    found = read(tmp_path, "a.txt", text)
    assert found.sentences == [
        Sentence("李四 ", [(0, 2, "PER")]),
        Sentence("\u3000北京沪", [(1, 3, "LOC"), (3, 4, "LOC")]),
    ]
    assert (found.scheme, found.mended) == ("BIO", 0)
    found = read(tmp_path, "a.bioes", "李 S-PER\n北 B-LOC\n京 E-LOC\n在 O\n")
    assert found.sentences == [Sentence("李北京在", [(0, 1, "PER"), (1, 3, "LOC")])]
    assert found.scheme == "BIOES"
    found = read(tmp_path, "a.bios", "李 S-PER\n北 B-LOC\n京 I-LOC\n在 O\n")
    assert found.sentences == [Sentence("李北京在", [(0, 1, "PER"), (1, 3, "LOC")])]
    assert (found.scheme, found.mended) == ("BIOS", 0)


def test_an_entity_without_its_beginning_is_mended_and_counted(tmp_path):
    found = read(tmp_path, "a.txt", "李 I-PER\n四 I-PER\n北 I-LOC\n在 O\n京 B-LOC\n")
    assert found.sentences[0].entities == [(0, 2, "PER"), (2, 3, "LOC"), (4, 5, "LOC")]
    assert found.mended == 2


def test_json_lines(tmp_path):
    other = {"text": " a ", "id": 7, "entities": []}
    text = json.dumps(JSON, ensure_ascii=False) + "\n" + json.dumps(other) + "\n"
    found = read(tmp_path, "a.jsonl", text)
    assert found.sentences == [Sentence(JSON["text"], [(3, 5, "LOC")]), Sentence(" a ", [])]
    assert found.scheme is None
    (tmp_path / "b.json.gz").write_bytes(gzip.compress(text.encode()))
    assert read_entity_file(str(tmp_path / "b.json.gz")).sentences == found.sentences


def test_what_is_predicted_may_be_raw(tmp_path):
    raw = "李 四在北京。\n\n A O\n我 不\n"
    found = read(tmp_path, "raw.txt", raw, is_labelled=False)
    assert found.sentences == [Sentence(t, None) for t in ("李 四在北京。", " A O", "我 不")]
    found = read(tmp_path, "a.jsonl", '{"text": "李"}\n', is_labelled=False)
    assert found.sentences == [Sentence("李", None)]
    tagged = "李 B-PER\n四 I-PER\n"
    assert read(tmp_path, "a.txt", tagged, is_labelled=False).sentences[0].entities
    # A tagged file with a fault is not read as raw text.
    with pytest.raises(UserError, match="line 3: '北京' is more than one character"):
        read(tmp_path, "a.txt", tagged + "北京 B-LOC\n", is_labelled=False)


FAULTS = (
    ("a.txt", "在 O\n", "北\n", "'北' has no tag"),
    ("a.txt", "在 O\n", "北京 B-LOC\n", "'北京' is more than one character"),
    ("a.txt", "在 O\n", "北 LOC\n", "'LOC' is not a tag"),
    ("a.txt", "在 O\n", "北 NN B-LOC\n", "'NN B-LOC' is not a tag"),
    ("a.txt", "在 O\n", "北 B-\n", "'B-' is not a tag"),
    (
        "a.txt",
        "在 O\n",
        "北 B-GPE\n",
        "the label 'GPE' is not one of the model's labels (LOC, PER)",
    ),
    ("a.txt", "在 O\n", " O\n", "has no tag"),
    ("a.jsonl", "", "{", "not JSON"),
    ("a.jsonl", "", "[]", "not a JSON object with a text"),
    ("a.jsonl", "", '{"text": 3, "entities": []}', "not a JSON object with a text"),
    ("a.jsonl", "", '{"text": " ", "entities": []}', "the text is empty"),
    ("a.jsonl", "", '{"text": "\\ud800", "entities": []}', "half a character"),
    ("a.jsonl", "", '{"text": "北京"}', '"entities" is missing'),
    ("a.jsonl", "", '{"text": "北京", "entities": {"start": 0}}', '"entities" is missing'),
    ("a.jsonl", "", '{"text": "北京", "entities": [[0, 1]]}', "not [0, 1"),
)
SPANS = (
    ([0, 3, "LOC"], "an entity from 0 to 3 (the first character after it) does not fit a text"),
    ([1, 1, "LOC"], "from 1 to 1"),
    ([-1, 1, "LOC"], "from -1 to 1"),
    ([True, 1, "LOC"], "from true to 1"),
    (["0", 1, "LOC"], 'from "0" to 1'),
    ([0, 1, ""], 'label is ""'),
    ([0, 1, "A B"], "must be a word"),
    ([0, 1, "GPE"], "the label 'GPE' is not one of the model's labels (LOC, PER)"),
    ([1, 2, "LOC"], "the entities (0, 2, 'PER') and (1, 2, 'LOC') overlap"),
)


def faults():
    yield from FAULTS
    for span, message in SPANS:
        names = ("start", "end", "label")
        entities = [dict(zip(names, span, strict=True))]
        if "overlap" in message:
            entities.append(dict(zip(names, (0, 2, "PER"), strict=True)))
        yield "a.jsonl", "", json.dumps({"text": "北京", "entities": entities}), message


def test_a_fault_is_one_line_or_counted(tmp_path):
    good = {".txt": "李 B-PER\n四 I-PER\n\n", ".jsonl": json.dumps(JSON) + "\n"}
    for name, before, bad, message in faults():
        sound = good[name[1:]]
        text = sound + before + bad + "\n\n"[: 2 - name.count("json")] + sound
        line = (sound + before).count("\n") + 1
        with pytest.raises(UserError) as error:
            read(tmp_path, name, text, labels={"LOC", "PER"})
        assert f"{name}, line {line}: " in str(error.value) and message in str(error.value), bad
        assert "\n" not in str(error.value)
        bad_rows = BadRows(skip=True)
        found = read(tmp_path, name, text, labels={"LOC", "PER"}, bad_rows=bad_rows)
        assert len(found.sentences) == 2, bad
        assert (bad_rows.count, bad_rows.first) == (1, str(error.value)), bad
        with pytest.raises(UserError, match="no valid sentence; bad rows skipped: 1"):
            alone = BadRows(skip=True)
            read(tmp_path, name, before + bad, labels={"LOC", "PER"}, bad_rows=alone)
    with pytest.raises(UserError, match="has no valid sentence"):
        read(tmp_path, "a.txt", "\n \n")
