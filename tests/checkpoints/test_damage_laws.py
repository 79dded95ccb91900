"""Property tests of damaged checkpoints: visible damage gives one line, other damage no change."""

import json

import laws
import numpy as np
import pytest
from checkpoint_models import assert_equal
from hypothesis import example, given
from hypothesis import strategies as st

from nezha_tf.checkpoints import tf1
from nezha_tf.checkpoints.hugging_face import write_safetensors
from nezha_tf.checkpoints.loading import open_checkpoint
from nezha_tf.util.errors import UserError

INDEX, DATA, SAFETENSORS = "m.index", "m.data-00000-of-00001", "m.safetensors"
RNG = np.random.default_rng(0)
TENSORS = {
    "bert/pooler/dense/kernel": RNG.normal(size=(3, 4)).astype("float32"),
    "bert/pooler/dense/bias": RNG.normal(size=4).astype("float16"),
    "bert/embeddings/word_embeddings": RNG.normal(size=(5, 3)).astype("float32"),
    "global_step": np.int64(7),
}


@pytest.fixture(scope="module")
def contents(tmp_path_factory):
    """Returns {name: bytes} of the files of a checkpoint in either layout."""
    folder = tmp_path_factory.mktemp("whole")
    tf1.write_tensors(folder / "m", TENSORS)
    theirs = {
        "bert.pooler.dense.weight": TENSORS["bert/pooler/dense/kernel"].T.copy(),
        "bert.pooler.dense.bias": TENSORS["bert/pooler/dense/bias"],
        "bert.embeddings.word_embeddings.weight": TENSORS["bert/embeddings/word_embeddings"],
    }
    write_safetensors(folder / SAFETENSORS, theirs)
    return {name: (folder / name).read_bytes() for name in (INDEX, DATA, SAFETENSORS)}


def tensors_in(path):
    """Returns all tensors of a checkpoint by name, or None if it is refused with one line."""
    try:
        _, reader = open_checkpoint(path)
        names = reader.get_variable_to_shape_map()
        return {name: reader.get_tensor(name) for name in names}
    except UserError as error:
        assert len(str(error).splitlines()) == 1 and "m" in str(error)
        return None


def read_with(folder, contents, name, content):
    """Returns the tensors if one of TF1's files has other contents."""
    for file in (INDEX, DATA):
        (folder / file).write_bytes(content if file == name else contents[file])
    return tensors_in(folder / "m")


FILES = st.sampled_from((INDEX, DATA))


@laws.examples(150)
@given(name=FILES, data=st.data())
def test_a_file_of_tf1_that_is_cut_short_is_refused(tmp_path, contents, name, data):
    content = contents[name]
    cut = content[: data.draw(st.integers(0, len(content) - 1))]
    assert read_with(tmp_path, contents, name, cut) is None


@laws.examples(250)
@given(name=FILES, place=st.floats(0, 1, exclude_max=True), bits=st.integers(1, 255))
# The footer then says that the index of the index lies after the end of the file.
@example(name=INDEX, place=0.97, bits=0xFF)
def test_a_changed_byte_of_tf1_is_refused_or_changes_nothing(tmp_path, contents, name, place, bits):
    """Some bytes of an index are padding, or belong to an empty part."""
    content = bytearray(contents[name])
    content[int(place * len(content))] ^= bits
    found = read_with(tmp_path, contents, name, bytes(content))
    assert found is None or name == INDEX
    if found is not None:
        expected = {weight: np.asarray(value) for weight, value in TENSORS.items()}
        assert_equal({weight: np.asarray(value) for weight, value in found.items()}, expected)


@laws.examples(150)
@given(data=st.data())
def test_a_safetensors_file_that_is_cut_short_is_refused(tmp_path, contents, data):
    content = contents[SAFETENSORS]
    path = tmp_path / SAFETENSORS
    path.write_bytes(content[: data.draw(st.integers(0, len(content) - 1))])
    assert tensors_in(path) is None


@laws.examples(250)
@given(data=st.data())
def test_changed_bytes_of_a_safetensors_file_are_weights_or_an_error(tmp_path, contents, data):
    """The format has no checksums: a changed byte may be another weight or another name."""
    content = bytearray(contents[SAFETENSORS])
    header = 8 + int.from_bytes(content[:8], "little")
    for _ in range(data.draw(st.integers(1, 3))):
        # Letters and digits give other JSON; most other bytes give no JSON. A backslash before a
        # letter of a name would make a line break.
        letters = st.sampled_from(b'0123456789FBIUabe{}[]",: -.')
        value = letters | st.integers(0, 255).filter(lambda code: code != ord("\\"))
        content[data.draw(st.integers(0, header - 1))] = data.draw(value)
    path = tmp_path / SAFETENSORS
    path.write_bytes(content)
    for value in (tensors_in(path) or {}).values():
        assert np.issubdtype(value.dtype, np.floating)


TYPES = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "F8_E4M3": 1, "F8_E5M2": 1, "F8_E8M0": 1}
TYPES |= {"F4": 0.5, "I64": 8, "I32": 4, "I8": 1, "U8": 1, "U64": 8, "BOOL": 1, "C64": 8, "X": 1}
NAMES = st.sampled_from(["bert.pooler.dense.weight", "cls.predictions.decoder.weight", "a"])
NAMES |= st.text(st.characters(exclude_categories=["C", "Z"]), max_size=5)


@laws.examples(250)
@given(
    kinds=st.dictionaries(NAMES, st.sampled_from(sorted(TYPES)), min_size=1, max_size=3),
    shape=st.lists(st.integers(0, 4), max_size=3),
)
def test_tensors_of_any_type_are_weights_or_an_error(tmp_path, kinds, shape):
    header, end = {}, 0
    for name, kind in kinds.items():
        start, end = end, end + int(np.prod(shape, dtype=int) * TYPES[kind])
        header[name] = {"dtype": kind, "shape": shape, "data_offsets": [start, end]}
    written = json.dumps(header).encode()
    path = tmp_path / SAFETENSORS
    path.write_bytes(len(written).to_bytes(8, "little") + written + bytes(end))
    found = tensors_in(path)
    if not set(kinds.values()) <= {"F64", "F32", "F16", "BF16"}:
        assert found is None
    elif len(kinds) == 1 and found:
        (value,) = found.values()
        assert sorted(value.shape) == sorted(shape)


@pytest.mark.parametrize("shape", [[1] * 100, [0, 2**62]])
def test_a_shape_that_no_array_has_is_damage(tmp_path, shape):
    values = {"dtype": "F32", "shape": shape, "data_offsets": [0, 4 * min(shape)]}
    written = json.dumps({"a": values}).encode()
    path = tmp_path / SAFETENSORS
    path.write_bytes(len(written).to_bytes(8, "little") + written + bytes(4 * min(shape)))
    with pytest.raises(UserError, match=r"is damaged at a: "):
        open_checkpoint(path)[1].get_tensor("a")
