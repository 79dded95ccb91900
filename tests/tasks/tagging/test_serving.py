"""The graph that reads entities off published labels, against the Python path."""

from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf

from nezha_tf.data.entity_tags import TagSet
from nezha_tf.tasks.tagging.serving import TaggingServing, units_of


@pytest.mark.parametrize(
    "labels", [["B", "I"], ["[PAD]", "O", "B-A", "I-A"], ["O", "PER", "LOC"], ["B", "M", "E", "S"]]
)
def test_the_graph_reads_published_labels_as_python_does(labels):
    """Texts of 0 to 8 characters, each a token."""
    rng = np.random.default_rng(len(labels))
    lengths = [0, 1, 8, 5, 3, 7]
    ids = [rng.integers(0, len(labels), length) for length in lengths]
    places = tf.ragged.range(tf.constant(lengths))
    tokens = SimpleNamespace(
        ids=places,
        starts=places,
        ends=places + 1,
        characters=tf.ragged.constant([["中"] * length for length in lengths], tf.string),
    )
    serving = object.__new__(TaggingServing)
    serving._tag_set = tag_set = TagSet.of_model(labels, "config.json")
    units, _ = units_of(tokens)
    all_ids = tf.constant(np.concatenate(ids), tf.int32)
    found = serving._entities(tokens, units, all_ids, tf.ones(len(all_ids)))
    expected = [tag_set.entities_of(row) for row in ids]
    assert sum(map(len, expected)) > 3
    for row, entities in enumerate(expected):
        assert found["num_entities"][row] == len(entities)
        for place, (start, end, label) in enumerate(entities):
            assert found["label"][row, place].numpy().decode() == label
            assert (found["start"][row, place], found["end"][row, place]) == (start, end)
