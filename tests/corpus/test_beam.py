"""Shards made by Apache Beam equal those of the tool itself; mistakes give one line."""

import importlib.util
import sys

import pytest
from any_engine import assert_same_bytes, contents, create, write_corpus

from nezha_tf.corpus.runners import work
from nezha_tf.util.errors import UserError

needs_beam = pytest.mark.skipif(
    importlib.util.find_spec("apache_beam") is None,
    reason="apache_beam is not installed: pip install -e '.[beam]'",
)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return write_corpus(tmp_path_factory.mktemp("corpus"))


@needs_beam
def test_the_same_bytes_as_of_the_tool_itself(corpus, tmp_path, capsys):
    on_beam, local = assert_same_bytes(corpus, tmp_path, runner="DirectRunner"), tmp_path / "local"
    capsys.readouterr()

    # Existing shards are not made again, but incomplete ones are.
    kept = (on_beam / "eval.tfrecord").stat().st_mtime_ns
    (on_beam / "train-00003-of-00005.tfrecord").unlink()
    with open(on_beam / "train-00001-of-00005.tfrecord", "r+b") as file:
        file.truncate(100)
    create(corpus, on_beam, runner="DirectRunner")
    assert "2 shards to make, DirectRunner" in capsys.readouterr().out
    assert contents(local) == contents(on_beam)
    assert (on_beam / "eval.tfrecord").stat().st_mtime_ns == kept
    with pytest.raises(UserError, match="with --dupe_factor=2, not 3"):
        create(corpus, on_beam, runner="DirectRunner", dupe_factor=3)


@needs_beam
def test_the_same_bytes_of_several_processes(corpus, tmp_path):
    options = "--direct_running_mode=multi_processing --direct_num_workers=2"
    assert_same_bytes(corpus, tmp_path, runner="DirectRunner", beam_options=options)


@needs_beam
def test_mistakes_of_workers_and_of_options_are_one_line(corpus, tmp_path):
    (tmp_path / "train-00002-of-00005.tfrecord.json").mkdir()
    message = r"cannot read .*train-00002-of-00005\.tfrecord\.json: Is a directory$"
    with pytest.raises(UserError, match=message):
        create(corpus, tmp_path, runner="DirectRunner")
    assert not list(tmp_path.glob("*.tmp"))
    new = tmp_path / "new"
    for options, message in (
        ("--direct_num_workers=x", "argument --direct_num_workers: invalid int value: 'x'"),
        ("--direct_num_worker=2", "DirectRunner has no option direct_num_worker"),
        ("--runner=SparkRunner", "name the runner by --runner"),
        ("--name='a", "No closing quotation"),
    ):
        with pytest.raises(UserError, match=message) as caught:
            create(corpus, new, runner="DirectRunner", beam_options=options)
        assert "\n" not in str(caught.value)
    assert not new.exists()


@needs_beam
def test_what_workers_write_elsewhere_is_missed_and_their_defects_are_defects(
    corpus, tmp_path, monkeypatch
):
    monkeypatch.setattr(work, "make_one", lambda shared, place: None)
    with pytest.raises(
        UserError, match=r"has ended but .*train-00000-of-00005\.tfrecord is not th"
    ):
        create(corpus, tmp_path, runner="DirectRunner")
    monkeypatch.setattr(work, "make_one", lambda shared, place: 1 // 0)
    with pytest.raises(Exception, match="by zero") as caught:
        create(corpus, tmp_path, runner="DirectRunner")
    assert not isinstance(caught.value, UserError)


def test_a_missing_library_is_one_line(corpus, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "apache_beam", None)
    with pytest.raises(UserError, match=r"needs Apache Beam .*pip install -e '\.\[beam\]'"):
        create(corpus, tmp_path, runner="DirectRunner")
    assert not contents(tmp_path)
