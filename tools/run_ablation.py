"""Runs programs with several settings and seeds, and compares what comes out.

python tools/run_ablation.py --ablation_file=configs/ablations/sample.toml --output_dir=out/ablation
"""

import sys

try:
    from nezha_tf import cli
except ImportError as error:
    sys.exit(f"{error}; install the project first: pip install -e .")

from nezha_tf.ablation.settings import AblationSettings


def main(settings):
    from nezha_tf.ablation.run import run

    run(settings)


if __name__ == "__main__":
    cli.run(main, AblationSettings, with_tensorflow=False)
