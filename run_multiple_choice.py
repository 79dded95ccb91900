"""Fine-tunes a model to choose among answers to a question, or among idioms for a blank."""

import sys

try:
    from nezha_tf.programs import start
except ImportError as error:
    sys.exit(f"{error}; install the project first: pip install -e .")

if __name__ == "__main__":
    start.run("run_multiple_choice")
