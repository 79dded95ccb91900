"""Converts exports for other runtimes: TFLite (LiteRT) and ONNX.

What is converted is the signature that takes ids. Neither runtime has the operations of
tensorflow-text, so the tokenizer is not part of the result.
"""

import os
import re

import numpy as np
import tensorflow as tf

from nezha_tf.serving.export import open_export
from nezha_tf.util import console, files
from nezha_tf.util.errors import UserError, first_line, require_flag, require_modules

SIGNATURE = "from_ids"
# Version of ONNX's operators; onnxruntime has it since 1.14.
OPSET = 18
# The axes of an input of a rank, and the sizes with which the runtimes are compared.
_AXES = {1: ("batch",), 2: ("batch", "tokens"), 3: ("batch", "choices", "tokens")}
_SIZES = ({"batch": 3, "choices": 2, "tokens": 20}, {"batch": 1, "choices": 3, "tokens": 7})
# Finds the name of an operation in the message of a converter or runtime that does not have it.
_LACKING = re.compile(r"(?<=No Op registered for )\w+|(?<='tf\.)\w+(?=' op )")


def convert_export(settings):
    """Converts a SavedModel as `ConvertExportSettings` say, and compares the outputs of both.

    Returns:
      Text to print: the size of the file and the largest differences of the outputs.

    Raises:
      UserError: a mistake in the flags or in the export, the other runtime lacks operations of the
        model, or a library is not installed. Nothing is written then.
    """
    folder = require_flag(settings.saved_model, "saved_model")
    path = require_flag(settings.output_file, "output_file")
    suffix = _checked_suffix(path, settings.variant)
    exported = _load(folder)
    if suffix == ".onnx":
        _require_onnx()
        content, run = _quietly(folder, "ONNX", lambda: _onnx(exported))
    else:
        content, run = _quietly(folder, "TFLite", lambda: _tflite(folder, settings.variant))
    differences = _quietly(folder, suffix[1:], lambda: _differences(exported, run, folder))
    with files.whole_file(path) as temporary, open(temporary, "wb") as file:
        file.write(content)
    rows = [(name, f"{difference:.1e}") for name, difference in differences.items()]
    title = f"{path}: {len(content):,} bytes; largest differences from the export, on random ids:"
    return console.table(title, rows)


def _checked_suffix(path, variant):
    suffix = os.path.splitext(path)[1]
    if suffix not in (".tflite", ".onnx"):
        raise UserError(
            f"--output_file={path} must end in .tflite or .onnx, which say what to make"
        )
    if suffix == ".onnx" and variant != "float32":
        raise UserError(f"--variant={variant} is for TFLite only; leave it out for ONNX")
    return suffix


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
    if variant != "float32":
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
    if variant == "float16":
        converter.target_spec.supported_types = [tf.float16]
    content = converter.convert()
    return content, tf.lite.Interpreter(model_content=content).get_signature_runner(SIGNATURE)


def _onnx(exported):
    """Returns the bytes of an ONNX model, and a function that runs it."""
    import onnxruntime
    import tf2onnx

    function = exported.signatures[SIGNATURE]
    inputs = function.structured_input_signature[1]
    specs = [tf.TensorSpec(spec.shape, spec.dtype, name) for name, spec in inputs.items()]
    # tf2onnx needs a function that is not traced yet.
    untraced = tf.function(
        lambda *arguments: function(**dict(zip(inputs, arguments, strict=True))), autograph=False
    )
    model, _ = tf2onnx.convert.from_function(untraced, specs, opset=OPSET)
    for value in model.graph.input:
        sizes = value.type.tensor_type.shape.dim
        for size, axis in zip(sizes, _AXES[len(sizes)], strict=True):
            size.dim_param = axis
    content = model.SerializeToString()
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return content, lambda **arrays: dict(zip(names, session.run(None, arrays), strict=True))


def _require_onnx():
    what = "ONNX is written with tf2onnx and tried with onnxruntime"
    require_modules(what, "onnx", "onnxruntime", "tf2onnx")


def _differences(exported, run, folder):
    """Returns dict of each floating-point output to its largest difference, on random ids.

    Raises:
      UserError: a difference is not finite.
    """
    with open(os.path.join(folder, "assets", "vocab.txt"), encoding="utf-8") as file:
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
