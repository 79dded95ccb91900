"""Writes an export for another runtime: TFLite, in float32 or smaller, or ONNX. It reads ids.

python tools/convert_export.py --saved_model=export --output_file=model.tflite --variant=float16
"""

import sys

try:
    from nezha_tf import cli
except ImportError as error:
    sys.exit(f"{error}; install the project first: pip install -e .")

from absl import flags

flags.DEFINE_string("saved_model", None, "What tools/export_saved_model.py has written.")
flags.DEFINE_string("output_file", None, "The file to write: NAME.tflite or NAME.onnx.")
flags.DEFINE_enum(
    "variant",
    "float32",
    ["float32", "float16", "dynamic_range"],
    "Of TFLite: float16 halves the weights, dynamic_range makes of the matrices int8.",
)


def main():
    from nezha_tf.export.runtimes import convert_export

    print(convert_export(cli.flag_values()))


if __name__ == "__main__":
    cli.run(main)
