"""The summaries beside examples against the user's flags."""

import json
import os
import pathlib
import subprocess
import sys

import pytest
from waiting import ended

from nezha_tf.corpus.provenance import (
    Provenance,
    counts_of,
    digest,
    fault_of_vocabulary,
    in_manifests,
    provenance_of,
)
from nezha_tf.corpus.shard_files import SUMMARY_FORMAT, read_manifest, summary_name, write_entry
from nezha_tf.util.errors import UserError


def make(path, **identity):
    record = {"format": SUMMARY_FORMAT, "identity": identity}
    pathlib.Path(summary_name(str(path))).write_text(json.dumps(record))
    return str(path)


def test_what_the_segments_are(tmp_path):
    none, others = ([make(tmp_path / f"{p}-{n}", pair=p) for n in "01"] for p in ("none", "sop"))
    foreign = str(tmp_path / "foreign")
    assert [provenance_of(found).pair for found in (none, others, [])] == ["none", "sop", "nsp"]
    assert provenance_of([foreign]) == Provenance("nsp", True)
    assert provenance_of([foreign], pair="none").pair == "none"
    assert provenance_of([foreign, none[0]], pair="none").pair == "none"
    with pytest.raises(UserError, match=r"sop-0 and .*none-1 were made with --pair=sop and --pair"):
        provenance_of([none[1], *others])
    with pytest.raises(UserError, match=r"none-0 was made with --pair=none, .* --pair=nsp; remove"):
        provenance_of(none, pair="nsp")


def test_case_is_the_files(tmp_path):
    cased = make(tmp_path / "cased", do_lower_case=False)
    assert not provenance_of([cased]).do_lower_case
    assert provenance_of([cased], do_lower_case=False) == Provenance("nsp", False)
    with pytest.raises(UserError, match=r"made with --nodo_lower_case, .* with --do_lower_case;"):
        provenance_of([cased], do_lower_case=True)
    assert not provenance_of([str(tmp_path / "foreign")], do_lower_case=False).do_lower_case


def test_a_vocabulary_is_told_by_its_bytes(tmp_path):
    paths = [tmp_path / name for name in ("vocab.txt", "same.txt", "other.txt")]
    for path, text in zip(paths, ("甲\n乙\n", "甲\n乙\n", "乙\n甲\n"), strict=True):
        path.write_text(text, encoding="utf-8")
    own, same, other = map(str, paths)
    shard = make(tmp_path / "shard", vocab_file=digest(own, "vocab_file"))
    foreign = str(tmp_path / "foreign")
    for vocab_file in (own, same, None):
        provenance_of([shard, foreign], vocab_file)
    assert fault_of_vocabulary(shard, same) is fault_of_vocabulary(foreign, other) is None
    assert "another vocabulary than" in fault_of_vocabulary(shard, other)
    with pytest.raises(UserError, match=r"shard was made with another vocabulary than .*other.txt"):
        provenance_of([foreign, shard], other)
    beside = make(tmp_path / "beside", vocab_file=digest(other, "vocab_file"))
    with pytest.raises(UserError, match=r"beside and .*shard were made with other vocabularies"):
        provenance_of([shard, beside])


def test_lengths_are_the_files(tmp_path):
    made = {"max_seq_length": 64, "max_predictions_per_seq": 10, "masking": "ngram"}
    path, foreign = make(tmp_path / "ours", **made), str(tmp_path / "foreign")
    lengths = {name: made[name] for name in ("max_seq_length", "max_predictions_per_seq")}
    for said in ({}, lengths):
        assert provenance_of([path, foreign], **said)[2:] == (64, 10)
    assert provenance_of([foreign])[2:] == (128, 20)
    assert provenance_of([foreign], max_seq_length=512)[2:] == (512, 20)
    with pytest.raises(UserError, match=r"ours was made with --max_seq_length=64, .*=128; remove"):
        provenance_of([path], max_seq_length=128)
    other = make(tmp_path / "other", **{**made, "max_predictions_per_seq": 9})
    with pytest.raises(UserError, match="made with --max_predictions_per_seq=9 and --max_predict"):
        provenance_of([path, other])


def test_who_masks_the_examples(tmp_path):
    made = {"max_predictions_per_seq": 20, "masked_lm_prob": 0.15}
    whole = make(tmp_path / "whole", masking="none", **made)
    masked = make(tmp_path / "masked", masking="span", **made)
    # The reader then chooses the number of predictions.
    assert provenance_of([whole], None, "token", max_predictions_per_seq=7)[3] == 7
    assert provenance_of([whole], None, "token")[3] == 20
    assert provenance_of([str(tmp_path / "foreign")], None, "token")[3] == 20
    provenance_of([masked, make(tmp_path / "other", masking="token", **made)])
    with pytest.raises(UserError, match=r"masked is masked already, with --masking=span .*=0.15,"):
        provenance_of([whole, masked], None, "token")


def test_a_manifest_tells_what_the_summaries_tell(tmp_path):
    """And it is believed alone: the summaries of the files that it names are not opened."""
    parts = {"records": 5, "bytes": 100, "documents": 1, "crc32c": "0"}
    identities = {"a": {"pair": "none", "max_seq_length": 64}, "b": {"pair": "sop"}}
    paths = {}
    for name, identity in identities.items():
        paths[name] = [tmp_path / f"{name}-{number}" for number in range(3)]
        for path in paths[name]:
            record = {"format": SUMMARY_FORMAT, "identity": identity, **parts}
            pathlib.Path(summary_name(str(path))).write_text(json.dumps(record))
            path.write_bytes(b"." * (100 if path != paths["a"][1] else 7))

    def told():
        found = [[str(path) for path in paths[name]] for name in identities]
        mixed = found[0] + found[1]
        with pytest.raises(UserError, match="were made with --pair=sop") as caught:
            provenance_of(mixed)
        return [provenance_of(one) for one in found], counts_of(mixed), str(caught.value)

    by_summaries = told()
    for name, identity in identities.items():
        shards = [{"file": path.name, **parts} for path in paths[name][:2]]
        write_entry(str(tmp_path / name), {"identity": identity, "shards": shards})
        for path in paths[name][:2]:
            os.remove(summary_name(str(path)))
    of_a = [str(path) for path in paths["a"]]
    assert list(in_manifests(of_a)) == of_a[:2]
    assert told() == by_summaries
    assert by_summaries[1].keys() == {str(p) for n in paths for p in paths[n]} - {
        str(paths["a"][1])
    }


def test_records_are_counted_by_summaries_that_fit(tmp_path):
    whole, changed, alone = (tmp_path / name for name in ("whole", "changed", "alone"))
    for path in (whole, changed):
        record = {"format": SUMMARY_FORMAT, "identity": {}, "records": 5, "bytes": 100}
        pathlib.Path(summary_name(str(path))).write_text(json.dumps(record))
    for path, size in ((whole, 100), (changed, 101), (alone, 100)):
        path.write_bytes(b"." * size)
    assert counts_of([str(whole), str(changed), str(alone)]) == {str(whole): 5}


# Writes entries into the manifest of a folder, one after the other.
WRITER = """
import sys
from nezha_tf.corpus.shard_files import write_entry
for number in range(40):
    name = f"{sys.argv[1]}-{number}"
    write_entry(name, {"identity": {}, "shards": []})
    if number % 2:
        write_entry(name, None)
"""


@pytest.mark.processes
def test_runs_that_write_into_one_folder_keep_the_entries_of_each_other(tmp_path):
    command = [sys.executable, "-c", WRITER]
    writers = [subprocess.Popen([*command, str(tmp_path / name)]) for name in "ab"]
    assert [ended(writer).returncode for writer in writers] == [0, 0]
    sets = read_manifest(str(tmp_path / "manifest.json"))
    assert set(sets) == {f"{name}-{number}" for name in "ab" for number in range(0, 40, 2)}
    assert os.listdir(tmp_path) == ["manifest.json"]
