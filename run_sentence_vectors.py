"""Fine-tunes a model on unlabelled texts, so that vectors of like texts are near (SimCSE)."""

import sys

try:
    from nezha_tf.programs import start
except ImportError as error:
    sys.exit(f"{error}; install the project first: pip install -e .")

if __name__ == "__main__":
    start.run("run_sentence_vectors")
