"""Exports of annotation programs: the same small data set in every form, and its traps."""

import gzip
import json

import pytest
from annotation_forms import ALL, FORMS, RIGHT, TEXTS, marks, task

from nezha_tf.data.entity_files import Sentence, read_entity_file
from nezha_tf.data.lines import BadRows
from nezha_tf.tasks.tagging.data import FoundEntity
from nezha_tf.util.errors import UserError


def read(folder, content, name="a.json", **options):
    path = folder / name
    path.write_text(content, encoding="utf-8", newline="")
    return read_entity_file(str(path), **options)


def as_array(values):
    return json.dumps(values, ensure_ascii=False, indent=2)


def as_lines(values, **options):
    return "".join(json.dumps(value, **options) + "\n" for value in values)


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_sentences(tmp_path, form):
    values = FORMS[form]
    assert read(tmp_path, as_array(values)).sentences == RIGHT
    bad_rows = BadRows()
    lines = "\n" + as_lines(values).replace("\n", "\n\n")
    found = read(tmp_path, lines, "a.jsonl", bad_rows=bad_rows)
    assert found.sentences == RIGHT
    assert bad_rows.num_blank == 1 + len(values)
    # Of the first text, characters and UTF-16 units are the same.
    otherwise = {"Label Studio, UTF-16": 2, "Label Studio, bytes": 4, "CMeEE": 4}
    corrected = sum(count for what, count in found.notes.items() if "; read so" in what)
    assert corrected == otherwise.get(form, 0)
    (tmp_path / "a.json.gz").write_bytes(gzip.compress(as_array(values).encode()))
    assert read_entity_file(str(tmp_path / "a.json.gz")).sentences == RIGHT
    assert found.scheme == ("BIO" if "tags" in form or form == "Hugging Face" else None)


@pytest.mark.parametrize("form", FORMS)
def test_what_was_found_comes_back_in_the_same_form(tmp_path, form):
    found = read(tmp_path, as_array(FORMS[form]))
    if form in ("its own", "CMeEE"):
        # predictions.jsonl is in its own form.
        assert found.export is None
        return
    entities = [[FoundEntity(*e, 0.75) for e in sentence.entities] for sentence in RIGHT]
    text = found.export(entities)
    if form.startswith("Label Studio") and "MIN" not in form:
        # A prediction is no annotation until somebody accepts it.
        values = json.loads(text)
        for value in values:
            (prediction,) = value.pop("predictions")
            assert "annotations" not in value and "completions" not in value
            assert all(one["score"] == 0.75 for one in prediction["result"])
            value["annotations"] = [prediction]
        text = as_array(values)
    assert read(tmp_path, text).sentences == RIGHT
    if form in ("doccano, old", "CLUENER", "spaCy", "Hugging Face", "characters with tags"):
        assert json.loads(text) == FORMS[form]
    if form == "Label Studio, UTF-16":
        assert [m["value"]["start"] for m in values[2]["annotations"][0]["result"]] == [2, 6]
    lines = read(tmp_path, as_lines(FORMS[form]), "a.jsonl").export(entities)
    assert len(lines.splitlines()) == 3


def test_what_is_not_read_is_counted(tmp_path):
    others = [
        {"type": "choices", "value": {"choices": ["好"]}},
        {"type": "relation", "from_id": "a", "to_id": "b"},
        {"type": "labels", "value": {"start": 0, "end": 1, "labels": []}},
    ]
    first = task(TEXTS[0], *ALL[0])
    first["annotations"][0]["result"] += others
    cancelled = {"was_cancelled": True, "result": [{"type": "labels", "value": {"start": "x"}}]}
    first["annotations"].append(cancelled)
    values = [first, task(TEXTS[1], annotations=[]), task(TEXTS[1], annotations=[cancelled])]
    found = read(tmp_path, as_array(values))
    assert found.sentences == RIGHT[:1]
    assert found.notes == {
        "results of the kind 'choices', passed over": 1,
        "results of the kind 'relation', passed over": 1,
        "entities without a label, left out": 1,
        "cancelled annotations, passed over": 2,
        "tasks without an annotation, passed over": 2,
    }
    found = read(tmp_path, as_array(values), is_labelled=False)
    assert [sentence.entities for sentence in found.sentences] == [RIGHT[0].entities, None, None]
    with pytest.raises(UserError, match=r"no valid sentence; tasks without an annotation.*: 1"):
        read(tmp_path, as_array(values[1:2]))


def test_several_annotators(tmp_path):
    one, other = (task(TEXTS[0], span)["annotations"][0] for span in ALL[0])
    agreed = [task(TEXTS[0], annotations=[one, one])]
    assert read(tmp_path, as_array(agreed)).sentences[0].entities == [(0, 2, "PER")]
    truth = [task(TEXTS[0], annotations=[one, {**other, "ground_truth": True}])]
    assert read(tmp_path, as_array(truth)).sentences[0].entities == [(3, 5, "LOC")]
    with pytest.raises(UserError, match=r"a.json, item 1: the task has 2 annotations with diff"):
        read(tmp_path, as_array([task(TEXTS[0], annotations=[one, other])]))


def test_places_are_made_exact_and_told(tmp_path):
    """White space at the edges, doubles, line ends, and places that cannot be checked."""
    text = " 李白\r\n在 \u3000长安\n😀蓝田"
    #       0 12 3 4 5 6  7   89 10 11 12.
    spans = [[0, 3, "PER"], [0, 3, "PER"], [7, 11, "LOC"], [12, 14, "LOC"], [6, 7, "LOC"]]
    found = read(tmp_path, as_lines([{"text": text, "label": spans}]))
    assert found.sentences[0].entities == [(1, 3, "PER"), (8, 10, "LOC"), (12, 14, "LOC")]
    assert sorted(found.notes.values()) == [1, 1, 1, 3]
    (unsure,) = [what for what in found.notes if "emoji" in what]
    assert found.notes[unsure] == 1
    # Python's text mode makes CR LF one character.
    label = marks("labels", (4, 5, "在", "X"), (7, 9, "长安", "LOC"))
    found = read(tmp_path, as_array([{"text": text, "label": label}]))
    assert found.sentences[0].entities == [(5, 6, "X"), (8, 10, "LOC")]
    # Label Studio writes a line end inside an entity as a backslash and an n.
    found = read(tmp_path, as_array([task("甲\n乙", (0, 3, "甲\\n乙", "X"))]))
    assert found.sentences[0].entities == [(0, 3, "X")]


def test_what_is_beside_the_own_form_does_not_count(tmp_path):
    entity = {"start": 0, "end": 2, "label": "PER"}
    for others in (
        {"label": ["诗"]},
        {"data": {"text": "白李"}, "annotations": []},
        {"label": {"PER": {}}},
        {"tokens": ["白", "李"], "ner_tags": ["O", "O"]},
        {"annotation_id": 3, "labels": [0]},
    ):
        rows = [{"text": "李白", "entities": entities, **others} for entities in ([entity], [])]
        found = read(tmp_path, as_array(rows))
        assert found.sentences == [Sentence("李白", [(0, 2, "PER")]), Sentence("李白", [])]
    # But of two lists the one with entities is meant.
    row = {"text": "李白", "entities": [], "label": [[0, 1, "PER"]]}
    (found,) = read(tmp_path, as_array([row])).sentences
    assert found.entities == [(0, 1, "PER")]


def test_a_damaged_array_is_one_fault(tmp_path):
    with pytest.raises(UserError, match=r"a.json, line 7: not JSON \(.*line 7"):
        read(tmp_path, as_array(FORMS["doccano, old"])[:80])


ANN = (
    "T1\tPER 0 2\t李白\nT2\tLOC 4 6\t长安\n#1\tAnnotatorNotes T1\t诗人\n"
    "R1\tAt Arg1:T1 Arg2:T2\nA1\tSure T1\n\nT3\tPER 7 8;9 10\t王 维\n"
)
TXT = "李白在\n长安。王\n维住在蓝田"


def write_brat(folder, ann=ANN, txt=TXT, name="a"):
    (folder / f"{name}.ann").write_text(ann, encoding="utf-8", newline="")
    (folder / f"{name}.txt").write_text(txt, encoding="utf-8", newline="")
    return str(folder / f"{name}.ann")


def test_brat(tmp_path):
    path = write_brat(tmp_path)
    found = read_entity_file(path)
    entities = [(0, 2, "PER"), (4, 6, "LOC"), (7, 10, "PER")]
    assert found.sentences == [Sentence(TXT, entities)]
    assert found.notes == {
        f"{what} of brat, passed over": 1 for what in ("notes", "relations", "attributes")
    }
    written = found.export([[FoundEntity(*entity, 0.5) for entity in entities]])
    assert written.splitlines() == [line for line in ANN.splitlines() if line.startswith("T")]
    # As Windows ends lines: two characters each, in the text as in the places.
    path = write_brat(tmp_path, "T1\tLOC 5 7\t长安\r\n", TXT.replace("\n", "\r\n"))
    assert read_entity_file(path).sentences[0].entities == [(5, 7, "LOC")]
    path = write_brat(tmp_path, "")
    assert read_entity_file(path).sentences == [Sentence(TXT, [])]


FAULTS_OF_BRAT = (
    ("T3\tPER 0 1;6 7\t李 。", "T3 is in several places (0 1;6 7), which tags cannot show"),
    ("T3\tPER 1 3\t白在", "the entities (0, 2, 'PER') and (1, 3, 'PER') overlap"),
    ("T3\tPER 4 6\t李白", "the text has '长安' from 4 to 6, but the file says that '李白'"),
    ("T3\tPER 0 99\t李白", "from 0 to 99"),
    ("T3 PER 0 2 李白", "is not an identifier, a label with two places"),
    ("李白 B-PER", "is no line of brat's"),
    ("T3\tGPE 9 10\t维", "the label 'GPE' is not one of the model's"),
)


def test_faults_of_brat(tmp_path):
    for line, fault in FAULTS_OF_BRAT:
        path = write_brat(tmp_path, f"T1\tPER 0 2\t李白\n{line}\n")
        with pytest.raises(UserError) as error:
            read_entity_file(path, labels={"PER", "LOC"})
        assert "a.ann, line 2: " in str(error.value) and fault in str(error.value)
        bad_rows = BadRows(skip=True)
        assert read_entity_file(path, labels={"PER", "LOC"}, bad_rows=bad_rows).sentences == []
        assert bad_rows.count == 1


def test_brat_without_its_text(tmp_path):
    (tmp_path / "a.ann").write_text(ANN)
    with pytest.raises(UserError, match=r"cannot read .*a\.txt"):
        read_entity_file(str(tmp_path / "a.ann"))


def test_words_of_letters_are_parted(tmp_path):
    tokens = ["EU", "rejects", "中国", "2008", "年", "GPT", "-", "4"]
    tags = ["B-ORG", "O", "B-LOC", "B-T", "I-T", "B-X", "I-X", "I-X"]
    (found,) = read(tmp_path, as_lines([{"tokens": tokens, "tags": tags}])).sentences
    assert found.text == "EU rejects中国2008年GPT-4"
    words = [found.text[start:end] for start, end, _ in found.entities]
    assert words == ["EU", "中国", "2008年", "GPT-4"]
