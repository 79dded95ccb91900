"""Laws of UniLM's mixture: any examples, cast one by one in plain Python."""

from typing import NamedTuple

import laws
import tensorflow as tf
from hypothesis import example, given
from hypothesis import strategies as st

from nezha_tf.config import SEGMENT_IDS
from nezha_tf.data import schema
from nezha_tf.data.corruption.objective_mixture import OBJECTIVES, ObjectiveMixture

CLS, SEP, MASK = 101, 102, 103
LENGTH, PREDICTIONS = 14, 5
NO_PREDICTION = 0, 0, 0.0


class Example(NamedTuple):
    """Lists without padding: pieces with [MASK], segment ids, (place, piece, weight) of slots."""

    pieces: list
    segments: list
    slots: list
    label: int


def masked(first, second, chosen, label):
    """The `Example` of texts of so many pieces; there is no second one where that has none.

    No piece is there twice, so that a label tells where it belongs.
    """
    text = list(range(200, 200 + first + second))
    pieces = [CLS, *text[:first], SEP, *text[first:], *[SEP] * (second > 0)]
    segments = [0] * (first + 2) + [1] * (len(pieces) - first - 2)
    places = sorted(place for place in chosen if pieces[place] in text)
    slots = [(place, pieces[place], 1.0) for place in places]
    pieces = [MASK if place in places else piece for place, piece in enumerate(pieces)]
    return Example(pieces, segments, slots, label)


@st.composite
def examples(draw):
    """Pairs, and single texts as other programs write them; either may fill its row."""
    is_pair = draw(st.booleans())
    most = LENGTH - 2 - is_pair
    size = draw(st.just(most) | st.integers(1 + is_pair, most))
    first = draw(st.integers(1, size - 1)) if is_pair else size
    chosen = draw(st.sets(st.integers(1, size + 1), max_size=PREDICTIONS))
    return masked(first, size - first, chosen, draw(st.integers(0, 1)))


def padded(rows):
    """The examples as a batch of the reader."""
    batch = {name: [] for name in (feature.name for feature in schema.FEATURES)}
    for pieces, segments, slots, label in rows:
        rest = [0] * (LENGTH - len(pieces))
        places, labels, weights = zip(
            *slots, *[NO_PREDICTION] * (PREDICTIONS - len(slots)), strict=True
        )
        batch["input_ids"].append(pieces + rest)
        batch["input_mask"].append([1] * len(pieces) + rest)
        batch["segment_ids"].append(segments + rest)
        batch["masked_lm_positions"].append(places)
        batch["masked_lm_ids"].append(labels)
        batch["masked_lm_weights"].append(weights)
        batch["next_sentence_labels"].append([label])
    return {name: tf.constant(values) for name, values in batch.items()}


def cast_by_hand(row, objective):
    """The example cast, piece by piece, with each piece's label carried along."""
    labels = {place: piece for place, piece, _ in row.slots}
    marked = [(piece, labels.get(place)) for place, piece in enumerate(row.pieces)]
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
        [piece for piece, _ in whole],
        ([ids[0]] * len(first) + [ids[1]] * len(second))[:LENGTH],
        [
            (places[piece], piece, 1.0) if piece in places else NO_PREDICTION
            for _, piece, _ in row.slots
        ],
        row.label,
    )


SHARES = st.dictionaries(st.sampled_from(OBJECTIVES), st.floats(0.1, 1), min_size=1)
NUMBERS = st.integers(0, 2**62)


@laws.examples(100)
@given(SHARES, st.lists(st.tuples(NUMBERS, examples()), min_size=1, max_size=8), st.integers())
@example({"seq2seq": 1.0}, [(0, masked(LENGTH - 2, 0, {1, 5, 12}, 0))], 0)  # a text fills its row
def test_rows_are_cast_as_by_hand_for_what_is_drawn(shares, rows, seed):
    mixture = ObjectiveMixture(shares)
    numbers = tf.constant([number for number, _ in rows], tf.int64)
    rows = [row for _, row in rows]
    found = mixture(padded(rows), numbers, seed)
    drawn = mixture.draw(numbers, seed).numpy()
    expected = padded(
        [cast_by_hand(row, mixture.names[place]) for row, place in zip(rows, drawn, strict=True)]
    )
    assert found.keys() == expected.keys()
    for name, values in expected.items():
        assert found[name].dtype == values.dtype, name
        assert found[name].numpy().tolist() == values.numpy().tolist(), name


@laws.examples(50)
@given(SHARES, st.lists(NUMBERS, min_size=1, max_size=8), st.integers(), st.randoms())
def test_a_draw_depends_on_seed_and_number_alone(shares, numbers, seed, random):
    """Not on what else is in the batch, nor on where it is there."""
    mixture = ObjectiveMixture(shares)

    def draw(numbers):
        return mixture.draw(tf.constant(numbers, tf.int64), seed).numpy().tolist()

    whole = dict(zip(numbers, draw(numbers), strict=True))
    others = random.sample(numbers, len(numbers))
    assert draw(others) == [whole[number] for number in others]
    assert all(draw([number]) == [place] for number, place in whole.items())
