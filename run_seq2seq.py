"""Fine-tunes a model to write a target for a source, evaluates it, and writes."""

import sys

try:
    from nezha_tf.programs import start
except ImportError as error:
    sys.exit(f"{error}; install the project first: pip install -e .")

if __name__ == "__main__":
    start.run("run_seq2seq")
