"""Makes TFRecords for pretraining out of running text.

The text has one sentence a line and a blank line between documents. After an interruption the
same command goes on where it was.

  python tools/create_pretraining_data.py --input_file='corpus/*.txt.gz' \
      --output_file=train.tfrecord --vocab_file=vocab.txt
"""

import sys

try:
    from nezha_tf import cli
except ImportError as error:
    sys.exit(f"{error}; install the project first: pip install -e .")

from nezha_tf.corpus.create import ProgramSettings, create_pretraining_data
from nezha_tf.util.errors import require_flag


def main(settings):
    for name in ("input_file", "output_file", "vocab_file"):
        require_flag(getattr(settings, name), name)
    create_pretraining_data(**vars(settings))


if __name__ == "__main__":
    cli.run(main, ProgramSettings, with_tensorflow=False)
