"""Masking in the graph: against exact probabilities, masks on arrays, and through the reader."""

import json

import classic
import numpy as np
import pytest
import tensorflow as tf
from commands import CONFIG
from conftest import RESOURCES
from masked_rows import (
    EXACT_CASES,
    HIGHEST_CHI_SQUARE,
    as_masked,
    assert_chosen_as_expected,
    batch_of,
    exact_choices,
    fits,
    keys_of,
    make_rows,
    random_rows,
)
from records import LIMITS, encode, encode_values, write

from nezha_tf import Vocabulary
from nezha_tf.corpus.packing import PackedRows
from nezha_tf.data import schema
from nezha_tf.data.reader import ExampleReader
from nezha_tf.objectives.array_masking import ArrayMasking, Units
from nezha_tf.objectives.dynamic_masking import DynamicMasking
from nezha_tf.objectives.mixture import ObjectiveMixture
from nezha_tf.objectives.objective import Examples
from nezha_tf.objectives.policies import POLICIES
from nezha_tf.tasks.pretraining.settings import PretrainingSettings
from nezha_tf.tasks.pretraining.task import Pretraining
from nezha_tf.util.errors import UserError

NAMES = [name for name, policy in POLICIES.items() if not policy.of_entities]
LENGTH = 64
CLS, SEP = 101, 102


@pytest.fixture(scope="module")
def masking(vocabulary):
    """Returns a function of policy, share and most that returns a `DynamicMasking`, compiled."""

    def make(policy, share=0.15, most=20):
        policy = POLICIES[policy] if isinstance(policy, str) else policy
        made = DynamicMasking(vocabulary, policy, schema.Lengths(LENGTH, most), share)
        made.mask = tf.function(made.mask, autograph=False)
        return made

    return make


@pytest.mark.parametrize("name", NAMES)
def test_equal_keys_give_the_masks_of_the_other_path(vocabulary, masking, name):
    rows, keys = random_rows(vocabulary, 1500, seed=2), keys_of(1500)
    for share, most in ((0.15, 20), (0.4, 9)):
        expected = ArrayMasking(vocabulary, POLICIES[name], LENGTH, share, most)(rows, keys)
        found = masking(name, share, most).mask(batch_of(rows), keys)
        assert "word_starts" not in found and len(found) == len(schema.FEATURES)
        for value, other in zip(as_masked(found), expected, strict=True):
            assert (value == other).all()


@pytest.mark.parametrize("policy, sizes, budget", EXACT_CASES)
def test_choices_have_their_exact_probabilities(vocabulary, masking, policy, sizes, budget):
    segments = [list(range(300, 300 + sum(words))) for words in sizes]
    begins = [[at == 0 for size in words for at in range(size)] for words in sizes]
    rows = make_rows([segments], vocabulary, LENGTH, [begins])
    units = classic.units_of(rows.is_text[0], rows.word_starts[0] | (not policy.of_words))
    share = budget / rows.lengths[0]
    rows = PackedRows(*(np.repeat(array, 60_000, axis=0) for array in rows))
    found = masking(policy, share, budget)(batch_of(rows), tf.range(60_000, dtype=tf.int64), 6)
    expected = exact_choices(units, policy.run_shares, budget)
    assert_chosen_as_expected(found["masked_lm_positions"].numpy(), expected)


def kinds(masked, vocabulary):
    """Returns how many predicted tokens are [MASK], kept and replaced."""
    row, slot = masked.weights.nonzero()
    found = masked.ids[row, masked.positions[row, slot]]
    is_mask, is_kept = found == vocabulary.mask_id, found == masked.labels[row, slot]
    return [is_mask.sum(), is_kept.sum(), (~is_mask & ~is_kept).sum()]


def words_predicted_and_not(masked, rows, units):
    """Counts predicted and other words; asserts that no word is split."""
    is_predicted = np.zeros((len(rows.ids), LENGTH + 1), int)
    row, slot = masked.weights.nonzero()
    is_predicted[row, masked.positions[row, slot]] = 1
    before = np.cumsum(is_predicted, axis=1) - is_predicted
    row, unit = np.nonzero(units.numbers < units.counts[:, None])
    starts, ends = units.starts[row, unit], units.ends[row, unit]
    predicted = before[row, ends] - before[row, starts]
    assert set(np.unique(predicted / (ends - starts))) <= {0.0, 1.0}
    return [(predicted > 0).sum(), (predicted == 0).sum()]


def runs_by_length(masked):
    """Counts runs of adjacent predicted tokens with lengths 1 to 7, and 8 or more."""
    is_predicted = np.zeros((len(masked.ids), LENGTH + 2), int)
    row, slot = masked.weights.nonzero()
    is_predicted[row, masked.positions[row, slot] + 1] = 1
    edges = np.diff(is_predicted.reshape(-1))
    lengths = np.flatnonzero(edges < 0) - np.flatnonzero(edges > 0)
    return np.bincount(np.minimum(lengths, 8), minlength=9)[1:]


def agree(counts, others):
    """Whether two samples may have one distribution (chi-square; cells of equal size)."""
    counts, others = np.array(counts, float), np.array(others, float)
    ratio = np.sqrt(others.sum() / counts.sum())
    differences = counts * ratio - others / ratio
    statistic = (np.square(differences) / (counts + others)).sum()
    return statistic < {**HIGHEST_CHI_SQUARE, 1: 19.6}[len(counts) - 1]


@pytest.mark.parametrize("name", NAMES)
def test_both_paths_draw_from_one_distribution(vocabulary, masking, name):
    """Each has its own keys; over 100,000 units. A span is masked, replaced or kept as a whole."""
    rows = random_rows(vocabulary, 12_000, seed=3, words=0.8)
    policy = POLICIES[name]
    units = Units.of(rows, policy.of_words)
    assert units.counts.sum() > 100_000
    arrays = ArrayMasking(vocabulary, policy, LENGTH, 0.3, 20)(rows, keys_of(12_000, 3))
    numbers = tf.range(12_000, dtype=tf.int64)
    graph = as_masked(masking(name, 0.3)(batch_of(rows), numbers, "seed"))
    masks = [words_predicted_and_not(path, rows, units) for path in (arrays, graph)]
    assert agree(*masks)
    assert agree(runs_by_length(arrays), runs_by_length(graph))
    if not policy.draws_once:  # otherwise tokens are not drawn one by one
        assert agree(kinds(arrays, vocabulary), kinds(graph, vocabulary))
        assert fits(kinds(graph, vocabulary), [0.8, 0.1, 0.1])
    budget = np.clip(np.rint(rows.lengths * 0.3), 1, 20)
    assert (graph.weights.sum(axis=1) <= budget).all()


# Through the reader: tokens 1 and 2 of a record encode its number.


def record(number, features=schema.UNMASKED_FEATURES, **changes):
    tokens = [300 + number // 100, 400 + number % 100, *range(600, 618)]
    values = {
        "input_ids": [CLS, *tokens[:9], SEP, *tokens[9:], SEP, 0],
        "input_mask": [1] * 23 + [0],
        "segment_ids": [0] * 11 + [1] * 12 + [0],
        "word_starts": [0, *[1, 1, 1, 0, 1, 0, 0, 1, 1], 0, *[1, 0] * 5, 1, 0, 0],
        "next_sentence_labels": [number % 2],
        **changes,
    }
    return encode_values(values, features)


LENGTHS = schema.Lengths(24, 5)
UNILM = "bidirectional:2,seq2seq:2,left_to_right:1,right_to_left:1"


@pytest.fixture(scope="module")
def paths(tmp_path_factory, vocabulary):
    assert (vocabulary.cls_id, vocabulary.sep_id) == (CLS, SEP)
    folder = tmp_path_factory.mktemp("records")
    sizes = (40, 30)
    return [
        write(folder / f"{n}.tfrecord", [record(100 * n + k) for k in range(size)])
        for n, size in enumerate(sizes)
    ]


def reader_of(paths, *transforms):
    return ExampleReader(paths, LENGTHS, LIMITS, 0, schema.UNMASKED_FEATURES, transforms)


@pytest.fixture
def reader(paths, vocabulary):
    """Masks several batches at a time, as for batches of usual sizes."""
    masking = DynamicMasking(vocabulary, POLICIES["ngram"], LENGTHS, 0.2)
    masking.at_once = 12
    return reader_of(paths, masking)


def restored(batch, row):
    """Returns the tokens of an example before masking."""
    ids = batch["input_ids"][row].numpy().copy()
    count = int(batch["masked_lm_weights"][row].numpy().sum())
    ids[batch["masked_lm_positions"][row, :count]] = batch["masked_lm_ids"][row, :count]
    return ids.tolist()


def seen(batches, count):
    """Returns (number, predicted places, tokens) of the examples of some batches."""
    found = []
    for batch in batches.take(count):
        for row in range(len(batch["input_ids"])):
            ids = restored(batch, row)
            places = tuple(batch["masked_lm_positions"][row].numpy().tolist())
            tokens = tuple(batch["input_ids"][row].numpy().tolist())
            found.append((100 * (ids[1] - 300) + ids[2] - 400, places, tokens))
    return found


def test_batches_are_those_of_the_masked_schema(reader):
    batch = next(iter(reader.training_batches(4, 1)))
    for feature in schema.FEATURES:
        assert batch[feature.name].shape == (4, LENGTHS.of(feature)), feature.name
        assert batch[feature.name].dtype == (
            tf.float32 if feature.dtype is np.float32 else tf.int32
        )
    assert len(batch) == len(schema.FEATURES)
    for row in range(4):
        ids = restored(batch, row)
        number = 100 * (ids[1] - 300) + ids[2] - 400
        original = tf.train.Example.FromString(record(number)).features.feature
        for name in ("input_mask", "segment_ids", "next_sentence_labels"):
            assert batch[name][row].numpy().tolist() == original[name].int64_list.value
        assert ids == original["input_ids"].int64_list.value


def test_epochs_differ_and_a_restart_does_not(reader):
    whole = seen(reader.training_batches(4, 3), 70)  # four epochs
    numbers = [{number for number, _, _ in whole[n : n + 70]} for n in range(0, 280, 70)]
    assert all(len(epoch) == 70 for epoch in numbers)
    masks = {}
    for number, places, tokens in whole:
        masks.setdefault(number, set()).add((places, tokens))
    assert np.mean([len(found) for found in masks.values()]) > 3.8
    for skip in (1, 22, 50):
        assert seen(reader.training_batches(4, 3, skip_batches=skip), 9) == whole[4 * skip :][:36]
    assert seen(reader.training_batches(4, 4), 5) != whole[:20]


def test_the_number_of_workers_changes_nothing(reader):
    whole = seen(reader.training_batches(6, 3), 10)
    parts = [seen(reader.training_batches(2, 3, num_shards=3, shard=n), 10) for n in range(3)]
    by_step = [part[2 * step : 2 * step + 2] for step in range(10) for part in parts]
    assert [example for part in by_step for example in part] == whole
    of_files = [
        seen(reader.training_batches(2, 3, num_shards=2, shard=n, by="file"), 15) for n in (0, 1)
    ]
    assert [places for _, places, _ in of_files[0]] != [places for _, places, _ in of_files[1]]


def test_each_evaluation_is_the_same(reader):
    first, second = (seen(reader.evaluation_batches(4, 100), 100) for _ in range(2))
    assert first == second and len(first) == 70
    assert seen(reader.evaluation_batches(9, 100), 100) == first
    assert seen(reader.evaluation_batches(4, 100, skip_batches=3), 100) == first[12:]


def test_the_mixture_casts_what_is_masked(reader, paths, vocabulary):
    """With the predictions undone, the text is that of the record, for any objective."""
    mixture = ObjectiveMixture.from_text(UNILM)
    masking = DynamicMasking(vocabulary, POLICIES["ngram"], LENGTHS, 0.2)
    cast = reader_of(paths, *mixture.transforms(Examples(LENGTHS, vocabulary, masking)))
    segments = set()
    plain = reader.training_batches(8, 5).take(12)
    for batch, other in zip(cast.training_batches(8, 5).take(12), plain, strict=True):
        for row in range(8):
            first = int(batch["segment_ids"][row, 0])
            segments.add(first)
            text = [token for token in restored(batch, row) if token > SEP]
            whole = [token for token in restored(other, row) if token > SEP]
            is_alone = first and int(batch["next_sentence_labels"][row, 0])
            assert text == (whole[:9] if is_alone else whole)
            # Only the drawn places are predictions.
            drawn = other["masked_lm_ids"][row].numpy().tolist()
            predicted = batch["masked_lm_ids"][row].numpy().tolist()
            assert set(predicted) <= {*drawn, 0}
    assert segments == {0, 2, 3, 4}


def test_records_of_the_other_kind_and_vocabulary_are_refused(tmp_path, paths, vocabulary):
    masking = DynamicMasking(vocabulary, POLICIES["span"], LENGTHS, 0.15)
    with pytest.raises(UserError, match=r"record 1: it is not masked; pass --dynamic_masking"):
        ExampleReader(paths, LENGTHS, LIMITS)
    masked = write(tmp_path / "masked.tfrecord", [encode(7)])
    with pytest.raises(UserError, match=r"record 1: it is masked already; remove --dynamic_mask"):
        reader_of([masked], masking)
    other = Vocabulary(["[PAD]", "[UNK]", "x", "[CLS]", "[SEP]", "[MASK]"])
    masking = DynamicMasking(other, POLICIES["span"], LENGTHS, 0.15)
    with pytest.raises(UserError, match=r"ids 101 and 102, but \[CLS\] and"):
        reader_of(paths, masking)


@pytest.mark.parametrize(
    ("flags", "wanted"),
    (
        ({"max_seq_length": 512}, 77),
        ({"max_seq_length": 128}, None),  # 19 are wanted
        ({"max_seq_length": 128, "masked_lm_prob": 0.2}, 26),
        ({"max_seq_length": 512, "max_predictions_per_seq": 20}, None),  # this is chosen
        ({"max_seq_length": 512, "dynamic_masking": None}, None),
    ),
)
def test_a_default_that_leaves_few_predictions_is_told(tmp_path, flags, wanted):
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    paths = {"bert_config_file": str(tmp_path / "config.json"), "output_dir": str(tmp_path)}
    paths["vocab_file"] = str(RESOURCES / "vocab.txt")
    task = Pretraining(PretrainingSettings(**{**paths, "dynamic_masking": "token", **flags}))
    found = [note for note in task.notes if note.startswith("warning: ")]
    assert len(found) == (wanted is not None), found
    if wanted:
        assert f"pass --max_predictions_per_seq={wanted}, because" in found[0]
