"""The check of rows before writing finds each change in good rows."""

import laws
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nezha_tf.corpus import shard_maker
from nezha_tf.corpus.row_check import check_rows
from nezha_tf.corpus.settings import Settings
from nezha_tf.corpus.shard_maker import ShardMaker

T = 12


def good_rows(vocabulary, lengths, is_masked):
    """Returns examples [CLS] text [SEP], with the last token predicted or a word start first."""
    lengths = np.array(lengths)
    places = np.arange(T)
    is_used = places < lengths[:, None]
    ids = np.where(is_used, 300, 0)
    ids[:, 0] = vocabulary.cls_id
    ids[np.arange(len(ids)), lengths - 1] = vocabulary.sep_id
    values = {"input_ids": ids, "input_mask": is_used}
    if not is_masked:
        return {**values, "word_starts": is_used & (places == 1)}
    return {
        **values,
        "masked_lm_positions": np.stack([lengths - 2, 0 * lengths], axis=1),
        "masked_lm_ids": np.full((len(ids), 2), 300) * [1, 0],
        "masked_lm_weights": np.array([[1.0, 0.0]] * len(ids), np.float32),
    }


def packed_rows(vocabulary, lengths, is_masked):
    """Returns rows of two texts: the second one is [CLS], a token, [SEP], the first the rest."""
    values = good_rows(vocabulary, lengths, is_masked)
    rows, lengths = np.arange(len(lengths)), np.array(lengths)
    values["input_ids"][rows, lengths - 3] = vocabulary.cls_id
    values["input_ids"][rows, lengths - 4] = vocabulary.sep_id
    places = np.arange(T)
    is_second = places >= lengths[:, None] - 3
    values["text_ids"] = (1 + is_second) * values["input_mask"]
    # The writer has the starts of words in either case.
    is_start = (places == 1) | (places == lengths[:, None] - 2)
    return {**values, "word_starts": is_start & values["input_mask"]}


# What is changed in a row: (a part of the message, feature, place, value); both may be the end.
END, OUTSIDE = "the last token", "the size of the vocabulary"
FAULTS = (
    ("a first token", "input_ids", 0, 300),
    ("a first token", "input_ids", slice(None), 300),  # as of a row longer than its place
    ("a last token", "input_mask", END, False),
    ("padding that is not", "input_ids", -1, 301),
    ("numbers out of range", "input_ids", 1, OUTSIDE),
    ("predictions outside the text", "masked_lm_positions", 0, END),
    ("predictions outside the text", "masked_lm_positions", 0, 0),
    ("words that do not begin", "word_starts", 0, True),
)


@laws.examples(60)
@given(
    st.lists(st.integers(4, T - 1), min_size=1, max_size=6),
    st.sampled_from(FAULTS),
    st.integers(0, 5),
)
def test_one_fault_in_good_rows_is_found(vocabulary, lengths, fault, row):
    message, feature, place, value = fault
    values, row = good_rows(vocabulary, lengths, feature != "word_starts"), row % len(lengths)
    check_rows(values, sum(lengths), vocabulary)
    named = {END: lengths[row] - 1, OUTSIDE: len(vocabulary)}
    place = place if isinstance(place, slice) else named.get(place, place)
    values[feature][row, place] = named.get(value, value)
    with pytest.raises(RuntimeError, match=message) as error:
        check_rows(values, sum(lengths), vocabulary)
    assert "defect of nezha_tf" in str(error.value)


@laws.examples(30)
@given(st.lists(st.integers(6, T - 1), min_size=1, max_size=6), st.booleans(), st.data())
def test_a_wrong_number_of_a_text_is_found(vocabulary, lengths, is_masked, data):
    """Any other number at any place, in padding too; and a [CLS] where no text begins."""
    values = packed_rows(vocabulary, lengths, is_masked)
    check_rows(values, sum(lengths), vocabulary)
    row, place = data.draw(st.integers(0, len(lengths) - 1)), data.draw(st.integers(0, T - 1))
    right = int(values["text_ids"][row, place])
    values["text_ids"][row, place] = data.draw(st.integers(0, 3).filter(lambda n: n != right))
    with pytest.raises(RuntimeError, match="texts that do not begin with"):
        check_rows(values, sum(lengths), vocabulary)
    values["text_ids"][row, place] = right
    values["text_ids"][values["text_ids"] == 2] = 1
    if is_masked:  # a token may have been replaced by [CLS]
        check_rows(values, sum(lengths), vocabulary)
    else:
        with pytest.raises(RuntimeError, match="texts that do not begin with"):
            check_rows(values, sum(lengths), vocabulary)


def test_a_row_too_short_or_too_long_for_its_text_is_found(vocabulary):
    values = good_rows(vocabulary, [5, 7], is_masked=True)
    for wrong in (11, 13):
        with pytest.raises(RuntimeError, match="more or fewer tokens than their text"):
            check_rows(values, wrong, vocabulary)


def test_the_packing_that_once_wrote_corrupt_shards_ends_the_run(monkeypatch, vocabulary, tmp_path):
    """A range beyond its row, as a full row before a shard's first document once gave."""

    def overrunning(tokens, max_seq_length, order):
        yield ((0, 3 * max_seq_length),), 0
        for start in range(0, len(tokens.ids), 3):
            yield ((start, start + 3),), 0

    monkeypatch.setattr(shard_maker, "pack_full_sentences", overrunning)
    path = tmp_path / "vocab.txt"
    path.write_text("\n".join(vocabulary.tokens), encoding="utf-8")
    rows = {"pair": "none", "masking": "none", "max_seq_length": 8}
    maker = ShardMaker(Settings(str(path), segmenter="rjieba", **rows))
    with pytest.raises(RuntimeError, match="a defect of nezha_tf"):
        list(maker.make([(number, ["一二三"]) for number in range(20)], 1))
