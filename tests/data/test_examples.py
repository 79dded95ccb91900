"""TFRecord files: we read the original's, and the original could read ours."""

import numpy as np
import pytest
import tensorflow as tf
from conftest import RESOURCES

from nezha_tf import Vocabulary
from nezha_tf.corpus.create import create_pretraining_data
from nezha_tf.data.reader import ExampleReader
from nezha_tf.data.schema import Lengths, Limits

LIMITS = Limits(vocab_size=21128, type_vocab_size=2)


def create(folder):
    settings = {
        "input_file": str(RESOURCES / "sample_corpus.txt"),
        "output_file": str(folder / "train.tfrecord"),
        "vocab_file": str(RESOURCES / "vocab.txt"),
        "max_seq_length": 64,
        "max_predictions_per_seq": 10,
        "dupe_factor": 2,
    }
    create_pretraining_data(**settings)
    return settings["output_file"]


@pytest.fixture(scope="module")
def ours(tmp_path_factory):
    return create(tmp_path_factory.mktemp("ours"))


def test_the_originals_records_are_read(shared_golden):
    path = str(shared_golden / "tf1_examples.tfrecord")
    # Made with an English vocabulary of 30,522 tokens.
    reader = ExampleReader([path], Lengths(128, 20), Limits(30522, 2))
    batches = list(reader.evaluation_batches(16, 100))
    assert [len(batch["input_ids"]) for batch in batches] == [16, 16, 16, 12]
    records = list(tf.data.TFRecordDataset(path))
    for number, record in enumerate(records):
        expected = tf.train.Example.FromString(record.numpy()).features.feature
        for name, values in batches[number // 16].items():
            numbers = expected[name].float_list.value or expected[name].int64_list.value
            np.testing.assert_array_equal(values[number % 16], np.array(numbers))


def test_a_tf1_reader_would_take_ours(ours):
    """The features as google-research/bert's run_pretraining.py declares them."""
    declared = {
        "input_ids": tf.io.FixedLenFeature([64], tf.int64),
        "input_mask": tf.io.FixedLenFeature([64], tf.int64),
        "segment_ids": tf.io.FixedLenFeature([64], tf.int64),
        "masked_lm_positions": tf.io.FixedLenFeature([10], tf.int64),
        "masked_lm_ids": tf.io.FixedLenFeature([10], tf.int64),
        "masked_lm_weights": tf.io.FixedLenFeature([10], tf.float32),
        "next_sentence_labels": tf.io.FixedLenFeature([1], tf.int64),
    }
    vocabulary = Vocabulary.from_file(RESOURCES / "vocab.txt")
    count = 0
    for record in tf.data.TFRecordDataset(ours):
        values = {k: v.numpy() for k, v in tf.io.parse_single_example(record, declared).items()}
        assert set(tf.train.Example.FromString(record.numpy()).features.feature) == set(declared)
        length = values["input_mask"].sum()
        assert (values["input_mask"] == (np.arange(64) < length)).all()
        assert not values["input_ids"][length:].any() and not values["segment_ids"][length:].any()
        assert values["input_ids"][0] == vocabulary.cls_id
        assert values["input_ids"][length - 1] == vocabulary.sep_id
        predictions = int(values["masked_lm_weights"].sum())
        assert (values["masked_lm_weights"] == (np.arange(10) < predictions)).all()
        assert not values["masked_lm_ids"][predictions:].any()
        count += 1
    assert count > 500
