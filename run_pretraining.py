"""Pretrains a model on TFRecords, for one objective or for a mixture of several.

python run_pretraining.py --flagfile=configs/sample.flags
"""

import sys

try:
    from nezha_tf import cli
except ImportError as error:
    sys.exit(f"{error}; install the project first: pip install -e .")

from nezha_tf.tasks.pretraining.settings import PretrainingSettings


def main(settings):
    from nezha_tf.serving.export import run_and_export
    from nezha_tf.tasks.pretraining.task import Pretraining
    from nezha_tf.training.run import run

    run_and_export(run, settings, Pretraining)


if __name__ == "__main__":
    cli.run(main, PretrainingSettings)
