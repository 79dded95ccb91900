"""Writes the vectors of texts, of their tokens or of their characters; or compares pairs.

  python tools/extract_features.py --input_file=texts.txt --output_file=vectors.npy \
      --model_folder=out/chnsenti
"""

import sys

try:
    from nezha_tf import cli
except ImportError as error:
    sys.exit(f"{error}; install the project first: pip install -e .")

from nezha_tf.tasks.sentence_vectors.extract_settings import ExtractSettings


def main(settings):
    from nezha_tf.tasks.sentence_vectors.extract import extract_features

    print(extract_features(settings))


if __name__ == "__main__":
    cli.run(main, ExtractSettings)
