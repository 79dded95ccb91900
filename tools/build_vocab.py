"""Builds a WordPiece vocabulary from running text.

python tools/build_vocab.py --input_file='corpus/*.txt.gz' --output_file=vocab.txt
"""

import sys

try:
    from nezha_tf import cli
except ImportError as error:
    sys.exit(f"{error}; install the project first: pip install -e .")

from nezha_tf.corpus.settings import VocabularySettings


def main(settings):
    from nezha_tf.corpus.vocabulary import make_vocabulary

    print(make_vocabulary(settings))


if __name__ == "__main__":
    cli.run(main, VocabularySettings, with_tensorflow=False)
