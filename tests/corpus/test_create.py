"""The whole tool: always the same bytes, odd texts, refusals, no incomplete files."""

import gzip
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
import tracemalloc

import pytest
import tensorflow as tf
from any_engine import contents
from commands import assert_one_line, start_anew
from conftest import REPOSITORY, RESOURCES
from waiting import TIME_LIMIT, ended, wait_until

from nezha_tf.corpus import create as create_module
from nezha_tf.corpus import report, shard_writer
from nezha_tf.corpus.assignment import TRAINING, shards_of
from nezha_tf.corpus.create import create_pretraining_data
from nezha_tf.corpus.documents import measure
from nezha_tf.corpus.settings import Settings
from nezha_tf.util.errors import UserError

TOOL = "tools/create_pretraining_data.py"
VOCABULARY = str(RESOURCES / "vocab.txt")
# `token` needs no segmenter, whose start takes most of the time of a small run.
SETTINGS = {
    "vocab_file": VOCABULARY,
    "max_seq_length": 32,
    "max_predictions_per_seq": 5,
    "dupe_factor": 2,
    "masking": "token",
}


def odd_corpus(folder):
    """The sample with all the faults that a corpus may have."""
    sample = (RESOURCES / "sample_corpus.txt").read_bytes()
    half = sample.index(b"\n\n", len(sample) // 2)
    (folder / "a.txt").write_bytes(b"\xef\xbb\xbf" + sample[:half].replace(b"\n", b"\r\n"))
    odd = [
        "一句。",
        "\u3000",
        "🙂🙂",
        "\ufffd",
        "漢字與繁體。",
        "长" * 25_000,
        "e\u0301\t\x1b[0m",
    ]
    odd = "\n\n".join(odd).encode() + b"\n\nbad \xff\xfe bytes\n\xe4\xbd\n\nlast"
    (folder / "b.txt.gz").write_bytes(gzip.compress(sample[half:] + b"\n\n" + odd))
    (folder / "c.txt").write_bytes(b"\n \r\n\xe3\x80\x80\n")
    (folder / "d.txt").touch()
    return f"{folder}/*.txt,{folder}/*.gz"


def create(corpus, folder, **changes):
    arguments = {
        **SETTINGS,
        "input_file": corpus,
        "output_file": f"{folder}/train.tfrecord",
        "num_workers": 1,
        **changes,
    }
    create_pretraining_data(**arguments)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return odd_corpus(tmp_path_factory.mktemp("corpus"))


def test_the_same_bytes_for_any_number_of_workers(corpus, tmp_path, capsys):
    changes = {"num_output_shards": 5, "eval_share": 0.2, "on_invalid": "replace"}
    folders = []
    for workers in (1, 3):
        folders.append(tmp_path / str(workers))
        folder = folders[-1]
        create(
            corpus,
            folder,
            num_workers=workers,
            eval_output_file=f"{folder}/eval.tfrecord",
            **changes,
        )
    first, second = map(contents, folders)
    assert first == second
    names = [f"train-{n:05d}-of-00005.tfrecord" for n in range(5)] + ["eval.tfrecord"]
    assert set(first) == {*names, *(f"{name}.json" for name in names), "manifest.json"}

    sets = json.loads(first["manifest.json"])["data_sets"]
    counts = [len(list(tf.data.TFRecordDataset(str(folders[0] / name)))) for name in names]
    entries = sets["train.tfrecord"]["shards"] + sets["eval.tfrecord"]["shards"]
    assert [entry["records"] for entry in entries] == counts
    assert [entry["file"] for entry in entries] == names
    assert sets["train.tfrecord"]["totals"]["records"] == sum(counts[:5])
    shares = sets["train.tfrecord"]["shares"]
    # Five of 29 tokens, with three special tokens, are predicted.
    assert shares["masked"] == pytest.approx(0.8 * 5 / 29, abs=0.005)
    assert shares["replaced"] == pytest.approx(0.1 * 5 / 29, abs=0.005)

    # Each kind of anomaly gives one line.
    output = capsys.readouterr().out
    for line in (
        "1 line of more than 10,000 characters, cut (one sentence per line?)",
        "2 lines with bytes that are not UTF-8",
        "1 document without text",  # the replacement character
        "2 files without text",
    ):
        assert output.count(line) == 2, line
    assert "outside the vocabulary" in output and "🙂" in output
    # The time of each stage; masks of single tokens need no segmentation.
    told = [line.split()[0] for line in output.splitlines() if line.endswith(" MB/s")]
    assert told == ["reading", "tokens", "examples", "writing"] * 2
    # The identity of the text does not depend on the other set or on its place.
    create(corpus, folders[0], eval_output_file=f"{folders[0]}/eval.tfrecord", **changes)
    assert "6 shards to make" not in capsys.readouterr().out


def test_a_manifest_names_no_set_that_is_being_made(corpus, tmp_path, monkeypatch):
    both = {
        "eval_output_file": f"{tmp_path}/eval.tfrecord",
        "num_output_shards": 3,
        "on_invalid": "replace",
    }

    def named():
        return set(json.loads((tmp_path / "manifest.json").read_text())["data_sets"])

    def interrupted(*arguments):
        raise KeyboardInterrupt

    create(corpus, tmp_path, **both)
    whole = contents(tmp_path)
    (tmp_path / "train-00001-of-00003.tfrecord").unlink()
    with monkeypatch.context() as patch:
        patch.setattr(shard_writer, "make_shards", interrupted)
        with pytest.raises(KeyboardInterrupt):
            create(corpus, tmp_path, **both)
    assert named() == {"eval.tfrecord"}
    create(corpus, tmp_path, **both)
    assert contents(tmp_path) == whole and named() == {"train.tfrecord", "eval.tfrecord"}


@pytest.mark.parametrize(
    "workers, other", [(1, "二。\n两。".encode()), (2, "二。\n".encode("gbk") + b"\xff")]
)
def test_a_corpus_that_changes_while_it_is_read_gives_no_new_shard(
    tmp_path, monkeypatch, workers, other
):
    """Not even if the number of its documents stays."""
    documents = [f"第{n}句。\n还有一句。\n再有一句。".encode() for n in range(40)]
    path = tmp_path / "a.txt"

    def measured(*arguments):
        found = measure(*arguments)
        path.write_bytes(b"\n\n".join([*documents[:-1], other]))
        return found

    flags = {"num_output_shards": 4, "num_workers": workers}
    path.write_bytes(b"\n\n".join(documents))
    create(str(path), tmp_path / "whole", **{**flags, "num_workers": 1})
    (tmp_path / "set").mkdir()
    earlier = list((tmp_path / "whole").glob("train-00002*"))
    for file in earlier:
        shutil.copy(file, tmp_path / "set")
    with monkeypatch.context() as patch:
        patch.setattr(create_module, "measure", measured)
        with pytest.raises(UserError, match="changed while being read; start again"):
            create(str(path), tmp_path / "set", **flags)
    assert set(contents(tmp_path / "set")) == {file.name for file in earlier}
    path.write_bytes(b"\n\n".join(documents))
    create(str(path), tmp_path / "set", **{**flags, "num_workers": 1})
    assert contents(tmp_path / "set") == contents(tmp_path / "whole")


def test_all_of_it_on_another_file_system(tmp_path, capsys):
    """TensorFlow's file system in memory, which Python's own functions do not see."""
    gfile = tf.io.gfile
    for name in ("sample_corpus.txt", "vocab.txt"):
        with gfile.GFile(f"ram://corpus/{name}", "wb") as file:
            file.write((RESOURCES / name).read_bytes())
    remote = {"vocab_file": "ram://corpus/vocab.txt", "num_output_shards": 3}
    create(str(RESOURCES / "sample_corpus.txt"), tmp_path, num_output_shards=3)
    create("ram://corpus/sample_*.txt", "ram://data", **remote)
    create("ram://corpus/sample_*.txt", "ram://data/", **remote)
    assert "; 3 there already" in capsys.readouterr().out
    expected = contents(tmp_path)
    assert set(gfile.listdir("ram://data")) == set(expected)
    for name, content in expected.items():
        if name != "manifest.json":  # this file says where the files are
            assert gfile.GFile(f"ram://data/{name}", "rb").read() == content, name
    with pytest.raises(UserError, match=r"no file matches 'ram://corpus/none\.txt'"):
        create("ram://corpus/none.txt", "ram://data", **remote)


def test_other_flags_are_refused_and_named(corpus, tmp_path):
    made = {"on_invalid": "skip", "num_output_shards": 2}
    create(corpus, tmp_path, **made)
    before = contents(tmp_path)
    (tmp_path / "other.txt").write_text((RESOURCES / "vocab.txt").read_text() + "新\n")
    shard = r"train-00000-of-00002\.tfrecord was made "
    for changes, message in (
        ({"dupe_factor": 3}, "with --dupe_factor=2, not 3"),
        ({"masking": "ngram"}, "with --masking=token, not ngram"),
        ({"num_output_shards": 3}, "with --num_output_shards=2, not 3"),
        ({"vocab_file": str(tmp_path / "other.txt")}, "with another vocabulary"),
        ({"eval_output_file": f"{tmp_path}/eval.tfrecord"}, "without --eval_output_file"),
        ({"input_file": str(RESOURCES / "sample_corpus.txt")}, "from another text"),
    ):
        with pytest.raises(UserError, match=shard + message):
            create(**{"corpus": corpus, "folder": tmp_path, **made, **changes})
    (tmp_path / "other.txt").unlink()
    assert contents(tmp_path) == before
    (tmp_path / "train-00001-of-00002.tfrecord.json").unlink()
    with pytest.raises(
        UserError, match=r"train-00001-of-00002\.tfrecord is there, but not its summary"
    ):
        create(corpus, tmp_path, **made)
    with pytest.raises(UserError, match="--num_output_shards=500 is more than the 8"):
        create(corpus, tmp_path / "new", on_invalid="skip", num_output_shards=500)
    with pytest.raises(UserError, match=r"b\.txt\.gz, line \d+: not UTF-8"):
        create(corpus, tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_another_spelling_of_the_folder_is_the_same_folder(corpus, tmp_path, capsys):
    plain, other = tmp_path / "data", f"{tmp_path}/.//data//."
    plain.mkdir()
    made = {"on_invalid": "skip", "num_output_shards": 3, "eval_share": 0.3}
    files = {"eval_output_file": f"{other}/eval.tfrecord"}
    create(corpus, other, **made, **files)
    whole = contents(plain)
    (plain / "train-00001-of-00003.tfrecord").unlink()
    (plain / "eval.tfrecord").unlink()
    capsys.readouterr()
    create(corpus, other, **made, **files)
    assert "2 shards to make" in capsys.readouterr().out
    for changes in ({"random_seed": 3}, {"num_output_shards": 2}):
        with pytest.raises(UserError, match=r"train-00000-of-00003\.tfrecord was made with --"):
            create(corpus, other, **{**made, **files, **changes})
    assert contents(plain) == whole
    create(corpus, plain, **made, eval_output_file=f"{plain}/eval.tfrecord")
    assert contents(plain) == whole


@pytest.mark.parametrize(
    ("changes", "advice"),
    (
        ({"dupe_factor": 1}, "each further repetition (--dupe_factor) cuts pairs at other places"),
        (
            {
                "masking": "none",
                "dupe_factor": 1,
                "max_predictions_per_seq": 20,
                "segmenter": "rjieba",
            },
            "a larger --max_seq_length loses less, and --pair=none nothing",
        ),
    ),
)
def test_a_warning_of_lost_text_advises_what_works(tmp_path, capsys, changes, advice):
    document = "今天天气很好我们\n" * 8  # two sentences of 8 are cut to 13 tokens
    (tmp_path / "text.txt").write_text(f"{document}\n" * 20, encoding="utf-8")
    eval_file = {"eval_output_file": f"{tmp_path}/eval.tfrecord", "eval_share": 0.4}
    changes = {"max_seq_length": 16, "short_seq_prob": 0.0, **changes, **eval_file}
    create(f"{tmp_path}/text.txt", tmp_path, **changes)
    shown = capsys.readouterr().out.splitlines()
    used = [line.split()[-1] for line in shown if "characters that are in an example" in line]
    assert len(used) == 2 and all(float(share.rstrip("%")) < 90 for share in used)
    warnings = [line for line in shown if line.startswith("warning: ")]
    # The held-out set has one pass, whatever the flags; its share is normal for that.
    assert len(warnings) == 1 and "train.tfrecord" in warnings[0], warnings
    assert warnings[0].endswith(f"the ends of pairs that are too long are lost; {advice}")


@pytest.mark.parametrize("masking", ["whole_word", "span", "entity", "none"])
def test_a_warning_tells_words_that_have_no_effect(tmp_path, capsys, masking):
    """With entities they have an effect: their tokens are of one word."""
    words = tmp_path / "words.txt"
    words.write_text("今天\nNew York 3\n奥黛丽·赫本\n東京タワー\n·\n", encoding="utf-8")
    report.warn_of_words(Settings(masking=masking, user_dict=str(words), segmenter="rjieba"))
    spaced, *lost = capsys.readouterr().out.splitlines()
    assert "1 word of --user_dict with a space (the first line: 'New York 3') passed" in spaced
    assert len(lost) == (masking in ("whole_word", "span"))
    assert all("(the first: 奥黛丽·赫本) cannot be found: rjieba" in line for line in lost)


FLAGS = (
    "--max_seq_length=32",
    "--max_predictions_per_seq=5",
    "--dupe_factor=30",
    "--masking=token",
    f"--input_file={RESOURCES / 'sample_corpus.txt'}",
    "--num_output_shards=16",
    "--num_workers=2",
    f"--vocab_file={VOCABULARY}",
)


def begin(folder, **options):
    arguments = (*FLAGS, f"--output_file={folder}/train.tfrecord")
    return start_anew(TOOL, *arguments, folder=REPOSITORY, start_new_session=True, **options)


def wait_for_shards(folder, count, process):
    """Waits until there are `count` shards; the process must still be running then."""
    wait_until(lambda: len(list(folder.glob("*.tfrecord"))) >= count, process, 0.002)
    assert process.poll() is None, ended(process)


def children(process):
    with open(f"/proc/{process.pid}/task/{process.pid}/children") as file:
        return list(map(int, file.read().split()))


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    result = ended(begin(folder))
    assert result.returncode == 0 and result.stderr == "", result.stderr
    return contents(folder)


@pytest.mark.processes
def test_what_was_killed_at_any_moment_goes_on_to_the_same_bytes(tmp_path, uninterrupted):
    rng = random.Random(os.urandom(8))
    shards = list(tmp_path.glob("*.tfrecord"))
    for count in (1, 4, 9):
        process = begin(tmp_path)
        wait_for_shards(tmp_path, count, process)
        time.sleep(rng.uniform(0, 0.05))
        process.kill()
        ended(process)
        finished = {path: path.stat().st_ino for path in tmp_path.glob("*.tfrecord")}
        assert count <= len(finished) < 16
        assert all(uninterrupted[path.name] == path.read_bytes() for path in finished)
        assert all(path.stat().st_ino == inode for path, inode in shards)  # not made again
        shards = list(finished.items())
    result = ended(begin(tmp_path))
    assert result.returncode == 0, result.stderr
    assert f"{len(shards)} there already" in result.stdout
    assert contents(tmp_path) == uninterrupted


@pytest.mark.processes
def test_a_killed_worker_and_signals_end_a_run_in_one_line(tmp_path, uninterrupted):
    def kill_a_worker(process):
        # The first child is multiprocessing's tracker.
        os.kill(random.choice(children(process)[1:]), signal.SIGKILL)

    for name, end, status, message in (
        ("killed", kill_a_worker, 1, "a worker died (killed, perhaps out of memory"),
        ("interrupt", lambda p: os.killpg(p.pid, signal.SIGINT), 130, "interrupted"),
        ("terminate", lambda p: os.killpg(p.pid, signal.SIGTERM), 75, "terminated"),
    ):
        folder = tmp_path / name
        folder.mkdir()
        process = begin(folder)
        wait_for_shards(folder, 2, process)
        workers = children(process)
        end(process)
        result = ended(process)
        assert result.returncode == status, result.stderr
        assert_one_line(result, message)
        left = contents(folder)
        assert 2 <= len(left) < 2 * 16 and all(uninterrupted[name] == left[name] for name in left)
        assert len(workers) == 3 and not any(os.path.exists(f"/proc/{w}/exe") for w in workers[1:])


@pytest.mark.processes
def test_a_full_disk_is_one_line(tmp_path):
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    process = begin(tmp_path)
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (100_000, hard))
    result = ended(process)
    assert result.returncode == 1
    assert_one_line(result, "cannot write", ".tfrecord: File too large")
    assert not list(tmp_path.iterdir())


@pytest.mark.processes
def test_no_process_loads_what_it_does_not_need(tmp_path):
    (tmp_path / "a.txt").write_text("一。\n二。\n\n三。\n四。", encoding="utf-8")
    arguments = ("--input_file=a.txt", "--output_file=a.tfrecord", f"--vocab_file={VOCABULARY}")
    for changes in (("--help",), ("--num_output_shards=2", "--num_workers=2")):
        result = subprocess.run(
            [sys.executable, "-X", "importtime", REPOSITORY / TOOL, *arguments, *changes],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=TIME_LIMIT,
        )
        lines = result.stderr.splitlines()
        assert all(line.startswith("import time:") for line in lines), result.stderr
        modules = {line.rpartition("|")[2].strip().partition(".")[0] for line in lines}
        assert "nezha_tf" in modules and len(lines) > 100
        assert not modules & {"tensorflow", "keras", "torch", "transformers", "apache_beam"}
    assert len(list(tmp_path.glob("*.tfrecord"))) == 2


def test_memory_does_not_grow_with_the_corpus(tmp_path):
    line = f"{'今天天气很好，我们去公园散步。' * 20}\n".encode()
    document = line * 5 + b"\n"
    peaks = []
    for megabytes in (4, 16):
        path = str(tmp_path / f"{megabytes}.txt")
        with open(path, "wb") as file:
            file.writelines([document] * (megabytes * 2**20 // len(document)))
        tracemalloc.start()
        found = measure([path], 0, 0.0)
        count = megabytes // 2
        wanted = {(TRAINING, index) for index in range(count)}
        for shard in shards_of([path], found, 0, {TRAINING: count}, wanted):
            assert sum(len(text) for _, text in shard.documents) < 2.1 * 2**20
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[0] < 16 * 2**20 and peaks[1] < 1.25 * peaks[0]
