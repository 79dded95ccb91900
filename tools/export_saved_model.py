"""Writes the model of a run, or a published model, as a SavedModel that takes raw text."""

import sys

try:
    from nezha_tf.programs import start
except ImportError as error:
    sys.exit(f"{error}; install the project first: pip install -e .")

if __name__ == "__main__":
    start.run("export_saved_model")
