"""Reading text: documents, compression, and bad input."""

import gzip

import pytest

from nezha_tf.data.corpus import read_documents
from nezha_tf.util import files
from nezha_tf.util.errors import UserError


def test_documents_are_parted_by_blank_lines(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("\ufeff一。\n  二。\r\n\n\n \n三。", encoding="utf-8")
    assert list(read_documents(str(path))) == [["一。", "二。"], ["三。"]]
    packed = tmp_path / "a.txt.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert list(read_documents(str(packed))) == [["一。", "二。"], ["三。"]]


def test_bad_text_is_named_with_its_line(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes("好\n\n".encode() + "坏".encode("gb18030"))
    with pytest.raises(UserError, match=r"a\.txt, line 3: not UTF-8"):
        list(read_documents(str(path)))


def test_a_cut_gzip_file_is_refused(tmp_path):
    path = tmp_path / "a.txt.gz"
    path.write_bytes(gzip.compress("好\n".encode() * 5000)[:-20])
    with pytest.raises(UserError, match=r"a\.txt\.gz: damaged gzip file"):
        list(read_documents(str(path)))


def test_globs(tmp_path):
    for name in ("b.txt", "a.txt", "c.md"):
        (tmp_path / name).write_text("x")
    found = files.expand(f"{tmp_path}/*.txt,{tmp_path}/a.txt", "input_file")
    assert found == [f"{tmp_path}/a.txt", f"{tmp_path}/b.txt"]
    with pytest.raises(UserError, match="--input_file: no file matches"):
        files.expand(f"{tmp_path}/a.txt,{tmp_path}/*.gz", "input_file")
    (tmp_path / "d.txt").touch()
    with pytest.raises(UserError, match=r"d\.txt is empty"):
        files.expand(f"{tmp_path}/*.txt", "input_file")


def test_a_file_appears_whole_or_not_at_all(tmp_path):
    path = tmp_path / "folder" / "a.txt"
    with files.whole_file(str(path)) as temporary, open(temporary, "w") as file:
        file.write("old")
    with pytest.raises(RuntimeError), files.whole_file(str(path)) as temporary:
        with open(temporary, "w") as file:
            file.write("half")
        raise RuntimeError
    assert [entry.name for entry in path.parent.iterdir()] == ["a.txt"]
    assert path.read_text() == "old"
