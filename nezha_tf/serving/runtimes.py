"""Converts exports for other runtimes: TFLite (LiteRT) and ONNX.

What is converted is the signature that takes ids. Neither runtime has the operations of
tensorflow-text, so the tokenizer is not part of the result.
"""

import os
import re
import tempfile

import numpy as np
import tensorflow as tf

from nezha_tf.checkpoints.card_head import FILE_NAME
from nezha_tf.serving.export import open_export
from nezha_tf.serving.rounding import batches_of, lines_of, loss
from nezha_tf.util import console, files
from nezha_tf.util.errors import UserError, first_line, require_flag, require_modules
from nezha_tf.util.settings import require_read

SIGNATURE = "from_ids"
WHOLE = "float32"
# Version of ONNX's operators; onnxruntime has it since 1.14.
OPSET = 18
# The axes of an input of a rank, and the sizes with which the runtimes are compared. They are so
# small that they fit models of 16 positions, too.
_AXES = {1: ("batch",), 2: ("batch", "tokens"), 3: ("batch", "choices", "tokens")}
_SIZES = ({"batch": 3, "choices": 2, "tokens": 12}, {"batch": 1, "choices": 3, "tokens": 7})
# Finds the name of an operation in the message of a converter or runtime that does not have it.
_LACKING = re.compile(r"(?<=No Op registered for )\w+|(?<='tf\.)\w+(?=' op )")


def convert_export(settings):
    """Converts a SavedModel as `ConvertExportSettings` say, and compares the outputs of both.

    What a smaller variant answers otherwise than float32 in the same runtime is also written into
    the SavedModel's README.

    Returns:
      Text to print: the size of the file and the differences of the outputs.

    Raises:
      UserError: a mistake in the flags, in the texts or in the export, the other runtime lacks
        operations of the model, or a library is not installed. Nothing is written then.
    """
    folder = require_flag(settings.saved_model, "saved_model")
    path = require_flag(settings.output_file, "output_file")
    require_read(settings)
    suffix, variant = _checked_suffix(path, settings.variant), settings.variant
    texts = None if variant == WHOLE else lines_of(settings.texts)
    exported = _load(folder)
    whole = _converted(suffix, folder, exported)
    content, run = whole if variant == WHOLE else _smaller(suffix, folder, variant, whole[0])
    differences = _quietly(folder, suffix[1:], lambda: _differences(exported, run, folder))
    rows = [(name, f"{difference:.1e}") for name, difference in differences.items()]
    title = f"{path}: {len(content):,} bytes; largest differences from the export, on random ids:"
    told = [console.table(title, rows)]
    if texts:
        batches = batches_of(texts, _vocabulary(folder), _rank(exported))
        lost = _quietly(folder, suffix[1:], lambda: loss(whole[1], run, batches))
        told.append(lost.told(f"{variant} against float32 ({len(whole[0]):,} bytes)"))
    with files.whole_file(path) as temporary, open(temporary, "wb") as file:
        file.write(content)
    if texts:
        _note_in_readme(folder, os.path.basename(path), told[1], len(content))
    return "\n".join(told)


def _checked_suffix(path, variant):
    suffix = os.path.splitext(path)[1]
    if suffix not in (".tflite", ".onnx"):
        raise UserError(
            f"--output_file={path} must end in .tflite or .onnx, which say what to make"
        )
    if suffix == ".onnx" and variant == "float16":
        raise UserError(
            f"--variant={variant} is for TFLite only; leave it out for ONNX, or pass "
            "--variant=dynamic_range"
        )
    if suffix == ".onnx":
        what = "ONNX is written with tf2onnx and tried with onnxruntime"
        require_modules(what, "onnx", "onnxruntime", "tf2onnx")
    return suffix


def _converted(suffix, folder, exported):
    """Returns the bytes of a model in float32, and a function that runs it."""
    if suffix == ".onnx":
        return _quietly(folder, "ONNX", lambda: _onnx(exported))
    return _quietly(folder, "TFLite", lambda: _tflite(folder, WHOLE))


def _smaller(suffix, folder, variant, whole):
    """Returns the same for another variant; `whole` are the bytes in float32."""
    if suffix == ".onnx":
        return _quietly(folder, "ONNX in 8 bits", lambda: _onnx_in_8_bits(whole))
    return _quietly(folder, "TFLite", lambda: _tflite(folder, variant))


def _vocabulary(folder):
    return os.path.join(folder, "assets", "vocab.txt")


def _rank(exported):
    inputs = exported.signatures[SIGNATURE].structured_input_signature[1]
    return inputs["input_ids"].shape.rank


def _note_in_readme(folder, name, told, size):
    """Puts what a smaller file loses into the SavedModel's README, if it has one."""
    path = os.path.join(folder, FILE_NAME)
    if not os.path.isfile(path):
        return
    with open(path, encoding="utf-8") as file:
        parts = re.split(r"\n(?=## )", file.read().rstrip("\n"))
    title = f"## `{name}`"
    kept = [part for part in parts if part.splitlines()[:1] != [title]]
    kept.append(f"{title}\n\n{size:,} bytes.\n\n```text\n{told}\n```")
    files.write_text(path, "\n\n".join(part.rstrip("\n") for part in kept) + "\n")


def _load(folder):
    exported = open_export(folder, "saved_model")
    if SIGNATURE not in exported.signatures:
        raise UserError(
            f"--saved_model={folder} has no signature {SIGNATURE!r}, but only "
            f"{', '.join(exported.signatures)}; make it with export_saved_model"
        )
    return exported


def _quietly(folder, runtime, function):
    """Returns the result of a function of a library, which prints nothing on stderr meanwhile.

    Whatever it raises becomes a `UserError` that names the folder and the runtime.
    """
    with console.stderr_held_back():
        try:
            return function()
        except UserError:
            raise
        except Exception as error:  # The libraries raise exceptions of many classes.
            problem = error
    lacking = ", ".join(sorted(set(_LACKING.findall(str(problem)))))
    reason = f"it lacks the operations {lacking}" if lacking else first_line(problem)[:300]
    raise UserError(
        f"{folder}: {SIGNATURE} cannot be converted to {runtime}: {reason}; serve the SavedModel "
        "itself"
    ) from problem


def _tflite(folder, variant):
    """Returns the bytes of a TFLite model, and a function that runs it.

    The variant float16 stores the weights in half the space; the arithmetic stays float32. The
    variant dynamic_range stores the matrices as int8, in a quarter of the space, and rounds the
    activations to int8 before it multiplies them.
    """
    converter = tf.lite.TFLiteConverter.from_saved_model(folder, signature_keys=[SIGNATURE])
    if variant != WHOLE:
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
    if variant == "float16":
        converter.target_spec.supported_types = [tf.float16]
    content = converter.convert()
    return content, tf.lite.Interpreter(model_content=content).get_signature_runner(SIGNATURE)


def _onnx(exported):
    """Returns the bytes of an ONNX model, and a function that runs it."""
    import tf2onnx

    function = exported.signatures[SIGNATURE]
    inputs = function.structured_input_signature[1]
    specs = [tf.TensorSpec(spec.shape, spec.dtype, name) for name, spec in inputs.items()]
    # tf2onnx needs a function that is not traced yet.
    untraced = tf.function(
        lambda *arguments: function(**dict(zip(inputs, arguments, strict=True))), autograph=False
    )
    model, _ = tf2onnx.convert.from_function(
        untraced, specs, opset=OPSET, custom_op_handlers={"Erfc": (_write_erfc, [])}
    )
    for value in model.graph.input:
        sizes = value.type.tensor_type.shape.dim
        for size, axis in zip(sizes, _AXES[len(sizes)], strict=True):
            size.dim_param = axis
    content = model.SerializeToString()
    return content, _onnx_runner(content)


def _write_erfc(graph, node, name, args):
    """Writes 1 - erf(x) for the node of a graph of tf2onnx, as ONNX has no erfc.

    TensorFlow's exact gelu has it: gelu_erf here, "gelu" in Hugging Face's configurations.
    """
    from tf2onnx import utils

    del name, args
    dtype = graph.get_dtype(node.output[0])
    shapes, dtypes = [graph.get_shape(node.output[0])], [dtype]
    (states,), outputs = node.input, node.output
    graph.remove_node(node.name)
    erf = graph.make_node("Erf", [states], shapes=shapes, dtypes=dtypes)
    one = graph.make_const(f"{erf.name}_one", np.array(1, utils.map_onnx_to_numpy_type(dtype)))
    graph.make_node(
        "Sub", [one.output[0], erf.output[0]], outputs=outputs, shapes=shapes, dtypes=dtypes
    )


def _onnx_in_8_bits(content):
    """Returns the bytes of an ONNX model with its matrices as uint8, and a function that runs it.

    Each column of a matrix has a scale of its own. Activations are rounded to 8 bits before each
    product. Both have no sign: if matrices have one, processors without VNNI add two products in 16
    bits, which overflow (onnxruntime's documentation of quantization, on U8S8 and U8U8).
    """
    from onnxruntime.quantization import QuantType, quantize_dynamic

    with tempfile.TemporaryDirectory() as scratch:
        whole, path = (os.path.join(scratch, name) for name in ("whole.onnx", "small.onnx"))
        with open(whole, "wb") as file:
            file.write(content)
        quantize_dynamic(whole, path, per_channel=True, weight_type=QuantType.QUInt8)
        with open(path, "rb") as file:
            content = file.read()
    return content, _onnx_runner(content)


def _onnx_runner(content):
    import onnxruntime

    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return lambda **arrays: dict(zip(names, session.run(None, arrays), strict=True))


def _differences(exported, run, folder):
    """Returns dict of each floating-point output to its largest difference, on random ids.

    Raises:
      UserError: a difference is not finite.
    """
    with open(_vocabulary(folder), encoding="utf-8") as file:
        vocab_size = sum(1 for _ in file)
    function = exported.signatures[SIGNATURE]
    specs = function.structured_input_signature[1]
    rng, differences = np.random.default_rng(0), {}
    for sizes in _SIZES:
        shapes = {n: [sizes[axis] for axis in _AXES[s.shape.rank]] for n, s in specs.items()}
        arrays = {name: np.zeros(shape, "int32") for name, shape in shapes.items()}
        arrays["input_ids"] = rng.integers(0, vocab_size, shapes["input_ids"], "int32")
        arrays["input_mask"] = np.ones(shapes["input_mask"], "int32")
        outputs = run(**arrays)
        for name, tensor in function(**{n: tf.constant(a) for n, a in arrays.items()}).items():
            if tensor.dtype.is_floating:
                difference = np.abs(outputs[name] - tensor.numpy()).max()
                if not np.isfinite(difference):
                    raise UserError(
                        f"{folder}: the difference of {name} from the export, on random ids, is "
                        f"{difference}, so nothing is written; check the weights of the model"
                    )
                differences[name] = max(differences.get(name, 0.0), float(difference))
    return differences
