"""Converts a model between the file layouts of TF1, of this project and of Hugging Face.

python tools/convert_checkpoint.py --from=chinese_L-12_H-768_A-12 --to=bert --format=hugging_face
"""

import sys

try:
    from nezha_tf import cli
except ImportError as error:
    sys.exit(f"{error}; install the project first: pip install -e .")

from nezha_tf.checkpoints.settings import ConversionSettings


def main(settings):
    from nezha_tf.checkpoints.convert import convert_checkpoint

    print(convert_checkpoint(settings))


if __name__ == "__main__":
    cli.run(main, ConversionSettings)
