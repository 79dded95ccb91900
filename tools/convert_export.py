"""Converts a SavedModel for another runtime, which then reads ids: TFLite or ONNX."""

import sys

try:
    from nezha_tf.programs import start
except ImportError as error:
    sys.exit(f"{error}; install the project first: pip install -e .")

if __name__ == "__main__":
    start.run("convert_export")
