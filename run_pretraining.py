"""Pretrains a model on TFRecords, for one objective or for a mixture of several."""

import sys

try:
    from nezha_tf.programs import start
except ImportError as error:
    sys.exit(f"{error}; install the project first: pip install -e .")

if __name__ == "__main__":
    start.run("run_pretraining")
