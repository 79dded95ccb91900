"""tools/build_vocab.py: the same bytes for any number of workers and any cut, and its refusals."""

import gzip
import multiprocessing
import os
import tracemalloc

import pytest
from conftest import RESOURCES
from plain_vocabulary import plain_vocabulary

from nezha_tf import Vocabulary
from nezha_tf.corpus import vocabulary
from nezha_tf.corpus.settings import VocabularySettings
from nezha_tf.data import corpus
from nezha_tf.util import files
from nezha_tf.util.errors import UserError


def make(folder, input_file, **changes):
    """Builds a vocabulary and returns its lines."""
    values = {"output_file": f"{folder}/vocab.txt", "vocab_size": 3000, "num_workers": 1}
    settings = VocabularySettings(input_file=input_file, **{**values, **changes})
    vocabulary.make_vocabulary(settings)
    return (folder / "vocab.txt").read_text(encoding="utf-8").split("\n")[:-1]


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    """Files of all kinds: a packed one, a very long line, odd characters, no line end."""
    folder = tmp_path_factory.mktemp("text")
    sample = (RESOURCES / "sample_corpus.txt").read_bytes()
    (folder / "a.txt").write_bytes(b"\xef\xbb\xbf" + sample[:9000].rpartition(b"\n")[0])
    (folder / "b.txt.gz").write_bytes(gzip.compress(sample[-9000:].partition(b"\n")[2]))
    (folder / "c.txt").write_text("长句 playing，plays the play." * 200, encoding="utf-8")
    odd = "ΑΣ，ΑΣΑ e\u0301 한국어 \uf900豈 x\u200by \x85 カー " + "z" * 300
    (folder / "d.txt").write_text(f"\n{odd}\r\n\n{odd}", encoding="utf-8")
    return f"{folder}/*.txt,{folder}/*.gz"


@pytest.mark.parametrize("do_lower_case", (True, False))
def test_the_same_bytes_for_any_number_of_workers_and_any_cut(
    text, tmp_path, monkeypatch, do_lower_case
):
    expected = plain_vocabulary(files.expand(text, "input_file"), 1200, 2, do_lower_case)
    for stretch, workers in ((997, 1), (4000, 2)) if do_lower_case else ((7, 1), (1 << 20, 1)):
        monkeypatch.setattr(corpus, "STRETCH_BYTES", stretch)
        changes = {"vocab_size": 1200, "do_lower_case": do_lower_case, "num_workers": workers}
        assert make(tmp_path, text, **changes) == expected, (stretch, workers)
    assert not multiprocessing.active_children()


def test_what_is_too_small_is_told_before_the_text_is_read(text, tmp_path, monkeypatch):
    read = []
    monkeypatch.setattr(corpus, "STRETCH_BYTES", 999)
    original = vocabulary.read_stretches

    def counted(*arguments):
        for stretch in original(*arguments):
            read.append(len(stretch))
            yield stretch

    monkeypatch.setattr(vocabulary, "read_stretches", counted)
    with pytest.raises(UserError, match="--vocab_size=99 is too small"):
        make(tmp_path, text, vocab_size=99)
    assert not read
    with pytest.raises(UserError, match="--vocab_size=260 is too small"):
        make(tmp_path, text, vocab_size=260)
    assert 0 < sum(read) < 5000 and not list(tmp_path.iterdir())


def test_a_vocabulary_with_tokens_of_ones_own_can_be_read(text, tmp_path):
    """A token that `Vocabulary` does not read is refused."""
    path, longest = tmp_path / "tokens.txt", "长" * 85 + "x"  # 256 bytes
    path.write_text(f"\ufeff雲計算\n\n {longest} \r\n", encoding="utf-8")
    tokens = make(tmp_path, text, include_file=str(path))
    assert {"雲計算", longest} <= set(tokens)
    assert Vocabulary.from_file(f"{tmp_path}/vocab.txt").tokens == tokens
    (tmp_path / "vocab.txt").unlink()
    path.write_text(f"雲計算\n\n{longest}y\n", encoding="utf-8")
    with pytest.raises(UserError, match=r"tokens\.txt, line 3: a token has more than 256 bytes"):
        make(tmp_path, text, include_file=str(path))
    assert os.listdir(tmp_path) == ["tokens.txt"]


def test_bytes_that_are_not_utf8_are_named_with_file_and_line(tmp_path, monkeypatch):
    monkeypatch.setattr(corpus, "STRETCH_BYTES", 64)
    (tmp_path / "a.txt").write_text("好。\n" * 50, encoding="utf-8")
    (tmp_path / "b.txt").write_bytes("好。\n".encode() * 50 + "坏".encode("gb18030"))
    for workers in (1, 2):
        with pytest.raises(UserError, match=r"b\.txt, line 51: not UTF-8 at byte 0"):
            make(tmp_path, f"{tmp_path}/?.txt", num_workers=workers)
    assert not (tmp_path / "vocab.txt").exists()


def test_a_worker_that_dies_and_an_interrupt_leave_nothing(tmp_path, monkeypatch):
    path = tmp_path / "a.txt"
    path.write_text("好。\n" * 50, encoding="utf-8")
    with monkeypatch.context() as patch:
        patch.setattr(vocabulary, "stretch_counter", os._exit)  # in the workers
        with pytest.raises(
            UserError, match=r"a worker died \(status 1\) while it counted .*a\.txt"
        ):
            make(tmp_path, str(path), num_workers=2)

    def interrupted(builder, *counts):
        raise KeyboardInterrupt

    monkeypatch.setattr(vocabulary.VocabularyBuilder, "add", interrupted)
    with pytest.raises(KeyboardInterrupt):
        make(tmp_path, str(path), num_workers=2)
    assert list(tmp_path.iterdir()) == [path] and not multiprocessing.active_children()


def test_memory_does_not_grow_with_the_text(tmp_path, monkeypatch):
    monkeypatch.setattr(corpus, "STRETCH_BYTES", 1 << 16)
    peaks = []
    for number in (8, 32):
        path = tmp_path / f"{number}.txt"
        # One line without white space.
        path.write_text("今天天气very好，" * (number * 3000), encoding="utf-8")
        tracemalloc.start()
        make(tmp_path, str(path))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.1 * peaks[0]
