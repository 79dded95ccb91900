"""TF1's checkpoints: our reader against TensorFlow's, awkward paths, and indexes that lie."""

import os
import pathlib
import tempfile

import laws
import numpy as np
import pytest
import tensorflow as tf
from checkpoint_models import assert_equal
from hypothesis import example, given
from hypothesis import strategies as st
from tensorflow.core.framework import types_pb2
from tensorflow.core.protobuf import tensor_bundle_pb2

from nezha_tf.checkpoints import loading, tf1
from nezha_tf.data.framing import masked_crc
from nezha_tf.util.errors import UserError

RNG = np.random.default_rng(0)
KINDS = ("float16", "bfloat16", "float32", "float64", "complex64", "bool", "int8", "uint64")


def read(path):
    """Returns {name: array} by our reader."""
    _, reader = tf1.open_checkpoint(path)
    found = {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}
    assert {n: list(v.shape) for n, v in found.items()} == reader.get_variable_to_shape_map()
    return found


def read_by_tensorflow(prefix):
    reader = tf.train.load_checkpoint(str(prefix))
    return {
        name: np.asarray(reader.get_tensor(name)) for name in reader.get_variable_to_shape_map()
    }


def save_parts(prefix, name, shape, parts):
    """Saves a float32 tensor of random values in parts, as a `partitioner` of TF1 does.

    Args:
      parts: for each part, a list of (first index, length) for each dimension.
    """
    size = " ".join(map(str, shape))
    places = [":".join(f"{start},{length}" for start, length in part) for part in parts]
    tf.raw_ops.SaveV2(
        prefix=str(prefix),
        tensor_names=[name] * len(parts),
        shape_and_slices=[f"{size} {place}" for place in places],
        tensors=[RNG.normal(size=[n for _, n in part]).astype("float32") for part in parts],
    )


def test_tensors_are_those_that_tensorflow_reads(tmp_path):
    """Of all types and shapes; many, so that the index has several blocks; in parts and files."""
    shapes = ((), (0, 3), (1,), (2, 3), (2, 1, 2, 2))
    tensors = {
        f"{kind}/{len(shape)}": tf.cast(RNG.normal(size=shape) * 9, kind).numpy()
        for kind in KINDS
        for shape in shapes
    }
    tensors |= {f"bert/encoder/layer_{n}/层": np.float32(n) for n in range(300)}
    tf1.write_tensors(tmp_path / "all", tensors)
    assert_equal(read(tmp_path / "all"), read_by_tensorflow(tmp_path / "all"))
    assert_equal(read(tmp_path / "all"), {n: np.asarray(v) for n, v in tensors.items()})
    # In the name of a part, 100 takes two bytes, and 9000 three.
    save_parts(tmp_path / "long", "层", (9100, 2), [[(0, 9000), (0, 2)], [(9000, 100), (0, 2)]])
    quarters = [[rows, columns] for rows in ((0, 1), (1, 2)) for columns in ((0, 2), (2, 2))]
    save_parts(tmp_path / "quarters", "q", (3, 4), quarters)
    tf.raw_ops.MergeV2Checkpoints(
        checkpoint_prefixes=[str(tmp_path / name) for name in ("long", "quarters", "all")],
        destination_prefix=str(tmp_path / "merged"),
    )
    assert (tmp_path / "merged.data-00002-of-00003").exists()
    found = read(tmp_path / "merged")
    assert found["q"].shape == (3, 4) and found["层"].shape == (9100, 2)
    assert_equal(found, read_by_tensorflow(tmp_path / "merged"))


# Classes, stars, backslashes and blanks, of which TensorFlow's reader takes some for patterns.
NAMES = st.text(st.sampled_from("[]!1-*?\\{}ab 层'\"%~$&#\n"), min_size=1, max_size=6)


@laws.examples(20)
@given(folder=NAMES.filter(lambda name: name.strip(". ")), name=NAMES)
@example(folder="seed[1]", name="model[1].ckpt")
@example(folder="a\\b", name="*")
def test_what_is_written_under_any_name_can_be_read(tmp_path, folder, name):
    parent = pathlib.Path(tempfile.mkdtemp(dir=tmp_path))
    folder, neighbour = parent / folder, parent / "1"
    tensors = {"a/kernel": RNG.normal(size=(2, 2)).astype("float32")}
    tf1.write_tensors(neighbour / name, {"b": np.float32(1)})  # what a pattern would match
    tf1.write_tensors(folder / name, tensors)
    tf1.name_newest(str(folder), [name])
    assert_equal(read(folder / name), tensors)
    prefix, _ = tf1.open_checkpoint(folder)
    assert prefix == os.path.join(folder, name)
    files = {"checkpoint", f"{name}.index", f"{name}.data-00000-of-00001"}
    assert {path.name for path in folder.iterdir()} == files


def entry(**changes):
    """Returns the entry of `lie`'s tensor, [2, 3] of float32, with changes."""
    values = {"dtype": types_pb2.DT_FLOAT, "size": 24, "crc32c": masked_crc(bytes(24)), **changes}
    shape = values.pop("shape", [2, 3])
    proto = tensor_bundle_pb2.BundleEntryProto(**values)
    for size in shape:
        proto.shape.dim.add(size=size)
    return proto


def write_index(path, entries):
    """Writes an index with right checksums; entries are {key: message}, all in one block."""
    handles, content = [], b""
    header = tensor_bundle_pb2.BundleHeaderProto(num_shards=1)
    rows = {b"": header.SerializeToString()}
    rows |= {key: value.SerializeToString() for key, value in entries.items()}
    for block in (rows, {}):
        handles.append(varint(len(content)) + varint(len(encoded(block))))
        content += checked(encoded(block))
    index = encoded({b"z": handles[0]})
    footer = handles[1] + varint(len(content)) + varint(len(index))
    magic = 0xDB4775248B80FB57
    path.write_bytes(
        content + checked(index) + footer.ljust(40, b"\0") + magic.to_bytes(8, "little")
    )


def encoded(rows):
    """Returns a block of {key: value} whose keys share nothing."""
    body = b"".join(
        b"\0" + varint(len(key)) + varint(len(value)) + key + value for key, value in rows.items()
    )
    return body + bytes(4) + (1).to_bytes(4, "little")


def checked(block):
    return block + b"\0" + masked_crc(block + b"\0").to_bytes(4, "little")


def varint(number):
    low, rest = number & 127, number >> 7
    return bytes([low | 128]) + varint(rest) if rest else bytes([low])


LIES = {
    "type": {"dtype": 999},
    "no type": {"dtype": 0},
    "reference": {"dtype": types_pb2.DT_FLOAT_REF},
    "negative": {"shape": [-2, -3]},
    "huge": {"shape": [2**62, 2**62]},
    "nothing, in huge dimensions": {"shape": [0, 2**62], "size": 0},
    "dimensions": {"shape": [1] * 200, "size": 4},
    "size": {"size": 20},
    "offset": {"offset": -8},
    "behind the end": {"offset": 8},
    "far behind the end": {"offset": 2**62},
    "terabytes": {"shape": [2**40], "size": 2**42},
    "file": {"shard_id": 5},
    "negative file": {"shard_id": -1},
    "checksum": {"crc32c": 1},
}


def test_indexes_that_lie_are_refused(tmp_path):
    """Each ends TensorFlow's reader, or the process, if its checksums are right."""
    (tmp_path / "m.data-00000-of-00001").write_bytes(bytes(24))
    write_index(tmp_path / "m.index", {b"w": entry()})
    np.testing.assert_array_equal(read(tmp_path / "m")["w"], np.zeros((2, 3)))
    assert_equal(read(tmp_path / "m"), read_by_tensorflow(tmp_path / "m"))
    for changes in LIES.values():
        write_index(tmp_path / "m.index", {b"w": entry(**changes)})
        assert_refused(tmp_path / "m")


def assert_refused(path):
    with pytest.raises(UserError) as error:
        read(path)
    assert len(str(error.value).splitlines()) == 1 and str(path) in str(error.value)


def test_a_file_that_names_no_newest_checkpoint_is_told(tmp_path):
    for content in (b"", b"\xff\xfe", b'model_checkpoint_path: ""'):
        (tmp_path / "checkpoint").write_bytes(content)
        with pytest.raises(UserError, match=f"^{tmp_path}/checkpoint is damaged: .*itself$"):
            tf1.open_checkpoint(tmp_path)


@laws.examples(60)
@given(place=st.floats(0, 1, exclude_max=True), bits=st.integers(1, 255), other=st.integers(0, 255))
def test_changed_bytes_with_right_checksums_are_tensors_or_an_error(tmp_path, place, bits, other):
    rows = {f"bert/{n}".encode(): entry(offset=0) for n in range(3)}
    (tmp_path / "m.data-00000-of-00001").write_bytes(bytes(24))
    write_index(tmp_path / "m.index", rows)
    content = bytearray((tmp_path / "m.index").read_bytes())
    size = content.index(bytes(4) + b"\1\0\0\0") + 8  # of the block of entries
    content[int(place * size)] ^= bits
    content[int(place * size * other / 256)] ^= bits
    content[size : size + 5] = checked(bytes(content[:size]))[-5:]
    (tmp_path / "m.index").write_bytes(content)
    try:
        for value in read(tmp_path / "m").values():
            assert value.nbytes <= 24
    except UserError as error:
        assert len(str(error).splitlines()) == 1


@pytest.mark.parametrize("kind", ["int8", "int64", "bool", "complex64", "qint8", "float8_e5m2"])
def test_weights_that_are_no_floats_are_refused(tmp_path, kind):
    """As those of safetensors are; a step is a whole number, and no float."""
    is_quantised = kind == "qint8"
    value = (
        tf.quantization.quantize([1.0], 0, 2, tf.qint8)[0] if is_quantised else tf.cast([1.0], kind)
    )
    tf1.write_tensors(tmp_path / "m", {"w": value, "global_step": np.int64(3)})
    weight, step = tf.Variable([0.5]), tf.Variable(0, dtype=tf.int64)
    opened = tf1.open_checkpoint(tmp_path / "m")
    with pytest.raises(UserError, match=f"w is of {kind}; only floating-point weights"):
        loading.assign(*opened, {"w": weight})
    assert loading.assign(*opened, {"global_step": step}) == [] and step == 3 and weight == 0.5
    with pytest.raises(UserError, match="global_step is of int64"):
        loading.assign(*opened, {"global_step": tf.Variable(0.5)})
