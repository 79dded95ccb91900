"""Fine-tunes a model to classify texts or pairs of texts, evaluates it, and predicts."""

import sys

try:
    from nezha_tf.programs import start
except ImportError as error:
    sys.exit(f"{error}; install the project first: pip install -e .")

if __name__ == "__main__":
    start.run("run_classifier")
