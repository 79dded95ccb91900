"""Tells how probable a model finds targets for their sources, or texts.

python tools/score_text.py --input_file=pairs.jsonl --model_folder=out/task
"""

import sys

try:
    from nezha_tf import cli
except ImportError as error:
    sys.exit(f"{error}; install the project first: pip install -e .")

from nezha_tf.generation.settings import ScoreSettings


def main(settings):
    from nezha_tf.generation.score import score_text

    print(score_text(settings))


if __name__ == "__main__":
    cli.run(main, ScoreSettings)
