"""Writes a target for each source of a file, or continues a prompt.

  python tools/generate_text.py --input_file=sources.jsonl --output_file=targets.jsonl \
      --model_folder=out/task
  python tools/generate_text.py --mode=left_to_right --prompt=今天 --decoding=sample --top_p=0.9 ...
"""

import sys

try:
    from nezha_tf import cli
except ImportError as error:
    sys.exit(f"{error}; install the project first: pip install -e .")

from nezha_tf.generation.settings import GenerateSettings


def main(settings):
    from nezha_tf.generation.writing import generate_text

    print(generate_text(settings))


if __name__ == "__main__":
    cli.run(main, GenerateSettings)
