"""Draws the curves of one or several training runs into one picture.

python tools/plot_metrics.py --runs=out/a,out/b --output_file=curves.png
"""

import sys

try:
    from nezha_tf import cli
except ImportError as error:
    sys.exit(f"{error}; install the project first: pip install -e .")

from nezha_tf.pictures.settings import PlotSettings


def main(settings):
    from nezha_tf.pictures.curves import plot_runs

    print(plot_runs(settings))


if __name__ == "__main__":
    cli.run(main, PlotSettings)
