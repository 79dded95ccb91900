"""What workers of an engine do, called here without one."""

import functools
import json
import pathlib
import traceback

import pytest
from any_engine import assert_same_bytes, create, write_corpus
from conftest import RESOURCES

from nezha_tf.corpus.runners import RUNNERS, work
from nezha_tf.util.errors import UserError


class PlainRunner:
    """An engine without workers: it calls the function for each place, in another order.

    Attributes:
      between: functions to call before the first place.
    """

    OPTIONS = "beam_options"
    between = ()

    def __init__(self, name, options):
        self.name = name

    def run(self, function, places):
        for change in self.between:
            change()
        for place in reversed(places):
            # An engine sends a place to its worker.
            function(json.loads(json.dumps(place)))


@pytest.fixture
def plain(monkeypatch):
    monkeypatch.setattr(PlainRunner, "between", ())
    monkeypatch.setitem(RUNNERS, "plain", PlainRunner)
    return PlainRunner


@pytest.fixture
def corpus(tmp_path):
    (tmp_path / "corpus").mkdir()
    return write_corpus(tmp_path / "corpus")


def test_an_engine_is_a_small_class_and_gives_the_same_bytes(corpus, tmp_path, plain):
    assert_same_bytes(corpus, tmp_path, runner="plain")


def test_workers_that_see_other_files_are_one_line(corpus, tmp_path, plain):
    """The files change between the plan and the work, as they would be on another machine."""
    vocab = tmp_path / "vocab.txt"
    words = tmp_path / "words.txt"
    text = pathlib.Path(corpus).parent / "a.txt"
    for path, old, new, message in (
        (text, "我", "你", "a.txt has other text here than where the job was started"),
        (vocab, "[unused99]\n", "[unused100]\n", "--vocab_file is sha256 .* here, but sha256"),
        (words, "哪吒\n", "哪 吒\n", "--user_dict is sha256 .* here, but sha256"),
    ):
        vocab.write_bytes((RESOURCES / "vocab.txt").read_bytes())
        words.write_text("哪吒\n", encoding="utf-8")
        sound = path.read_bytes()
        other = sound.replace(old.encode(), new.encode(), 1)
        assert other != sound
        work._maker.cache_clear()  # another machine's process has read nothing yet
        plain.between = [functools.partial(path.write_bytes, other)]
        folder = tmp_path / path.stem
        with pytest.raises(UserError, match=f"^worker on .*: .*{message}") as caught:
            create(
                corpus,
                folder,
                runner="plain",
                vocab_file=str(vocab),
                user_dict=str(words),
                masking="whole_word",
            )
        assert "\n" not in str(caught.value)
        assert not list(folder.glob("*.tmp"))
        path.write_bytes(sound)


def test_files_that_the_workers_write_elsewhere_are_missed(corpus, tmp_path, plain, monkeypatch):
    monkeypatch.setattr(plain, "run", lambda self, function, places: None)
    message = r"--runner=plain has ended but .*train-00000-of-00005\.tfrecord is not there"
    with pytest.raises(UserError, match=message):
        create(corpus, tmp_path / "new", runner="plain")


def test_a_worker_tells_a_mistake_through_any_engine():
    """Engines pass errors on as text, with a traceback; Beam appends the step."""
    text = "".join(traceback.format_exception(UserError("worker on a: no room")))
    for error in (text, f"{text.strip()} [while running 'make']"):
        shown = work.error_of("spark", RuntimeError(error), is_defect=True)
        assert isinstance(shown, UserError) and str(shown) == "worker on a: no room"
    text = "ModuleNotFoundError: No module named 'jieba'"
    assert "'jieba'; install this" in str(work.error_of("spark", RuntimeError(text), True))
    defect = RuntimeError("ZeroDivisionError: division by zero")
    assert work.error_of("spark", defect, is_defect=True) is defect
