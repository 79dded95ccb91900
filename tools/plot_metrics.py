"""Draws the curves of several runs of run_pretraining.py into one picture.

python tools/plot_metrics.py --runs=out/a,out/b --output_file=curves.png
"""

import sys

try:
    from nezha_tf import cli
except ImportError as error:
    sys.exit(f"{error}; install the project first: pip install -e .")

from absl import flags

FLAGS = flags.FLAGS

flags.DEFINE_list("runs", None, "Folders of runs (their --output_dir), comma-separated.")
flags.DEFINE_string("output_file", None, "The PNG to write.")
flags.DEFINE_list("labels", [], "Names of the runs in the legend; those of the folders, if none.")
flags.DEFINE_list(
    "metrics", [], "What to draw, by its name in metrics.jsonl; the usual curves, if none."
)
flags.DEFINE_integer(
    "smoothing", 1, "Entries that a training value is averaged over, itself in the middle.", 1
)


def main():
    from nezha_tf.errors import require_flag
    from nezha_tf.pictures.curves import plot_runs

    runs = require_flag(FLAGS.runs, "runs")
    output_file = require_flag(FLAGS.output_file, "output_file")
    plot_runs(runs, output_file, FLAGS.labels, FLAGS.metrics, FLAGS.smoothing)
    print(f"curves in {output_file}")


if __name__ == "__main__":
    cli.run(main)
