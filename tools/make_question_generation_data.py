"""Makes data for run_seq2seq.py out of reading comprehension: questions to be generated.

python tools/make_question_generation_data.py --input_file=train.json --output_file=train.jsonl
"""

import sys

try:
    from nezha_tf import cli
except ImportError as error:
    sys.exit(f"{error}; install the project first: pip install -e .")

from absl import flags

FLAGS = flags.FLAGS

flags.DEFINE_string("input_file", None, "Questions with answers and passages, JSON as SQuAD's.")
flags.DEFINE_string("output_file", None, 'JSON lines to write, {"src": ..., "tgt": ...}.')
flags.DEFINE_integer("context_chars", 90, "Most characters of the passage in a source.", 1)


def main():
    from nezha_tf import console
    from nezha_tf.errors import require_flag
    from nezha_tf.tasks.seq2seq.question_generation import make_question_generation_data

    names = ("input_file", "output_file", "context_chars")
    for name in names:
        require_flag(FLAGS[name].value, name)
    count = make_question_generation_data(**cli.flag_values())
    print(f"{console.plural(count, 'question')} in {FLAGS.output_file}")


if __name__ == "__main__":
    cli.run(main)
