"""Complete files, errors of files, and the identity of files."""

import json
import os

import pytest

from nezha_tf.util import console, files
from nezha_tf.util.errors import UserError


def test_a_failure_names_the_file_that_is_meant(tmp_path):
    path = str(tmp_path / "model")
    for action in (
        lambda temporary: open(temporary + "/part", "w"),
        lambda temporary: open(temporary, "rb"),
    ):
        with pytest.raises(OSError) as error, files.whole_file(path) as temporary:
            action(temporary)
        assert error.value.filename.startswith(path) and "tmp" not in error.value.filename[-10:]
    with pytest.raises(OSError) as error, files.whole_file(path):
        pass  # the block writes nothing
    assert error.value.filename == path and ".tmp" not in str(error.value)
    with pytest.raises(OSError) as error, files.whole_folder(path) as temporary:
        open(os.path.join(temporary, "none", "file"), "w")
    assert error.value.filename == os.path.join(path, "none", "file")
    with pytest.raises(FileNotFoundError, match="elsewhere"), files.whole_file(path):
        open(tmp_path / "elsewhere")
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_process_with_this_id_left_is_in_no_ones_way(tmp_path):
    path = str(tmp_path / "export")
    left = tmp_path / os.path.basename(files.temporary_name(path, os.getpid()))
    left.mkdir()
    (left / "half").write_text("half")
    other = tmp_path / f"export.elsewhere.{os.getpid()}.tmp"  # of another machine
    other.mkdir()
    with files.whole_folder(path) as temporary:
        open(os.path.join(temporary, "whole"), "w").close()
    assert os.listdir(path) == ["whole"] and other.is_dir() and not left.exists()


def test_a_link_under_a_temporary_name_is_not_followed(tmp_path):
    """Who may write in a folder knows the name before, but for the process."""
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "file").write_text("my work")
    path = str(tmp_path / "new")
    for target in ("file", "absent"):
        os.symlink(precious / target, files.temporary_name(path, os.getpid()))
        files.write_text(path, "text")
    os.symlink(precious, files.temporary_name(f"{path}.folder", os.getpid()))
    with files.whole_folder(f"{path}.folder") as temporary:
        open(os.path.join(temporary, "file"), "w").close()
    log = tmp_path / "worker-0.log"
    os.symlink(precious / "file", log)
    with console.native_stderr_into(str(log), ()):
        os.write(2, b"told")
        assert log.read_text() == "told" and not log.is_symlink()
    assert (tmp_path / "new").read_text() == "text" and not (tmp_path / "new").is_symlink()
    assert os.listdir(tmp_path / "new.folder") == ["file"]
    assert os.listdir(precious) == ["file"] and (precious / "file").read_text() == "my work"


def test_a_pipe_is_not_replaced_by_a_file(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    with pytest.raises(UserError, match="pipe is no regular file"), files.whole_file(str(path)):
        raise AssertionError("nothing may be written")
    assert path.is_fifo() and list(tmp_path.iterdir()) == [path]


def test_a_file_whose_name_is_a_glob_is_found(tmp_path):
    path = tmp_path / "t[1].json"
    path.write_text("{}")
    assert files.expand(str(path), "input_file") == [str(path)]
    (tmp_path / "t1.json").write_text("{}")  # what the glob matches comes first
    assert files.expand(str(path), "input_file") == [str(tmp_path / "t1.json")]
    folder = tmp_path / "se?d[1]"
    folder.mkdir()
    (folder / "a.json").write_text("{}")
    for name in ("a.json", "*.json"):
        assert files.expand(str(folder / name), "input_file") == [str(folder / "a.json")]
    with pytest.raises(UserError, match=r"no file matches '.*none\[1\]'"):
        files.expand(str(tmp_path / "none[1]"), "input_file")


def test_a_file_is_known_by_all_its_names(tmp_path):
    text, other = tmp_path / "text", tmp_path / "other"
    text.write_text("a")
    other.write_text("a")
    os.link(text, tmp_path / "hard")
    os.symlink(text, tmp_path / "soft")
    names = [str(text), str(tmp_path / "hard"), str(tmp_path / "soft"), f"{tmp_path}/./text"]
    assert len(set(map(files.file_id, names))) == 1
    assert files.file_id(str(other)) != files.file_id(str(text)) and files.same_bytes(text, other)
    for name in names:
        with pytest.raises(UserError, match=f"--output_file={name} is also an input file"):
            files.require_other(name, "output_file", [str(other), str(text)])
    new = str(tmp_path / "new")
    files.require_other(new, "output_file", [str(text)])
    assert files.file_id(new) == files.file_id(f"{tmp_path}/./new")
    assert files.file_id("gs://bucket/a") != files.file_id("gs://bucket/b")


def test_a_folder_is_no_file(tmp_path):
    (tmp_path / "file").touch()
    files.require_folder(str(tmp_path), "output_dir")
    files.require_folder(str(tmp_path / "new" / "newer"), "output_dir")
    for name in ("file", "file/below"):
        with pytest.raises(UserError, match="file is a file, not a folder"):
            files.require_folder(str(tmp_path / name), "output_dir")


def test_a_file_that_cannot_be_written_is_told_before(tmp_path):
    """What passes is written by `whole_file`."""
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    for name in ("file", "new", "folder/new", "none/newer/new"):
        files.require_file(str(tmp_path / name), "output_file")
        files.write_text(str(tmp_path / name), "a")
        assert (tmp_path / name).read_text() == "a"
    for path in ("ram://output/new", "ram://output/none/new"):
        files.require_file(path, "output_file")
        files.write_text(path, "a")
    for name, told in (
        (f"{tmp_path}/folder", "--output_file=.*/folder is a folder; name a file in it"),
        (f"{tmp_path}/absent/", "--output_file=.*/absent/ is a folder; name a file in it"),
        (f"{tmp_path}/file/new", "--output_file=.*/file/new: .*/file is a file, not a folder"),
        (f"{tmp_path}/file/none/new", "new: .*/file is a file, not a folder"),
        (f"{tmp_path}/pipe", "pipe is no regular file"),
        (f"{tmp_path}/{'n' * 250}", "the name is too long by [0-9]+ bytes"),
        (f"{tmp_path}/{'名' * 84}", "the name is too long by [0-9]+ bytes"),
        ("ram://output", "ram://output is a folder"),
        ("ram://output/new/newer", "ram://output/new is a file, not a folder"),
    ):
        with pytest.raises(UserError, match=told):
            files.require_file(name, "output_file")


def test_objects_with_and_without_a_byte_order_mark(tmp_path):
    path = tmp_path / "task.json"
    for mark in (b"", b"\xef\xbb\xbf"):
        path.write_bytes(mark + json.dumps({"a": "文"}, ensure_ascii=False).encode())
        assert files.read_object(path) == {"a": "文"}


def test_globs_folders_and_all_folders_below(tmp_path):
    for name in ("b/c/3.txt", "b/2.txt", "1.txt", "b/.hidden", ".git/4.txt", "b/c/x[1].txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    (tmp_path / "b" / "loop").symlink_to(tmp_path)

    def found(pattern, **folders):
        paths = files.expand(pattern, "input_file", **folders)
        return [path.rpartition(f"{tmp_path}/")[2] for path in paths]

    everything = ["1.txt", "b/2.txt", "b/c/3.txt", "b/c/x[1].txt"]
    assert found(f"{tmp_path}/", in_folders="") == everything
    assert found(f"{tmp_path}/b", in_folders="") == everything[1:]
    assert found(f"{tmp_path}/b/c/x[1].txt") == everything[3:]
    assert found(f"{tmp_path}/*.txt,{tmp_path}/1.txt") == everything[:1]
    (tmp_path / "b" / "loop").unlink()
    assert found(f"{tmp_path}/**/*.txt") == everything
    # For TensorFlow, file:// is a store like any other.
    assert found(f"file://{tmp_path}/**/*.txt") == everything
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match="--input_file: no file matches"):
        found(f"{tmp_path}/empty", in_folders="")
    with pytest.raises(UserError, match="--input_file: no file matches"):
        found(f"{tmp_path}/1.txt,{tmp_path}/*.gz")
    (tmp_path / "2.txt").touch()
    with pytest.raises(UserError, match=r"2\.txt is empty"):
        found(f"{tmp_path}/*.txt")


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
