"""Examples as text, and the faults that `--check` finds, each with file and record."""

import json
import shutil

import pytest
import records
import tensorflow as tf
from commands import assert_one_line, run
from conftest import REPOSITORY, RESOURCES

from nezha_tf import Vocabulary
from nezha_tf.corpus import record_check
from nezha_tf.corpus.create import create_pretraining_data
from nezha_tf.corpus.inspection import LEGEND, arrays_of, show, text_of
from nezha_tf.corpus.record_check import check, check_files
from nezha_tf.corpus.settings import InspectionSettings
from nezha_tf.data import schema
from nezha_tf.data.framing import read_frames
from nezha_tf.util.errors import UserError

SHARDS = [f"train-{n:05d}-of-00003.tfrecord" for n in range(3)]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made")
    create_pretraining_data(
        input_file=str(RESOURCES / "sample_corpus.txt"),
        output_file=f"{folder}/train.tfrecord",
        vocab_file=str(RESOURCES / "vocab.txt"),
        max_seq_length=32,
        max_predictions_per_seq=5,
        dupe_factor=1,
        masking="token",
        num_output_shards=3,
        num_workers=1,
    )
    return folder


@pytest.fixture
def folder(made, tmp_path):
    shutil.copytree(made, tmp_path / "set")
    return tmp_path / "set"


def faults(folder):
    checked, missing = check_files([str(path) for path in sorted(folder.glob("*.tfrecord"))])
    found = [fault for file in checked.values() for fault in file.faults] + missing
    return [fault.replace(f"{folder}/", "") for fault in found]


def test_a_whole_set_has_no_fault(folder, capsys):
    whole = InspectionSettings(input_file=f"{folder}/*.tfrecord")
    assert faults(folder) == []
    assert check(whole) == 0
    records = sum(len(list(tf.data.TFRecordDataset(str(folder / name)))) for name in SHARDS)
    assert f"3 files, {records:,} records" in capsys.readouterr().out
    # The same files elsewhere: nothing but themselves to go by.
    for path in [*folder.glob("*.json")]:
        path.unlink()
    assert faults(folder) == [] and check(whole) == 0
    assert "3 files without a manifest" in capsys.readouterr().out
    with pytest.raises(UserError, match="--num_records=2 does nothing with --check"):
        check(InspectionSettings(input_file=f"{folder}/*.tfrecord", num_records=2, check=True))


def frames_of(path):
    return [frame for _, frame, _ in read_frames(str(path))]


def test_a_part_of_a_set_is_told(folder, capsys):
    check(InspectionSettings(input_file=f"{folder}/{SHARDS[1]}"))
    assert "only 1 of the 3 files" in capsys.readouterr().out


def test_a_cut_file_is_found_with_its_record(folder):
    path = folder / SHARDS[1]
    frames = frames_of(path)
    for kept, left in ((7, 150), (7, 5)):
        path.write_bytes(b"".join(frames[:kept]) + frames[kept][:left])
        found = faults(folder)
        assert found[0].startswith(f"{SHARDS[1]}, record {kept + 1}: truncated: only {left}")
        assert f"{SHARDS[1]}: 7 records, but the manifest says {len(frames)}" in found
    # The file is truncated between two records, so only the manifest shows it.
    path.write_bytes(b"".join(frames[:kept]))
    assert f"{SHARDS[1]}: 7 records, but the manifest says {len(frames)}" in faults(folder)
    path.write_bytes(b"")
    assert f"{SHARDS[1]}: has no undamaged record" in faults(folder)


@pytest.mark.parametrize(
    "place, message",
    [
        (100, "corrupt: its checksum is wrong"),
        (3, "corrupt, or not a TFRecord: the checksum of its"),
    ],
    ids=["record", "length"],
)
def test_a_flipped_bit_is_found_with_its_record(folder, place, message):
    path = folder / SHARDS[2]
    frames = frames_of(path)
    data = bytearray(b"".join(frames))
    data[sum(map(len, frames[:4])) + place] ^= 16
    path.write_bytes(data)
    found = faults(folder)
    assert found[0].startswith(f"{SHARDS[2]}, record 5: {message}")
    assert any(fault.startswith(f"{SHARDS[2]}: CRC-32C") for fault in found)
    undamaged = len(frames) - 1 if place == 100 else 4
    assert f"{SHARDS[2]}: {undamaged} records, but the manifest says {len(frames)}" in found


def test_what_does_not_belong_to_the_set_is_found(folder):
    shutil.copy(folder / SHARDS[0], folder / "train-00000-of-00009.tfrecord")
    shutil.copy(folder / SHARDS[0], folder / SHARDS[1])
    (folder / SHARDS[2]).unlink()
    found = faults(folder)
    of_copy = [fault for fault in found if fault.startswith("train-00000-of-00009")]
    assert of_copy == [
        "train-00000-of-00009.tfrecord: foreign: the manifest beside it does not name it"
    ]
    assert f"{SHARDS[2]}: is missing, but the manifest names it" in found
    assert any(fault.startswith(f"{SHARDS[1]}: CRC-32C") for fault in found)


def write(folder, changes):
    """Twelve good records of eight tokens; changes are of some of them, by number."""
    good = {"input_ids": [5] * 6 + [0] * 2, "input_mask": [1] * 6 + [0] * 2}
    good["segment_ids"] = [0] * 4 + [1] * 2 + [0] * 2
    written = [
        change if isinstance(change, bytes) else records.encode(n, **{**good, **change})
        for n, change in ((n, changes.get(n, {})) for n in range(1, 13))
    ]
    return records.write(folder / "a.tfrecord", written)


def test_records_that_fit_no_example_are_found(tmp_path, monkeypatch):
    monkeypatch.setattr(record_check, "CHECKED_AT_ONCE", 4)
    odd = {
        2: {"input_ids": [5] * 5 + [20_000] + [0] * 2},
        3: {"input_mask": [1, 1, 0, 1, 1, 1, 1, 0]},  # a hole
        4: {"masked_lm_positions": [1, 6]},  # in the padding
        6: {"masked_lm_positions": [2, 2]},  # twice
        7: {"masked_lm_weights": [0.5, 0.5]},
        8: b"text",
        9: {"input_ids": [5] * 9},
        11: {"next_sentence_labels": [2]},
        12: {"input_ids": [5] * 8},  # text after the end
    }
    path = write(tmp_path, odd)
    found = record_check.check_file(path, schema.Lengths(8, 2), 20_000).faults
    numbers = [int(fault.removeprefix(f"{path}, record ").partition(":")[0]) for fault in found]
    assert sorted(numbers) == sorted(odd)
    texts = dict(zip(numbers, found, strict=True))
    assert "input_ids holds 20000, outside 0..19999" in texts[2]
    assert "not a tf.train.Example" in texts[8] and "9 values, not 8" in texts[9]
    assert "next_sentence_labels holds 2" in texts[11]
    assert all("padding that is not at the end" in texts[number] for number in (3, 12))
    assert all("predictions outside the text" in texts[number] for number in (4, 6, 7))


GOOD = {
    "input_ids": [2, 5, 5, 5, 5, 5, 5, 3],
    "input_mask": [1] * 8,
    "segment_ids": [0] * 8,
    "word_starts": [0, 1, 0, 0, 0, 1, 0, 0],
    "masked_lm_positions": [1, 2],
    "masked_lm_ids": [3, 4],
    "masked_lm_weights": [1.0, 1.0],
    "next_sentence_labels": [0],
}


@pytest.mark.parametrize(
    "change, message, place, features",
    [
        (b"\xff\xfe", "it is not a tf.train.Example", 0, schema.FEATURES),
        (b"\xff\xfe", "it is not a tf.train.Example", 3, schema.UNMASKED_FEATURES),
        ({"input_ids": []}, "input_ids has no whole numbers", 0, schema.UNMASKED_FEATURES),
        ({"input_ids": []}, "input_ids has no whole numbers", 3, schema.FEATURES),
        ({"input_mask": [1, 1, 152, *[0] * 5]}, "input_mask holds 152", 0, schema.FEATURES),
        ({"input_mask": [2**62] * 8}, "input_mask holds 46116860", 3, schema.UNMASKED_FEATURES),
    ],
)
def test_any_bad_record_is_one_fault(tmp_path, change, message, place, features):
    """Wherever it is in a file of which nothing else is known."""
    written = [records.encode_values(GOOD, features)] * 5
    is_raw = isinstance(change, bytes)
    written[place] = change if is_raw else records.encode_values({**GOOD, **change}, features)
    path = records.write(tmp_path / "a.tfrecord", written)
    [fault] = record_check.check_file(path, None, 20).faults
    assert fault.startswith(f"{path}, record {place + 1}: {message}")


def test_numbers_of_another_kind_are_told(tmp_path):
    """In `--check` as in what is shown."""
    example = tf.train.Example.FromString(records.encode_values(GOOD))
    example.features.feature["input_ids"].float_list.value.extend([1.5] * 8)
    path = records.write(tmp_path / "a.tfrecord", [example.SerializeToString()])
    message = f"{path}, record 1: input_ids has no whole numbers"
    assert record_check.check_file(path, None, 20).faults[0] == message
    (tmp_path / "vocab.txt").write_bytes((RESOURCES / "vocab.txt").read_bytes())
    with pytest.raises(UserError, match=message):
        show(InspectionSettings(input_file=path, vocab_file=str(tmp_path / "vocab.txt")))


def test_unmasked_records_are_checked_and_shown(tmp_path):
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "我", "们", "去", "un", "##known", "hi"]
    vocabulary = Vocabulary(tokens)
    good = {
        "input_ids": vocabulary.ids_of("[CLS] 我 们 去 [SEP] hi un ##known [SEP] [PAD]".split()),
        "input_mask": [1] * 9 + [0],
        "segment_ids": [0] * 5 + [1] * 4 + [0],
        "word_starts": [0, 1, 0, 1, 0, 1, 1, 0, 0, 0],
        "next_sentence_labels": [0],
    }
    odd = {
        2: {"word_starts": [0, 0, 0, 1, 0, 1, 1, 0, 0, 0]},  # a segment begins inside a word
        3: {"word_starts": [0, 1, 0, 1, 1, 1, 1, 0, 0, 0]},  # [SEP] begins one
        4: {"word_starts": [0, 1, 0, 1, 0, 1, 1, 0, 0, 1]},  # padding does
        5: {"word_starts": [0, 1, 0, 2, 0, 1, 1, 0, 0, 0]},
        6: {"word_starts": [0, 1]},
    }
    written = [
        records.encode_values({**good, **odd.get(number, {})}, schema.UNMASKED_FEATURES)
        for number in range(1, 8)
    ]
    path = records.write(tmp_path / "a.tfrecord", [*written, records.encode(8)])
    faults = record_check.check_file(path, None, 20).faults
    numbers = [int(fault.removeprefix(f"{path}, record ").partition(":")[0]) for fault in faults]
    assert sorted(numbers) == [*odd, 8]
    texts = dict(zip(numbers, faults, strict=True))
    assert all("words that do not begin" in texts[number] for number in (2, 3, 4))
    assert "word_starts holds 2" in texts[5] and "2 values, not 10" in texts[6]
    assert "masked already" in texts[8]
    assert text_of(arrays_of(written[0]), vocabulary, in_colour=True).splitlines() == [
        "9 tokens, 4 words, next_sentence_labels 0",
        "  A  [CLS] 我们|去 [SEP]",
        "  B  hi|unknown [SEP]",
    ]


def test_text_shows_what_is_predicted():
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "我", "去", "un", "##known", "hi", "。"]
    vocabulary = Vocabulary(tokens)

    def ids(text):
        return vocabulary.ids_of(text.split())

    record = records.encode(
        0,
        input_ids=[*ids("[CLS] [MASK] 我 [MASK] [MASK] [SEP] hi hi hi 去 [SEP]"), 0],
        input_mask=[1] * 11 + [0],
        segment_ids=[0] * 6 + [1] * 5 + [0],
        masked_lm_positions=[1, 3, 4, 7, 9, 0],
        masked_lm_ids=[*ids("我 un ##known hi 。"), 0],
        masked_lm_weights=[1.0] * 5 + [0.0],
        next_sentence_labels=[1],
    )
    text = text_of(arrays_of(record), vocabulary, in_colour=False)
    assert text.splitlines() == [
        "11 tokens, 5 predicted, next_sentence_labels 1",
        "  A  [CLS] [我]我[unknown] [SEP]",
        "  B  hi [hi=] hi[。→去] [SEP]",
    ]
    coloured = text_of(arrays_of(record), vocabulary, in_colour=True)
    assert "\033[31m[unknown]\033[0m" in coloured and "\033[33m[。→去]\033[0m" in coloured


def test_a_vocabulary_elsewhere_is_found_and_the_pages_have_the_legend(folder, capsys):
    """The manifest may name a vocabulary on a remote store."""
    with tf.io.gfile.GFile("ram://inspected/vocab.txt", "wb") as file:
        file.write((RESOURCES / "vocab.txt").read_bytes())
    manifest = json.loads((folder / "manifest.json").read_text())
    settings = InspectionSettings(input_file=f"{folder}/*.tfrecord", num_records=1)
    for name in ("ram://inspected/vocab.txt", "ram://inspected/gone.txt"):
        manifest["data_sets"]["train.tfrecord"]["flags"]["vocab_file"] = name
        (folder / "manifest.json").write_text(json.dumps(manifest))
        if name.endswith("vocab.txt"):
            show(settings)
        else:
            with pytest.raises(UserError, match="--vocab_file is needed"):
                show(settings)
    assert LEGEND in capsys.readouterr().out.splitlines()
    for language in ("en", "zh"):
        page = REPOSITORY / "docs" / language / "corpus.md"
        assert LEGEND in page.read_text(encoding="utf-8").splitlines()


@pytest.mark.processes
def test_the_tool(folder):
    def tool(*arguments):
        return run("tools/inspect_tfrecords.py", *arguments, folder=folder)

    shown = tool("--input_file=train*.tfrecord", "--num_records=2", "--first_record=3")
    assert shown.returncode == 0 and shown.stderr == "", shown.stderr
    assert f"{SHARDS[0]}, record 3: " in shown.stdout and "record 4: " in shown.stdout
    assert shown.stdout.count("  A  [CLS] ") == shown.stdout.count("  B  ") == 2
    assert "\033" not in shown.stdout
    (folder / SHARDS[0]).write_bytes((folder / SHARDS[0]).read_bytes()[:-1])
    cut = tool("--input_file=*.tfrecord", "--check")
    assert cut.returncode == 1 and cut.stderr == "" and "truncated" in cut.stdout
    assert_one_line(tool("--input_file=*.tfrecord", "--first_record=999"), "--first_record=999")
