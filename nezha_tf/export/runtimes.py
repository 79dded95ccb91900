"""Exports for other runtimes, from the signature on ids: TFLite (LiteRT) and ONNX.

Neither has tensorflow-text's operations, so the tokenizer stays outside.
"""

import os
import re

import numpy as np
import tensorflow as tf
import tensorflow_text  # noqa: F401 - the operations of the exports

from nezha_tf import console, files
from nezha_tf.errors import UserError, first_line, require_flag

SIGNATURE = "from_ids"
# Of ONNX's operators; onnxruntime 1.14 and later have it.
OPSET = 18
# What stands around an operation's name where a converter, or a runtime, does not know it.
_LACKING = re.compile(r"(?<=No Op registered for )\w+|(?<='tf\.)\w+(?=' op is neither)")


def convert_export(flags):
    """Writes an export in the form of another runtime.

    Args:
      flags: dict of the flags of tools/convert_export.py.

    Returns:
      What to print.

    Raises:
      UserError: a mistake in the flags or in the export, operations that the other runtime lacks,
        or a library that is not installed. Nothing is written then.
    """
    folder, path = (require_flag(flags[name], name) for name in ("saved_model", "output_file"))
    variant, suffix = flags["variant"], os.path.splitext(path)[1]
    if suffix not in (".tflite", ".onnx"):
        raise UserError(
            f"--output_file={path} must end in .tflite or .onnx, which say what to make"
        )
    if suffix == ".onnx" and variant != "float32":
        raise UserError(f"--variant={variant} is of TFLite; leave it out for ONNX")
    exported = _load(folder)
    if suffix == ".onnx":
        _require_onnx()
        content, run = _quietly(folder, "ONNX", lambda: _onnx(exported))
    else:
        content, run = _quietly(folder, "TFLite", lambda: _tflite(folder, variant))
    differences = _quietly(folder, suffix[1:], lambda: _differences(exported, run, folder))
    with files.whole_file(path) as temporary, open(temporary, "wb") as file:
        file.write(content)
    rows = [(name, f"{difference:.1e}") for name, difference in differences.items()]
    title = f"{path}: {len(content):,} bytes; largest differences from the export, on random ids:"
    return console.table(title, rows)


def _load(folder):
    """Returns a SavedModel that has the signature on ids."""
    try:
        exported = tf.saved_model.load(folder)
    except (OSError, ValueError, tf.errors.OpError) as error:
        raise UserError(f"--saved_model={folder} is no export: {first_line(error)}") from error
    if SIGNATURE not in exported.signatures:
        raise UserError(
            f"--saved_model={folder} has no signature {SIGNATURE!r}, but only "
            f"{', '.join(exported.signatures)}; make it with tools/export_saved_model.py"
        )
    return exported


def _quietly(folder, runtime, function):
    """Returns what a function gives; what libraries say meanwhile is not shown."""
    with console.stderr_held_back():
        try:
            return function()
        except Exception as error:  # The libraries have no class of their own for what they lack.
            problem = error
    lacking = ", ".join(sorted(set(_LACKING.findall(str(problem)))))
    reason = f"it lacks the operations {lacking}" if lacking else first_line(problem)[:300]
    raise UserError(
        f"{folder}: {SIGNATURE} cannot be brought to {runtime}: {reason}; serve it as it is"
    ) from problem


def _tflite(folder, variant):
    """Returns the bytes of a TFLite model, and a function that runs them.

    Of its variants float16 has the weights in half the space, computed with in float32, and
    dynamic_range the matrices in a quarter of it as int8, multiplied with activations that are
    rounded to int8 when they come.
    """
    converter = tf.lite.TFLiteConverter.from_saved_model(folder, signature_keys=[SIGNATURE])
    if variant != "float32":
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
    if variant == "float16":
        converter.target_spec.supported_types = [tf.float16]
    content = converter.convert()
    return content, tf.lite.Interpreter(model_content=content).get_signature_runner(SIGNATURE)


def _onnx(exported):
    """Returns the bytes of an ONNX model, and a function that runs them."""
    import onnxruntime
    import tf2onnx

    function = exported.signatures[SIGNATURE]
    inputs = function.structured_input_signature[1]
    specs = [tf.TensorSpec(spec.shape, spec.dtype, name) for name, spec in inputs.items()]
    # tf2onnx asks for a function that is not traced yet.
    untraced = tf.function(
        lambda *arguments: function(**dict(zip(inputs, arguments, strict=True))), autograph=False
    )
    model, _ = tf2onnx.convert.from_function(untraced, specs, opset=OPSET)
    for value in model.graph.input:
        for size, name in zip(value.type.tensor_type.shape.dim, ("batch", "pieces"), strict=False):
            size.dim_param = name
    content = model.SerializeToString()
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return content, lambda **arrays: dict(zip(names, session.run(None, arrays), strict=True))


def _require_onnx():
    try:
        import onnxruntime  # noqa: F401
        import tf2onnx  # noqa: F401
    except ImportError as error:
        raise UserError(
            f"ONNX is written with tf2onnx and tried with onnxruntime ({error}): "
            "pip install -e '.[onnx]' in the clone"
        ) from error


def _differences(exported, run, folder):
    """Returns {output: largest difference} of two lengths of random ids; numbers alone."""
    with open(os.path.join(folder, "assets", "vocab.txt"), encoding="utf-8") as file:
        vocab_size = sum(1 for _ in file)
    function = exported.signatures[SIGNATURE]
    names = function.structured_input_signature[1]
    rng, found = np.random.default_rng(0), {}
    for shape in ((3, 20), (1, 7)):
        arrays = dict.fromkeys(names, np.zeros(shape, "int32"))
        arrays["input_ids"] = rng.integers(0, vocab_size, shape, "int32")
        arrays["input_mask"] = np.ones(shape, "int32")
        outputs = run(**arrays)
        for name, tensor in function(**{n: tf.constant(a) for n, a in arrays.items()}).items():
            if tensor.dtype.is_floating:
                difference = np.abs(outputs[name] - tensor.numpy()).max()
                found[name] = max(found.get(name, 0.0), float(difference))
    return found
