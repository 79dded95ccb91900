"""Shows the likeliest tokens for each [MASK] of a text, from a file or from standard input.

  python tools/fill_mask.py --model_folder=out/small
  python tools/fill_mask.py --bert_config_file=bert_config.json --vocab_file=vocab.txt \
      --init_checkpoint=model.ckpt
"""

import sys

try:
    from nezha_tf import cli
except ImportError as error:
    sys.exit(f"{error}; install the project first: pip install -e .")

from nezha_tf.generation.settings import FillMaskSettings


def main(settings):
    from nezha_tf.generation.fill import fill_mask

    fill_mask(settings)


if __name__ == "__main__":
    cli.run(main, FillMaskSettings)
