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


def shifted(values, row, vocabulary):
    values["input_ids"][row] = np.roll(values["input_ids"][row], 1)


def cut(values, row, vocabulary):
    values["input_mask"][row, values["input_mask"][row].sum() - 1] = False


def padded_with_text(values, row, vocabulary):
    values["input_ids"][row, -1] = 301


def overrun(values, row, vocabulary):
    """Like a row that is longer than its place: it has no end, and its rest is elsewhere."""
    values["input_ids"][row] = 300
    values["input_mask"][row] = True


def of_a_larger_vocabulary(values, row, vocabulary):
    values["input_ids"][row, 1] = len(vocabulary)


def predicting_the_end(values, row, vocabulary):
    values["masked_lm_positions"][row, 0] = values["input_mask"][row].sum() - 1


def predicting_the_beginning(values, row, vocabulary):
    values["masked_lm_positions"][row, 0] = 0


def with_a_word_at_the_beginning(values, row, vocabulary):
    values["word_starts"][row, 0] = True


FAULTS = {
    shifted: "do not begin with",
    cut: "do not end with",
    padded_with_text: "have tokens after",
    overrun: "do not begin with",
    of_a_larger_vocabulary: "hold ids outside",
    predicting_the_end: "predict tokens outside",
    predicting_the_beginning: "predict tokens outside",
    with_a_word_at_the_beginning: "have words outside",
}


@laws.examples(60)
@given(
    st.lists(st.integers(4, T - 1), min_size=1, max_size=6),
    st.sampled_from(sorted(FAULTS, key=lambda fault: fault.__name__)),
    st.integers(0, 5),
)
def test_one_fault_in_good_rows_is_found(vocabulary, lengths, spoil, row):
    is_masked = spoil is not with_a_word_at_the_beginning
    values = good_rows(vocabulary, lengths, is_masked)
    check_rows(values, sum(lengths), vocabulary)
    spoil(values, row % len(lengths), vocabulary)
    with pytest.raises(RuntimeError, match=FAULTS[spoil]) as error:
        check_rows(values, sum(lengths), vocabulary)
    assert "defect of nezha_tf" in str(error.value)


def test_a_row_too_short_or_too_long_for_its_text_is_found(vocabulary):
    values = good_rows(vocabulary, [5, 7], is_masked=True)
    for wrong in (11, 13):
        with pytest.raises(RuntimeError, match="longer or shorter than their text"):
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
    maker = ShardMaker(Settings(str(path), pair="none", masking="none", max_seq_length=8))
    with pytest.raises(RuntimeError, match="a defect of nezha_tf"):
        list(maker.make([(number, ["一二三"]) for number in range(20)], 1))
