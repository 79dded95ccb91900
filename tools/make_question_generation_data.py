"""Makes data for run_seq2seq.py from reading comprehension: the targets are the questions.

python tools/make_question_generation_data.py --input_file=train.json --output_file=train.jsonl
"""

import sys

try:
    from nezha_tf import cli
except ImportError as error:
    sys.exit(f"{error}; install the project first: pip install -e .")

from nezha_tf.tasks.seq2seq.question_generation import (
    QuestionGenerationSettings,
    make_question_generation_data,
)


def main(settings):
    print(make_question_generation_data(settings))


if __name__ == "__main__":
    cli.run(main, QuestionGenerationSettings)
