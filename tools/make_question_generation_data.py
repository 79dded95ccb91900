"""Makes data for run_seq2seq from reading comprehension: the targets are the questions."""

import sys

try:
    from nezha_tf.programs import start
except ImportError as error:
    sys.exit(f"{error}; install the project first: pip install -e .")

if __name__ == "__main__":
    start.run("make_question_generation_data")
