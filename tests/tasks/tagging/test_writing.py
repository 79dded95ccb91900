"""Files of predictions: lines of the input, schemes, and characters of several code points."""

import json

from nezha_tf.data.entity_files import read_entity_file
from nezha_tf.tasks.tagging.data import FoundEntity, write_predictions

TAGGED = (
    "李\tS-PER\n❤\ufe0f\tO\n北\tB-LOC\n京\tM-LOC\n城\tE-LOC\ne\u0301\tS-X\n\n"
    "今\tO\n\ufe0f\tS-PER\n\n"
)


def written(tmp_path, name, content=TAGGED, found=None):
    source = tmp_path / "in.txt"
    source.write_text(content, encoding="utf-8")
    read = read_entity_file(str(source))
    found = found or [[FoundEntity(*e, 0.5) for e in s.entities] for s in read.sentences]
    write_predictions(str(tmp_path / name), read.lines, read.characters, found, read.scheme)
    return (tmp_path / name).read_text(encoding="utf-8")


def test_what_was_read_comes_back(tmp_path):
    assert written(tmp_path, "predictions.tsv") == TAGGED
    blanks = TAGGED.replace("\n\n", "\n \n\u200b\n")
    assert written(tmp_path, "predictions.tsv", blanks) == TAGGED


def test_an_entity_of_a_part_of_a_character_takes_it_whole(tmp_path):
    found = [[FoundEntity(1, 2, "X", 0.5), FoundEntity(2, 4, "X", 0.5)], []]
    rows = [line.split("\t") for line in written(tmp_path, "p.tsv", found=found).splitlines()[:6]]
    assert [tag for _, tag in rows] == ["O", "S-X", "S-X", "O", "O", "O"]


def test_lines_of_json_name_their_lines(tmp_path):
    text = written(tmp_path, "predictions.jsonl", "\n \n" + TAGGED)
    assert [json.loads(line)["line"] for line in text.splitlines()] == [3, 10]
