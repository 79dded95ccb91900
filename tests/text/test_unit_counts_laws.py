"""Property tests of counting: any files in any stretches, against one loop over their lines."""

import collections
import gzip

import laws
from any_texts import texts
from hypothesis import example, given
from hypothesis import strategies as st
from plain_vocabulary import token_counts

from nezha_tf.data import corpus
from nezha_tf.text.vocabulary_builder import UnitCounter, basic_tokens_of


@laws.examples(100)
@given(
    st.lists(st.tuples(texts(max_parts=30), st.booleans()), min_size=1, max_size=3),
    st.integers(1, 40) | st.just(1000),
    st.booleans(),
)
# The lower case of a sigma depends on what stands before it and behind it, punctuation included.
@example([("ΑΣ\u200b.a ΑΣ，Β ΑΣ中Β", False)], 4, True)
@example([("abc" * 9 + " 中" + "d.e" * 9, False)], 5, True)
def test_counts_are_those_of_one_loop_for_any_cut(tmp_path, monkeypatch, files, size, lower):
    monkeypatch.setattr(corpus, "STRETCH_BYTES", size)
    counter, units, paths = UnitCounter(lower), collections.Counter(), []
    for number, (text, is_packed) in enumerate(files):
        path = tmp_path / f"{number}.txt{'.gz' * is_packed}"
        data = text.encode()
        path.write_bytes(gzip.compress(data) if is_packed else data)
        paths.append(str(path))
        stretches = list(corpus.read_stretches(paths[-1]))
        assert b"".join(stretches) == data
        for stretch in stretches:
            for found in counter.count(corpus.decoded(stretch, paths[-1])):
                units.update(found)
    assert basic_tokens_of(units, lower) == token_counts(paths, lower)
