"""Property tests of UniLM's objectives: any examples, transformed one by one in plain Python."""

from typing import NamedTuple

import laws
import tensorflow as tf
from hypothesis import example, given
from hypothesis import strategies as st

from nezha_tf.config import SEGMENT_IDS
from nezha_tf.data import schema
from nezha_tf.objectives.mixture import ObjectiveMixture
from nezha_tf.objectives.objective import ExampleSettings

CLS, SEP, MASK = 101, 102, 103
LENGTH, PREDICTIONS = 14, 5
OBJECTIVES = tuple(SEGMENT_IDS)
NO_PREDICTION = 0, 0, 0.0


class Example(NamedTuple):
    """Lists without padding: tokens with [MASK], segment ids, (place, token, weight) of slots."""

    tokens: list
    segments: list
    slots: list
    label: int


def masked(first, second, chosen, label):
    """The `Example` of texts of so many tokens; there is no second one where that has none.

    No token is there twice, so that a label tells where it belongs.
    """
    text = list(range(200, 200 + first + second))
    tokens = [CLS, *text[:first], SEP, *text[first:], *[SEP] * (second > 0)]
    segments = [0] * (first + 2) + [1] * (len(tokens) - first - 2)
    places = sorted(place for place in chosen if tokens[place] in text)
    slots = [(place, tokens[place], 1.0) for place in places]
    tokens = [MASK if place in places else token for place, token in enumerate(tokens)]
    return Example(tokens, segments, slots, label)


@st.composite
def examples(draw):
    """Draws pairs, and single texts as other programs write them; either may fill its row."""
    is_pair = draw(st.booleans())
    most = LENGTH - 2 - is_pair
    size = draw(st.just(most) | st.integers(1 + is_pair, most))
    first = draw(st.integers(1, size - 1)) if is_pair else size
    chosen = draw(st.sets(st.integers(1, size + 1), max_size=PREDICTIONS))
    return masked(first, size - first, chosen, draw(st.integers(0, 1)))


def padded(rows):
    """Returns the examples as a batch of the reader."""
    batch = {name: [] for name in (feature.name for feature in schema.FEATURES)}
    for tokens, segments, slots, label in rows:
        rest = [0] * (LENGTH - len(tokens))
        places, labels, weights = zip(
            *slots, *[NO_PREDICTION] * (PREDICTIONS - len(slots)), strict=True
        )
        batch["input_ids"].append(tokens + rest)
        batch["input_mask"].append([1] * len(tokens) + rest)
        batch["segment_ids"].append(segments + rest)
        batch["masked_lm_positions"].append(places)
        batch["masked_lm_ids"].append(labels)
        batch["masked_lm_weights"].append(weights)
        batch["next_sentence_labels"].append([label])
    return {name: tf.constant(values) for name, values in batch.items()}


def cast_by_hand(row, objective):
    """Transforms the example token by token; each token carries its label."""
    labels = {place: token for place, token, _ in row.slots}
    marked = [(token, labels.get(place)) for place, token in enumerate(row.tokens)]
    first = marked[: row.segments.count(0)]
    second = marked[len(first) :]
    separator = (SEP, None)
    if objective != "bidirectional" and (row.label or not second):
        second = []
        if objective == "seq2seq":
            text = first[1:-1]
            half = len(text) // 2
            first = [first[0], *text[:half], separator]
            second = [*text[half:], separator]
    elif objective in ("left_to_right", "right_to_left"):
        first, second = first[:-1] + second, []
    ids = SEGMENT_IDS[objective]
    whole = (first + second)[:LENGTH]
    places = {label: place for place, (_, label) in enumerate(whole)}
    return Example(
        [token for token, _ in whole],
        ([ids[0]] * len(first) + [ids[1]] * len(second))[:LENGTH],
        [
            (places[token], token, 1.0) if token in places else NO_PREDICTION
            for _, token, _ in row.slots
        ],
        row.label,
    )


SHARES = st.dictionaries(st.sampled_from(OBJECTIVES), st.floats(0.1, 1), min_size=1)
ROWS = st.lists(st.tuples(st.integers(0, 2**62), examples()), min_size=1, max_size=8)


def batch_for(shares, rows, seed):
    """Returns the batch of (number, `Example`)s for a mixture, and the objective drawn for each."""
    mixture = ObjectiveMixture(shares)
    batch, numbers = padded([row for _, row in rows]), [number for number, _ in rows]
    for transform in mixture.transforms(ExampleSettings(schema.Lengths(LENGTH, PREDICTIONS))):
        batch = transform(batch, tf.constant(numbers, tf.int64), seed)
    drawn = batch.pop("objective_ids", tf.zeros((len(rows), 1), tf.int32))
    assert (drawn.dtype, drawn.shape) == (tf.int32, (len(rows), 1))
    return batch, [list(mixture.objectives)[place] for place in drawn.numpy()[:, 0]]


def values_of(batch):
    return {name: (values.dtype, values.numpy().tolist()) for name, values in batch.items()}


@laws.examples(100)
@given(SHARES, ROWS, st.integers())
@example({"seq2seq": 1.0}, [(0, masked(LENGTH - 2, 0, {1, 5, 12}, 0))], 0)  # a text fills its row
def test_rows_are_cast_as_by_hand_for_what_is_drawn(shares, rows, seed):
    found, drawn = batch_for(shares, rows, seed)
    expected = [cast_by_hand(row, name) for (_, row), name in zip(rows, drawn, strict=True)]
    assert values_of(found) == values_of(padded(expected))
