"""Converts a SavedModel for another runtime, which then reads ids: TFLite or ONNX.

python tools/convert_export.py --saved_model=export --output_file=model.tflite --variant=float16
"""

import sys

try:
    from nezha_tf import cli
except ImportError as error:
    sys.exit(f"{error}; install the project first: pip install -e .")

from nezha_tf.serving.settings import ConvertExportSettings


def main(settings):
    from nezha_tf.serving.runtimes import convert_export

    print(convert_export(settings))


if __name__ == "__main__":
    cli.run(main, ConvertExportSettings)
