"""Files of sentences with entities: their formats, and one line for each fault."""

import json

import pytest
from annotation_forms import task

from nezha_tf.data.entity_files import Sentence, read_entity_file
from nezha_tf.data.lines import BadRows
from nezha_tf.tasks.tagging.data import FoundEntity
from nezha_tf.util.errors import UserError

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


def test_bmes(tmp_path):
    """As Resume NER has it; without S-, an entity of one character is B- alone."""
    text = "高 B-NAME\n勇 E-NAME\n： O\n中 B-CONT\n国 M-CONT\n籍 E-CONT\n李 {}-NAME\n"
    for single, scheme in (("S", "BMES"), ("B", "BMEO")):
        found = read(tmp_path, "a.char.bmes", text.format(single))
        entities = [(0, 2, "NAME"), (3, 6, "CONT"), (6, 7, "NAME")]
        assert found.sentences == [Sentence("高勇：中国籍李", entities)]
        assert (found.scheme, found.mended) == (scheme, 0)
    broken = "高 M-NAME\n勇 M-NAME\n中 B-CONT\n籍 O\n国 S-CONT\n"
    found = read(tmp_path, "a.txt", broken)
    assert found.sentences[0].entities == [(0, 2, "NAME"), (2, 3, "CONT"), (4, 5, "CONT")]
    assert (found.scheme, found.mended) == ("BMES", 2)
    for name, mixed in (
        ("a.txt", "高 B-X\n勇 I-X\n勇 M-X\n"),
        ("a.json", '{"tokens": ["高", "勇"], "tags": ["I-X", "M-X"]}'),
    ):
        with pytest.raises(UserError, match=rf"{name}: the inside of entities has both I- and M-"):
            read(tmp_path, name, mixed)


def test_characters_of_several_code_points(tmp_path):
    characters = [
        "❤\ufe0f",
        "e\u0301",
        "👩\u200d👧",
        "1\ufe0f\u20e3",
        "🇨🇳",
        "👍🏽",
        "한",
        "李\u200b",
        "白",
    ]
    tags = ["O", "B-X", "I-X", "O", "B-L", "O", "O", "B-P", "I-P"]
    text = "".join(f"{char}\t{tag}\n" for char, tag in zip(characters, tags, strict=True))
    found = read(tmp_path, "a.txt", "李 O\n\n" + text)
    (_, (joined, entities)), words = found.sentences, "".join(characters)
    assert joined == words and found.characters == [["李"], characters]
    assert [words[e.start : e.end] for e in entities] == ["e\u0301👩\u200d👧", "🇨🇳", "李\u200b白"]
    assert found.lines == [1, 3]
    assert read(tmp_path, "a.txt", text, is_labelled=False).sentences[0].text == words


def test_places_in_words_behind_the_characters(tmp_path):
    """As `weiboNER_2nd_conll.train` has it, with blank lines of a tab."""
    text = "科0\tO\n技1\tO\n全0\tB-ORG.NAM\n国10\tI-ORG.NAM\n04\tO\nn24\tO\n110\tO\n\t\n"
    text += "人0\tB-PER.NOM\n"
    right = [Sentence("科技全国0n1", [(2, 4, "ORG.NAM")]), Sentence("人", [(0, 1, "PER.NOM")])]
    assert read(tmp_path, "a.train", text).sentences == right
    assert read(tmp_path, "a.train", text, is_labelled=False).sentences == right
    # A digit that not all characters have is part of one, and one character is a line.
    with pytest.raises(UserError, match="line 1: '科0' is more than one character"):
        read(tmp_path, "a.train", text + "们\tO\n")


@pytest.mark.parametrize(
    "content",
    (
        "text_a\tlabel\n李 白 在 长 安\tB-PER I-PER O B-LOC I-LOC\n\n今 天\tO O\n",
        "label\tqid\ttext_a\nB-PER I-PER O B-LOC I-LOC\t7\t李 白 在 长 安\n\u200b\nO O\t8\t今 天\n",
        "李 白 在 长 安\tB-PER I-PER O B-LOC I-LOC\n\n\n今 天\tO O\n",
        "text_a\tlabel\r\n李\x02白\x02在\x02长\x02安\tB-PER\x02I-PER\x02O\x02B-LOC\x02I-LOC\r\n"
        "今天\tO O\n",
    ),
)
def test_sentences_and_tags_in_columns(tmp_path, content):
    """As UER and Baidu's data sets have them; what was found comes back in the same columns."""
    bad_rows = BadRows()
    found = read(tmp_path, "a.tsv", content, bad_rows=bad_rows)
    right = [Sentence("李白在长安", [(0, 2, "PER"), (3, 5, "LOC")]), Sentence("今天", [])]
    assert found.sentences == right and found.scheme == "BIO"
    assert found.lines == [content[: content.index(c)].count("\n") + 1 for c in "李今"]
    assert bad_rows.num_blank == sum(not line.strip("\u200b") for line in content.split("\n")[:-1])
    entities = [[FoundEntity(*entity, 0.5) for entity in s.entities] for s in right]
    assert read(tmp_path, "b.tsv", found.export(entities)).sentences == right
    with pytest.raises(UserError, match=r"a\.tsv, line \d: 3 tokens, but 2 tags"):
        read(tmp_path, "a.tsv", content.replace("今", "今 日 "))


def test_sentences_in_a_column_without_tags(tmp_path):
    text = "text_a\n李 白\n今 天\n"
    found = read(tmp_path, "a.tsv", text, is_labelled=False)
    assert found.sentences == [Sentence("李白", None), Sentence("今天", None)]
    written = found.export([[FoundEntity(0, 2, "PER", 0.5)], []])
    assert written == "text_a\tlabel\n李 白\tB-PER I-PER\n今 天\tO O\n"
    with pytest.raises(UserError, match='line 2: "entities" is missing'):
        read(tmp_path, "a.tsv", text)


def test_an_entity_without_its_beginning_is_mended_and_counted(tmp_path):
    found = read(tmp_path, "a.txt", "李 I-PER\n四 I-PER\n北 I-LOC\n在 O\n京 B-LOC\n")
    assert found.sentences[0].entities == [(0, 2, "PER"), (2, 3, "LOC"), (4, 5, "LOC")]
    assert found.mended == 2


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
MARK = {"type": "brushlabels"}
TEXT = "李白在长安。"
# Values of other forms, as `annotation_forms` has them.
VALUES = (
    ({"text": TEXT, "label": [[0, 9, "PER"]]}, "from 0 to 9", "of 6 characters"),
    ({"text": "😀王维住在蓝田", "label": [[6, 8, "LOC"]]}, "from 6 to 8", "in UTF-16 units"),
    ({"text": TEXT, "label": [[0, 2, 4]]}, "label is 4", "must be a word"),
    ({"text": TEXT, "label": [[0, 2, "\ud800"]]}, "label is", "must be a word"),
    ({"text": TEXT, "label": {"PER": {"李杜": [[0, 1]]}}}, "'李白' from 0 to 1", "'李杜'"),
    ({"text": TEXT, "label": {"PER": [[0, 1]]}}, "\"label\" of 'PER'", "words"),
    (task(TEXT, (1, 3, "李白", "PER")), "'白在' from 1 to 3", "'李白' is there"),
    ({"tokens": ["李"], "ner_tags": [3]}, '"ner_tags" are numbers', "names"),
    ({"tokens": ["李", "白"], "ner_tags": ["O"]}, "2 tokens, but 1 tags", "ner_tags"),
    ({"tokens": ["李", ""], "ner_tags": ["O", "O"]}, '"tokens" holds', "empty"),
    ({"tokens": ["李"], "ner_tags": ["PER"]}, "'PER' is not a tag", "with a label"),
    ({"text": "李白", "label": "好"}, '"entities" is missing', "write []"),
    ({"data": {"a": "李", "b": "白"}, "annotations": [{"result": []}]}, "one of 'a', 'b'", "named"),
    ({"data": {"a": "x"}, "annotations": [{"result": [MARK]}]}, "'brushlabels'", "not of a text"),
    (7, "not a JSON object", "text"),
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
    """Yields (name of a file, text before the fault, the fault's text, messages)."""
    yield from FAULTS
    for value, *messages in VALUES:
        yield "a.jsonl", "", json.dumps(value), *messages
    for span, message in SPANS:
        names = ("start", "end", "label")
        entities = [dict(zip(names, span, strict=True))]
        if "overlap" in message:
            entities.append(dict(zip(names, (0, 2, "PER"), strict=True)))
        yield "a.jsonl", "", json.dumps({"text": "北京", "entities": entities}), message


def test_a_fault_is_one_line_or_counted(tmp_path):
    good = {".txt": "李 B-PER\n四 I-PER\n\n", ".jsonl": json.dumps(JSON) + "\n"}
    for name, before, bad, *messages in faults():
        sound = good[name[1:]]
        text = sound + before + bad + "\n\n"[: 2 - name.count("json")] + sound
        line = (sound + before).count("\n") + 1
        with pytest.raises(UserError) as error:
            read(tmp_path, name, text, labels={"LOC", "PER"})
        assert f"{name}, line {line}: " in str(error.value), bad
        assert all(message in str(error.value) for message in messages), bad
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
