"""Converts a model between the file layouts of TF1, of this project and of Hugging Face."""

import sys

try:
    from nezha_tf.programs import start
except ImportError as error:
    sys.exit(f"{error}; install the project first: pip install -e .")

if __name__ == "__main__":
    start.run("convert_checkpoint")
