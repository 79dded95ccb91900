"""Writes the vectors of texts, of their tokens or of their characters; or compares pairs."""

import sys

try:
    from nezha_tf.programs import start
except ImportError as error:
    sys.exit(f"{error}; install the project first: pip install -e .")

if __name__ == "__main__":
    start.run("extract_features")
