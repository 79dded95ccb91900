"""Masking in the graph: the masks of the array path, its shares, and the same after a restart."""

import functools

import numpy as np
import pytest
import tensorflow as tf
from commands import assert_one_line, create_data, run, run_pretraining
from conftest import RESOURCES
from scipy.stats import chi2_contingency, chisquare

from nezha_tf import Vocabulary
from nezha_tf.data import schema
from nezha_tf.data.dynamic_masking import DynamicMasking
from nezha_tf.data.masking_policies import POLICIES, UNMASKED
from nezha_tf.data.reader import ExampleReader
from nezha_tf.errors import UserError
from nezha_tf.pretraining_data.array_masking import ArrayMasking
from nezha_tf.pretraining_data.layout import Rows
from nezha_tf.pretraining_data.settings import Settings
from nezha_tf.pretraining_data.shard_maker import ShardMaker

IN_THE_GRAPH = [name for name in POLICIES if not POLICIES[name].of_entities]
LENGTHS = schema.Lengths(48, 9)


@pytest.fixture(scope="module")
def vocabulary():
    return Vocabulary.from_file(RESOURCES / "vocab.txt")


def random_rows(vocabulary, count, seed=0, length=LENGTHS.max_seq_length):
    """Unmasked examples of one to three segments, with words of one to five pieces."""
    rng = np.random.default_rng(seed)
    ids, word_starts = np.zeros((count, length), np.int32), np.zeros((count, length), bool)
    is_text, lengths = np.zeros((count, length), bool), np.zeros(count, np.int64)
    for row in range(count):
        ids[row, 0], end = vocabulary.cls_id, 1
        for size in rng.integers(1, (length - 4) // 3, rng.integers(1, 4)):
            ids[row, end : end + size] = rng.integers(200, len(vocabulary), size)
            is_text[row, end : end + size] = True
            word_starts[row, end : end + size] = rng.random(size) < 0.6
            word_starts[row, end] = True
            ids[row, end + size] = vocabulary.sep_id
            end += size + 1
        lengths[row] = end
    return Rows(ids, np.zeros_like(ids), is_text, word_starts, lengths)


def word_lengths_of(rows):
    """Counts piece by piece."""
    found, begin = np.zeros(rows.ids.shape, np.int32), 0
    for row, place in zip(*rows.is_text.nonzero(), strict=True):
        begin = place if rows.word_starts[row, place] else begin
        found[row, begin] += 1
    return found


def batch_of(rows):
    count, length = rows.ids.shape
    return {
        "input_ids": tf.constant(rows.ids),
        "input_mask": tf.constant(np.arange(length) < rows.lengths[:, None], tf.int32),
        "segment_ids": tf.constant(rows.segment_ids),
        "next_sentence_labels": tf.zeros([count, 1], tf.int32),
        "word_lengths": tf.constant(word_lengths_of(rows)),
    }


@functools.cache
def in_graph(name, vocabulary, share=0.15, lengths=LENGTHS):
    masking = DynamicMasking(name, vocabulary, share, lengths)
    return tf.function(masking.mask, autograph=False)


def on_arrays(name, vocabulary, share=0.15, lengths=LENGTHS):
    length, predictions = lengths
    return ArrayMasking(vocabulary, POLICIES[name], length, share, predictions)


def keys_of(count, seed):
    return np.random.default_rng(seed).integers(0, 2**64, count, np.uint64)


def numpy_of(batch):
    return {name: values.numpy() for name, values in batch.items()}


@pytest.mark.parametrize("name", IN_THE_GRAPH)
def test_the_same_keys_give_the_masks_of_the_array_path(vocabulary, name):
    rows, keys = random_rows(vocabulary, 2000), keys_of(2000, 1)
    for share, predictions in ((0.15, 9), (0.33, 9), (0.2, 2)):
        lengths = schema.Lengths(LENGTHS.max_seq_length, predictions)
        expected = on_arrays(name, vocabulary, share, lengths)(rows, keys)
        found = in_graph(name, vocabulary, share, lengths)(batch_of(rows), tf.constant(keys))
        np.testing.assert_array_equal(found["masked_lm_weights"], expected.weights)
        np.testing.assert_array_equal(found["masked_lm_positions"], expected.positions)
        np.testing.assert_array_equal(found["masked_lm_ids"], expected.labels)
        np.testing.assert_array_equal(found["input_ids"], expected.ids)


def counts_of(rows, ids, positions, weights, mask_id):
    """Returns what was made of the rows, as counts by kind."""
    row, slot = weights.nonzero()
    chosen = np.zeros(rows.ids.shape, bool)
    chosen[row, positions[row, slot]] = True
    # Stretches of predicted pieces; what stands at their first one is drawn for each by itself.
    steps = np.diff(np.pad(chosen, ((0, 0), (1, 1))).astype(int), axis=1)
    row, first = np.nonzero(steps > 0)
    lengths = np.nonzero(steps < 0)[1] - first
    found, true = ids[row, first], rows.ids[row, first]
    is_mask, is_kept = found == mask_id, found == true
    # Each piece is of the word that began last.
    word = np.cumsum(rows.word_starts & rows.is_text) - 1
    sizes = np.bincount(word[rows.is_text.reshape(-1)])
    touched = np.bincount(word[chosen.reshape(-1)], minlength=len(sizes))
    words = [(touched == sizes).sum(), (touched == 0).sum()]
    return {
        "predicted pieces, and not": [chosen.sum(), rows.is_text.sum() - chosen.sum()],
        "masked, random, kept": [is_mask.sum(), (~is_mask & ~is_kept).sum(), is_kept.sum()],
        "words whole, untouched, parted": [*words, len(sizes) - sum(words)],
        "lengths of stretches": np.bincount(np.minimum(lengths, 9), minlength=10),
    }


@pytest.mark.parametrize("name", IN_THE_GRAPH)
def test_both_paths_agree_in_distribution_on_100_000_units(vocabulary, name):
    """The keys of one are of numbers in a stream, as the reader has them; of the other, random."""
    rows = random_rows(vocabulary, 12_000, seed=2)
    assert (rows.word_starts & rows.is_text).sum() > 100_000
    expected = on_arrays(name, vocabulary)(rows, keys_of(12_000, 3))
    masking = DynamicMasking(name, vocabulary, 0.15, LENGTHS)
    found = numpy_of(masking(batch_of(rows), tf.range(12_000, dtype=tf.int64), seed=5))
    made = [found[key] for key in ("input_ids", "masked_lm_positions", "masked_lm_weights")]
    others = [expected.ids, expected.positions, expected.weights]
    ours, theirs = (counts_of(rows, *each, vocabulary.mask_id) for each in (made, others))
    for kind, counts in ours.items():
        table = np.array([counts, theirs[kind]])
        # Of few cases the statistic has no known distribution.
        table = table[:, table.sum(axis=0) >= 20]
        assert chi2_contingency(table).pvalue > 1e-4, (kind, table)
    if POLICIES[name].of_words:
        assert ours["words whole, untouched, parted"][2] == 0
    replaced = ours["masked, random, kept"]
    assert chisquare(replaced, np.array([0.8, 0.1, 0.1]) * sum(replaced)).pvalue > 1e-4


@pytest.mark.parametrize("name", IN_THE_GRAPH)
def test_budgets_hold_and_nothing_else_changes(vocabulary, name):
    rows = random_rows(vocabulary, 1500, seed=4)
    found = numpy_of(in_graph(name, vocabulary)(batch_of(rows), keys_of(1500, 5)))
    used = found["masked_lm_weights"].sum(axis=1).astype(int)
    limits = [min(9, max(1, round(0.15 * length))) for length in rows.lengths]
    assert (used <= limits).all()
    assert used.sum() / sum(limits) > (0.999 if name == "token" else 0.8)
    for row in range(1500):
        places = found["masked_lm_positions"][row, : used[row]].tolist()
        assert places == sorted(set(places)) and all(rows.is_text[row, places])
        assert found["masked_lm_ids"][row, : used[row]].tolist() == rows.ids[row, places].tolist()
        for kind in ("positions", "ids", "weights"):
            assert not found[f"masked_lm_{kind}"][row, used[row] :].any()
        others = np.delete(np.arange(LENGTHS.max_seq_length), places)
        assert (found["input_ids"][row, others] == rows.ids[row, others]).all()


# Files and batches.


@pytest.fixture(scope="module")
def paths(tmp_path_factory):
    """Files of the bundled sample, unmasked."""
    folder = tmp_path_factory.mktemp("unmasked")
    settings = Settings(
        vocab_file=str(RESOURCES / "vocab.txt"),
        masking=UNMASKED,
        max_seq_length=LENGTHS.max_seq_length,
    )
    text = (RESOURCES / "sample_corpus.txt").read_text(encoding="utf-8")
    documents = [part.splitlines() for part in text.strip().split("\n\n")]
    paths = []
    for part in range(3):
        mine = list(enumerate(documents))[part::3]
        paths.append(str(folder / f"{part}.tfrecord"))
        with tf.io.TFRecordWriter(paths[-1]) as writer:
            for record in ShardMaker(settings).make(mine, 1):
                writer.write(record)
    return paths


def test_unmasked_records_are_the_masked_ones_before_they_were_masked():
    text = (RESOURCES / "sample_corpus.txt").read_text(encoding="utf-8").strip()
    documents = list(enumerate(part.splitlines() for part in text.split("\n\n")))[:20]
    made = {}
    for masking in (UNMASKED, "whole_word"):
        settings = Settings(str(RESOURCES / "vocab.txt"), max_seq_length=48, masking=masking)
        features = schema.FEATURES if masking != UNMASKED else schema.UNMASKED_FEATURES
        spec = schema.parsing_spec(schema.Lengths(48, 20), features)
        records = list(ShardMaker(settings).make(documents, 2))
        made[masking] = numpy_of(tf.io.parse_example(records, spec))
    unmasked, masked = made[UNMASKED], made["whole_word"]
    np.testing.assert_array_equal(unmasked["input_ids"], restored(masked))
    for name in ("input_mask", "segment_ids", "next_sentence_labels"):
        np.testing.assert_array_equal(unmasked[name], masked[name])
    # Words cover the text: all but [CLS] and two [SEP].
    lengths = unmasked["word_lengths"]
    np.testing.assert_array_equal(lengths.sum(axis=1), masked["input_mask"].sum(axis=1) - 3)
    for row, places in enumerate(masked["masked_lm_positions"]):
        chosen = set(places[masked["masked_lm_weights"][row] > 0].tolist())
        for begin in np.flatnonzero(lengths[row]):
            word = set(range(begin, begin + lengths[row, begin]))
            assert word <= chosen or word.isdisjoint(chosen)


def reader_of(paths, vocabulary, name="whole_word"):
    limits = schema.Limits(len(vocabulary), 2)
    masking = DynamicMasking(name, vocabulary, 0.15, LENGTHS)
    return ExampleReader(paths, LENGTHS, limits, masking=masking)


def all_of(batches):
    return [numpy_of(batch) for batch in batches]


def assert_same_batches(found, expected):
    assert len(found) == len(expected) > 0
    for one, other in zip(found, expected, strict=True):
        assert one.keys() == other.keys()
        for name in one:
            np.testing.assert_array_equal(one[name], other[name])


def examples_of(paths):
    """The ids of all records, int [records, T]."""
    spec = schema.parsing_spec(LENGTHS, schema.UNMASKED_FEATURES)
    records = tf.data.TFRecordDataset(paths).batch(10**6)
    return tf.io.parse_example(next(iter(records)), spec)["input_ids"].numpy()


def restored(batch):
    """Returns the ids with the labels put back where they were."""
    ids = batch["input_ids"].copy()
    row, slot = batch["masked_lm_weights"].nonzero()
    ids[row, batch["masked_lm_positions"][row, slot]] = batch["masked_lm_ids"][row, slot]
    return ids


def test_each_epoch_masks_the_same_text_anew(paths, vocabulary):
    text = examples_of(paths)
    count = len(text)
    assert count > 150
    batches = all_of(reader_of(paths, vocabulary).training_batches(count, 1).take(2))
    masks = []
    for batch in batches:
        ids = restored(batch)
        assert sorted(map(tuple, ids)) == sorted(map(tuple, text))
        order = np.lexsort(ids.T)
        masks.append(batch["input_ids"][order])
        assert (batch["masked_lm_weights"].sum(axis=1) > 0).all()
    assert (masks[0] != masks[1]).any(axis=1).mean() > 0.98


def test_a_restart_and_other_workers_give_the_same_batches(paths, vocabulary):
    make = functools.partial(reader_of(paths, vocabulary).training_batches, seed=7)
    whole = all_of(make(6).take(90))
    assert_same_batches(all_of(make(6, skip_batches=53).take(37)), whole[53:])
    shards = [all_of(make(3, num_shards=2, shard=shard).take(90)) for shard in range(2)]
    joined = [
        {name: np.concatenate([first[name], second[name]]) for name in first}
        for first, second in zip(*shards, strict=True)
    ]
    assert_same_batches(joined, whole)
    other = all_of(reader_of(paths, vocabulary).training_batches(6, seed=8).take(1))
    assert (other[0]["input_ids"] != whole[0]["input_ids"]).any()


def test_evaluation_masks_the_same_each_time(paths, vocabulary):
    reader, count = reader_of(paths, vocabulary), len(examples_of(paths))
    whole = all_of(reader.evaluation_batches(7, 10**6))
    sizes = [len(batch["input_ids"]) for batch in whole]
    assert sum(sizes) == count and set(sizes[:-1]) == {7}
    assert_same_batches(all_of(reader.evaluation_batches(7, 10**6, skip_batches=4)), whole[4:])
    assert_same_batches(all_of(reader.evaluation_batches(7, 9)), whole[:9])


def test_masked_and_unmasked_files_are_told_apart(paths, vocabulary, folder):
    lengths, limits = schema.Lengths(32, 5), schema.Limits(len(vocabulary), 2)
    with pytest.raises(UserError, match="made with --masking=none, so pass --dynamic_masking"):
        ExampleReader(paths, LENGTHS, limits)
    masking = DynamicMasking("token", vocabulary, 0.15, lengths)
    with pytest.raises(UserError, match="it is masked already: leave --dynamic_masking out"):
        ExampleReader([str(folder / "train.tfrecord")], lengths, limits, masking=masking)
    with pytest.raises(UserError, match="--dynamic_masking=entity: records tell words"):
        DynamicMasking("entity", vocabulary, 0.15, lengths)


def test_the_programs_make_unmasked_examples_and_mask_them(folder):
    """A run that goes on gets the masks that it would have got."""
    made = create_data(folder, "--masking=none", "--eval_output_file=eval.tfrecord")
    assert "already" not in made.stdout and made.returncode == 1  # other flags: refused
    for path in folder.glob("*.tfrecord*"):
        path.unlink()
    made = create_data(folder, "--masking=none", "--eval_output_file=eval.tfrecord")
    assert made.returncode == 0 and made.stderr == "", made.stderr
    assert "instances" in made.stdout and "masked characters" not in made.stdout
    shown = run("tools/inspect_tfrecords.py", "--input_file=train.tfrecord", folder=folder)
    assert "words, unmasked" in shown.stdout and "|" in shown.stdout
    checked = run("tools/inspect_tfrecords.py", "--input_file=*.tfrecord", "--check", folder=folder)
    assert checked.returncode == 0 and "no fault" in checked.stdout, checked.stdout

    changes = ("--dynamic_masking=ngram", "--num_train_steps=4", "--save_checkpoints_steps=2")
    assert_one_line(run_pretraining(folder, *changes), "--vocab_file is needed")
    changes += (f"--vocab_file={RESOURCES / 'vocab.txt'}", "--do_eval", "--eval_file=eval.tfrecord")
    result = run_pretraining(folder, *changes)
    assert result.returncode == 0 and result.stderr == "", result.stderr
    results = [(folder / "run" / "eval_results.json").read_text()]
    for path in (folder / "run").glob("model.ckpt-4.*"):
        path.unlink()
    result = run_pretraining(folder, *changes)
    assert "going on from run/model.ckpt-2" in result.stdout, result.stderr
    results.append((folder / "run" / "eval_results.json").read_text())
    assert results[0] == results[1]
