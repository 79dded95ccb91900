"""What the sources themselves reach as targets: a model should be better than copying.

python examples/copy_baseline.py --input_file=dev.jsonl

The measures are those of run_seq2seq.py. It needs the extra [eval].
"""

import sys

from absl import app, flags

try:
    from nezha_tf.data.rows import PAIR, read_pairs
    from nezha_tf.tasks.seq2seq import metrics
    from nezha_tf.util.errors import UserError
except ImportError as error:
    sys.exit(f"{error}; install the project first: pip install -e .")

FLAGS = flags.FLAGS
flags.DEFINE_string("input_file", None, "JSON lines or columns with a pair a line.", required=True)
flags.DEFINE_string("source_column", "src", "Name of the column of the sources.")
flags.DEFINE_string("target_column", "tgt", "Name of the column of the targets.")
flags.DEFINE_integer(
    "count", None, "Number of pairs to use, from the first on, as --max_eval_generated.", 1
)


def main(_):
    try:
        rows = read_pairs([FLAGS.input_file], (FLAGS.source_column, FLAGS.target_column))
        texts = ([row.values[role] for row in rows[: FLAGS.count]] for role in PAIR)
        found = metrics.measure(*texts)
    except (UserError, OSError) as error:
        sys.exit(f"copy_baseline.py: error: {error}")
    for name, value in found.items():
        print(f"{name} = {value:.4f}")


if __name__ == "__main__":
    app.run(main)
