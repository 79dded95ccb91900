"""The predictions in a target: counts, shares and places, over many epochs."""

import collections
import itertools

import numpy as np
import pytest
import tensorflow as tf

from nezha_tf import Vocabulary
from nezha_tf.data.in_memory import InMemoryReader
from nezha_tf.generation.sources import Pairs
from nezha_tf.tasks.seq2seq.features import MaskedTarget, ShiftedTarget, TrainingFeatures

VOCABULARY = Vocabulary(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefghijklmno"])
CLS, SEP, MASK = 2, 3, 4
T = 20


def make_pairs(*lengths):
    """Returns pairs of given lengths without special tokens; no token occurs twice in a pair."""
    rng = np.random.default_rng(0)
    ids, starts = [], []
    for source, target in lengths:
        chosen = rng.permutation(15)[: source + target] + 5
        ids.append(np.array([CLS, *chosen[:source], SEP, *chosen[source:], SEP], np.int32))
        starts.append(source + 2)
    return Pairs(ids, starts, {})


PAIRS = make_pairs((5, 9), (1, 1), (8, 4), (3, 6), (2, 12), (9, 2))


def masked_target(prob=0.7, max_predictions=14):
    return MaskedTarget(VOCABULARY, prob, max_predictions, 14)


def batch_of(prediction, indices, epochs, seed=7):
    """Returns the features of pairs in epochs, as NumPy arrays."""
    features = TrainingFeatures(PAIRS, prediction, T)
    chosen = tf.data.Dataset.from_tensor_slices(
        (np.array(indices, np.int64), np.array(epochs, np.int64))
    )
    examples = chosen.map(lambda index, epoch: features(index, seed, epoch))
    return next(examples.batch(len(indices)).as_numpy_iterator())


def test_inputs_of_a_pair():
    batch = batch_of(ShiftedTarget(14), [2, 1], [0, 0])
    assert batch["input_ids"][0, :15].tolist() == PAIRS.ids[2].tolist()
    assert batch["segment_ids"][0].tolist() == [4] * 10 + [5] * 5 + [0] * 5
    assert batch["input_mask"][0].tolist() == [1] * 15 + [0] * 5
    assert batch["segment_ids"][1].tolist() == [4, 4, 4, 5, 5] + [0] * 15
    assert {name: (v.dtype.name, v.shape) for name, v in batch.items()} == {
        **dict.fromkeys(("input_ids", "input_mask", "segment_ids"), ("int32", (2, T))),
        **dict.fromkeys(("masked_lm_positions", "masked_lm_ids"), ("int32", (2, 14))),
        "masked_lm_weights": ("float32", (2, 14)),
    }


def test_shifted_positions_predict_the_next_token():
    batch = batch_of(ShiftedTarget(14), np.arange(6), np.zeros(6))
    for row, (ids, start) in enumerate(zip(PAIRS.ids, PAIRS.target_starts, strict=True)):
        count = len(ids) - start
        assert batch["masked_lm_weights"][row].tolist() == [1] * count + [0] * (14 - count)
        positions = [*range(start - 1, len(ids) - 1)]  # from the source's [SEP] on
        assert batch["masked_lm_positions"][row, :count].tolist() == positions
        assert (batch["masked_lm_ids"][row, :count] == ids[start:]).all()
        assert (batch["input_ids"][row, : len(ids)] == ids).all()


@pytest.mark.parametrize("prob, max_predictions", ((0.01, 14), (1.0, 14), (0.7, 3)))
def test_counts_and_labels_of_masked_targets(prob, max_predictions):
    pairs = list(itertools.product(range(6), range(5)))
    batch = batch_of(masked_target(prob, max_predictions), *zip(*pairs, strict=True))
    for row, (index, _) in enumerate(pairs):
        ids, start = PAIRS.ids[index], PAIRS.target_starts[index]
        count = min(max_predictions, max(1, round((len(ids) - start) * prob)))
        weights = batch["masked_lm_weights"][row]
        assert weights.tolist() == [1] * count + [0] * (max_predictions - count)
        positions = batch["masked_lm_positions"][row, :count]
        assert (np.diff(positions) > 0).all()
        assert start <= positions[0] and positions[-1] < len(ids)
        assert (batch["masked_lm_ids"][row, :count] == ids[positions]).all()
        rest = np.delete(np.arange(len(ids)), positions)
        assert (batch["input_ids"][row, rest] == ids[rest]).all()


def test_each_target_token_is_masked_as_often_and_the_source_never():
    epochs, index = 2000, 0
    batch = batch_of(masked_target(), np.full(epochs, index), np.arange(epochs))
    start, end = PAIRS.target_starts[index], len(PAIRS.ids[index])
    counts = np.bincount(batch["masked_lm_positions"].ravel(), batch["masked_lm_weights"].ravel())
    assert counts[:start].sum() == 0 and len(counts) == end  # The last one is the final [SEP].
    # Seven of ten, without replacement: each count is binomial with variance np(1-p).
    expected, deviation = 0.7 * epochs, np.sqrt(epochs * 0.7 * 0.3)
    assert np.abs(counts[start:] - expected).max() < 4 * deviation


def test_what_stands_in_the_place_of_a_masked_token():
    """80 % [MASK], 10 % any token, 10 % unchanged: chi-square over the whole vocabulary."""
    epochs = 3000
    batch = batch_of(masked_target(), np.zeros(epochs), np.arange(epochs))
    found, n = collections.Counter(), 0
    for ids, positions, labels in zip(
        batch["input_ids"],
        batch["masked_lm_positions"][:, :7],
        batch["masked_lm_ids"][:, :7],
        strict=True,
    ):
        for token, label in zip(ids[positions], labels, strict=True):
            found["kept" if token == label else int(token)] += 1
            n += 1
    random_share = 0.1 / len(VOCABULARY)
    shares = {"kept": 0.1 + random_share}
    shares.update({token: random_share for token in range(len(VOCABULARY))})
    # A random token that equals the label counts as kept, so tokens of the target are rarer.
    target = PAIRS.ids[0][PAIRS.target_starts[0] :]
    for token in target:
        shares[int(token)] *= 1 - 1 / len(target)
    shares[MASK] += 0.8
    assert sum(shares.values()) == pytest.approx(1)
    chi_square = sum((found[key] - n * p) ** 2 / (n * p) for key, p in shares.items())
    assert chi_square < 45.3  # The 99.9th percentile with 20 degrees of freedom.


def test_masks_are_drawn_from_seed_epoch_and_example_alone():
    reader = InMemoryReader(6, TrainingFeatures(PAIRS, masked_target(), T))

    def drawn(batch_size, seed):
        found = {}
        for number, batch in enumerate(reader.training_batches(batch_size, seed).take(12)):
            for row in range(batch_size):
                epoch = (number * batch_size + row) // 6
                positions = batch["masked_lm_positions"][row].numpy()
                labels = batch["masked_lm_ids"][row].numpy()
                source = tuple(batch["input_ids"][row].numpy()[:2])
                inputs = tuple(batch["input_ids"][row].numpy())
                found[source, epoch] = (inputs, tuple(positions), tuple(labels))
        return found

    small, large = drawn(2, 9), drawn(5, 9)
    assert small and all(large[key] == value for key, value in small.items())
    other = drawn(5, 10)
    assert sum(other[key] == value for key, value in large.items()) < len(large) / 2
    epochs = collections.defaultdict(set)
    for (source, _), value in large.items():
        epochs[source].add(value)
    assert max(map(len, epochs.values())) > 5
