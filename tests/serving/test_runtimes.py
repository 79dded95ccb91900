"""TFLite and ONNX from an export, run by their own interpreters."""

import re
import sys

import export_folders
import numpy as np
import pytest
import tensorflow as tf
from commands import assert_one_line, run
from export_folders import VOCABULARY, ask, make_export, write_folder

from nezha_tf import FullTokenizer
from nezha_tf.checkpoints.tf1 import write_tensors
from nezha_tf.serving import runtimes
from nezha_tf.serving.export import export_folder
from nezha_tf.serving.runtimes import convert_export
from nezha_tf.serving.settings import ConvertExportSettings
from nezha_tf.util.errors import UserError

SETTINGS = {
    "task": "classification",
    "max_seq_length": 24,
    "label_type": "single",
    "labels": ["差评", "好评", "中评"],
    "is_pair": False,
}
QUESTIONS = {**export_folders.SETTINGS["questions"], "max_seq_length": 24}
CHOICES = {"task": "multiple_choice", "max_seq_length": 24, "has_blanks": False}
# Largest differences in probability.
TOLERANCES = {"float32": 1e-5, "float16": 2e-3, "dynamic_range": 3e-2}


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    return make_export(tmp_path_factory.mktemp("runtimes") / "model", SETTINGS)


@pytest.fixture(scope="module")
def choices(tmp_path_factory):
    return make_export(tmp_path_factory.mktemp("choices") / "model", CHOICES)


@pytest.fixture(scope="module")
def exact_gelu(tmp_path_factory):
    """As most of Hugging Face's models have it."""
    return make_export(tmp_path_factory.mktemp("exact") / "model", SETTINGS, hidden_act="gelu_erf")


def convert(saved_model, output_file, variant="float32", **settings):
    paths = {"saved_model": str(saved_model), "output_file": str(output_file)}
    return convert_export(ConvertExportSettings(**paths, variant=variant, **settings))


def onnx_runner(path):
    onnxruntime = pytest.importorskip("onnxruntime")
    session = onnxruntime.InferenceSession(str(path))
    names = [output.name for output in session.get_outputs()]
    return lambda **inputs: dict(zip(names, session.run(None, inputs), strict=True))


def assert_same(run, exported, tolerance, shapes=((1, 2), (6, 24), (3, 9))):
    """On batches of several shapes, padded too, whose answers differ."""
    rng, shares = np.random.default_rng(1), []
    for shape in shapes:
        lengths = rng.integers(2, shape[-1] + 1, (*shape[:-1], 1))
        mask = (np.arange(shape[-1]) < lengths).astype("int32")
        if len(shape) == 3:
            mask[0, -1] = 0  # a choice that is not there
        ids = rng.integers(5, 9000, shape).astype("int32") * mask
        inputs = {"input_ids": ids, "input_mask": mask, "segment_ids": np.zeros_like(ids)}
        expected = ask(exported, "from_ids", **inputs)["probabilities"]
        np.testing.assert_allclose(run(**inputs)["probabilities"], expected, atol=tolerance)
        shares += expected[:, 0].tolist()
    assert np.ptp(shares) > 0.01


@pytest.mark.filterwarnings("ignore:.*tf.lite.Interpreter is deprecated")
def test_tflite_in_three_sizes(exported, exact_gelu, choices, tmp_path):
    sizes, texts = [], tmp_path / "texts.txt"
    texts.write_text("房间很干净\n服务太差\n早餐好吃", encoding="utf-8")
    for variant, tolerance in TOLERANCES.items():
        path = tmp_path / f"{variant}.tflite"
        few = {} if variant == "float32" else {"texts": str(texts)}
        told = convert(exported, path, variant, **few)
        assert "probabilities" in told
        assert ("against float32" in told) == (variant != "float32")
        assert_same(
            tf.lite.Interpreter(str(path)).get_signature_runner("from_ids"), exported, tolerance
        )
        sizes.append(path.stat().st_size)
    assert sizes[1] < 0.6 * sizes[0] and sizes[2] < 0.6 * sizes[1]
    for saved_model, shapes in ((exact_gelu, ((6, 24),)), (choices, ((2, 4, 9), (1, 2, 24)))):
        convert(saved_model, path)
        runner = tf.lite.Interpreter(str(path)).get_signature_runner("from_ids")
        assert_same(runner, saved_model, 1e-5, shapes)


@pytest.mark.parametrize(
    "name, axes, shapes",
    (
        ("exported", ["batch", "tokens"], ((1, 2), (6, 24))),
        ("exact_gelu", ["batch", "tokens"], ((1, 2), (6, 24))),
        ("choices", ["batch", "choices", "tokens"], ((2, 4, 9), (1, 2, 24))),
    ),
)
def test_onnx(request, tmp_path, name, axes, shapes):
    onnxruntime = pytest.importorskip("onnxruntime")
    pytest.importorskip("tf2onnx")
    saved_model = request.getfixturevalue(name)
    convert(saved_model, tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(str(tmp_path / "model.onnx"))
    assert all(spec.shape == axes for spec in session.get_inputs())
    assert_same(onnx_runner(tmp_path / "model.onnx"), saved_model, 1e-5, shapes)


@pytest.mark.parametrize(
    "settings, shapes",
    (
        (SETTINGS, ((1, 2), (6, 24))),
        (CHOICES, ((2, 4, 9), (1, 2, 24))),
        (QUESTIONS, None),
    ),
)
def test_onnx_in_8_bits_tells_what_it_loses(tmp_path, settings, shapes):
    pytest.importorskip("onnxruntime")
    pytest.importorskip("tf2onnx")
    onnx = pytest.importorskip("onnx")
    export = make_export(tmp_path / "model", settings)
    texts = tmp_path / "texts.txt"
    lines = ["今天很冷。", "房间很干净，ABC服务也好。", "他去了长安城。", "不好", "雨下个不停"]
    texts.write_text("\n\n".join(lines) + "\n", encoding="utf-8")
    readme = (export / "README.md").read_text(encoding="utf-8")
    whole, small = tmp_path / "whole.onnx", tmp_path / "small.onnx"
    convert(export, whole)
    assert (export / "README.md").read_text(encoding="utf-8") == readme
    told = convert(export, small, "dynamic_range", texts=str(texts))
    assert small.stat().st_size < 0.5 * whole.stat().st_size
    # A processor with VNNI would not show that sums of int8 overflow on others.
    graph = onnx.load(small).graph
    dtypes = {tensor.name: tensor.data_type for tensor in graph.initializer}
    products = [node.input[1] for node in graph.node if node.op_type == "MatMulInteger"]
    assert {dtypes[name] for name in products if name in dtypes} == {onnx.TensorProto.UINT8}
    if shapes:
        assert_same(onnx_runner(small), export, TOLERANCES["dynamic_range"], shapes)
    # The table again, from the two files. The names in them, and so their sizes, vary a little.
    table = told[told.index("dynamic_range against float32") :]
    size = re.match(r"dynamic_range against float32 \((.*) bytes\), on 5 texts:\n", table)[1]
    assert abs(int(size.replace(",", "")) - whole.stat().st_size) < 5_000
    rows = {row.split("  ")[1]: row.split() for row in table.splitlines()[1:]}
    inputs = inputs_of(lines, 3 if settings is CHOICES else 2)
    one, other = onnx_runner(whole)(**inputs), onnx_runner(small)(**inputs)
    for name, values in one.items():
        if values.dtype.kind == "f":
            difference = np.abs(values - other[name])
            assert f"{difference.max():.1e}" in rows[name]
        else:
            assert f"{np.mean(values == other[name]):.2%}" in rows[name]
    text = (export / "README.md").read_text(encoding="utf-8")
    note = f"## `small.onnx`\n\n{small.stat().st_size:,} bytes.\n\n```text\n{table}\n```\n"
    assert text == f"{readme}\n{note}"
    # Again: the note is not there twice.
    convert(export, small, "dynamic_range", texts=str(texts))
    again = (export / "README.md").read_text(encoding="utf-8")
    assert again.count("## `small.onnx`") == 1 and again.startswith(readme)


def inputs_of(lines, rank):
    """Returns the inputs for texts with the tokenizer of Python, in their order."""
    tokenizer = FullTokenizer(str(VOCABULARY))
    lines = sorted(lines, key=lambda line: len(tokenizer.tokenize(line)))
    rows = [["[CLS]", *tokenizer.tokenize(line), "[SEP]"] for line in lines]
    rows = [tokenizer.convert_tokens_to_ids(row) for row in rows]
    rows += [[]] * (3 if rank == 3 else 0)
    ids = np.array([row + [0] * (max(map(len, rows)) - len(row)) for row in rows], "int32")
    ids = ids.reshape(2, 4, -1) if rank == 3 else ids
    mask = (ids > 0).astype("int32")
    return {"input_ids": ids, "input_mask": mask, "segment_ids": np.zeros_like(ids)}


@pytest.mark.filterwarnings("ignore:.*tf.lite.Interpreter is deprecated")
def test_a_model_of_nan_is_not_called_the_same(tmp_path):
    write_folder(tmp_path / "model", SETTINGS)
    reader = tf.train.load_checkpoint(str(tmp_path / "model" / "model.ckpt-1"))
    tensors = {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}
    tensors["bert/embeddings/LayerNorm/gamma"][:] = 3e38  # finite, but products are not
    write_tensors(tmp_path / "model" / "model.ckpt-1", tensors)
    export_folder(str(tmp_path / "model"), str(tmp_path / "export"))
    with pytest.raises(UserError, match=r"difference of probabilit\w+ .* is nan, so nothing is"):
        convert(tmp_path / "export", tmp_path / "out.tflite")
    assert not (tmp_path / "out.tflite").exists()


def test_mistakes_are_one_line(exported, tmp_path, tmp_path_factory, monkeypatch):
    for saved_model, name, variant, message in (
        (exported, "model.pb", "float32", r"must end in \.tflite or \.onnx"),
        (exported, "model.onnx", "float16", "--variant=float16 is for TFLite"),
        (tmp_path, "model.tflite", "float32", "is no export"),
    ):
        with pytest.raises(UserError, match=message):
            convert(saved_model, tmp_path / name, variant)
    for content, message in (
        (None, "--texts=.*texts.txt is not there"),
        (b"\n \n", "texts.txt has no text"),
        ("好".encode("gbk"), "texts.txt is not UTF-8; convert it"),
    ):
        texts = tmp_path_factory.mktemp("texts") / "texts.txt"
        if content is not None:
            texts.write_bytes(content)
        with pytest.raises(UserError, match=message):
            convert(exported, tmp_path / "model.tflite", "dynamic_range", texts=str(texts))
    with pytest.raises(UserError, match=r"--texts=a\.txt does nothing with --variant=float32"):
        convert(exported, tmp_path / "model.tflite", texts="a.txt")
    monkeypatch.setitem(sys.modules, "tf2onnx", None)
    with pytest.raises(UserError, match=r"pip install -e '\.\[onnx\]'"):
        convert(exported, tmp_path / "model.onnx")
    assert not list(tmp_path.iterdir())


def test_names_of_operations_are_found_in_all_forms_of_the_message():
    for message in (
        'loc(callsite(fused["X:", "Y"]))): \'tf.TensorListReserve\' op is neither a custom op nor',
        "loc(\"X\"): 'tf.TensorListReserve' op requires element_shape to be static during TF Lite",
        "No Op registered for TensorListReserve with domain_version of 18",
    ):
        with pytest.raises(UserError, match="the operations TensorListReserve; serve"):
            runtimes._quietly("export", "TFLite", lambda text=message: fail(text))


def fail(message):
    raise ValueError(message)


@pytest.mark.processes
def test_what_a_runtime_lacks_is_one_line(tmp_path):
    """Whatever its converter prints."""
    module = tf.Module()
    module.function = tf.function(
        lambda input_ids: {"texts": tf.strings.as_string(input_ids)},
        [tf.TensorSpec([None, None], tf.int32, name="input_ids")],
    )
    signatures = {"from_ids": module.function.get_concrete_function()}
    tf.saved_model.save(module, str(tmp_path / "export"), signatures)
    arguments = ("--saved_model=export", "--output_file=model.tflite")
    result = run("tools/convert_export.py", *arguments, folder=tmp_path)
    assert_one_line(result, "cannot be converted to TFLite: it lacks the operations AsString")
    assert result.stdout == ""
    assert [path.name for path in tmp_path.iterdir()] == ["export"]
