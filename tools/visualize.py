"""Draws a picture that explains a model: relative positions, attention masks or attention.

  python tools/visualize.py --picture=relative_positions --output_file=positions.png
  python tools/visualize.py --picture=attention --model_folder=out/sample/nezha_tiny \
      --text=今天的豆浆是新磨的。 --output_file=attention.png
"""

import sys

try:
    from nezha_tf import cli
except ImportError as error:
    sys.exit(f"{error}; install the project first: pip install -e .")

from nezha_tf.pictures.settings import VisualizeSettings


def main(settings):
    from nezha_tf.pictures.visualize import visualize

    print(visualize(settings))


if __name__ == "__main__":
    cli.run(main, VisualizeSettings)
