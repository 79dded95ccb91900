"""Writes a target for each source of a file, or goes on from a prompt.

  python tools/generate_text.py --input_file=sources.jsonl --output_file=targets.jsonl \
      --model_folder=out/task
  python tools/generate_text.py --mode=left_to_right --prompt=今天 --decoding=sample --top_p=0.9 ...
"""

import sys

try:
    from nezha_tf import cli
except ImportError as error:
    sys.exit(f"{error}; install the project first: pip install -e .")

from absl import flags

from nezha_tf.inference import flags as model_flags

flags.DEFINE_string(
    "input_file",
    None,
    'Sources or prompts: .json or .jsonl with {"src": ...} a line, or .tsv or .txt with one a '
    "line; .gz too; names or globs, comma-separated.",
)
flags.DEFINE_string("prompt", None, "One source or prompt, in place of a file.")
flags.DEFINE_string("output_file", None, "JSON lines to write; shown on the screen, if none.")
flags.DEFINE_enum(
    "mode",
    None,
    ["seq2seq", "left_to_right"],
    "seq2seq: write a target for a source that is seen whole; left_to_right: continue a prompt; "
    "default: what the model was trained for, seq2seq if it was trained for both.",
)
model_flags.define_model()
model_flags.define_form()
model_flags.define_search()
flags.adopt_module_key_flags(model_flags)


def main():
    from nezha_tf.inference.generate import generate_text

    print(generate_text(cli.flag_values()))


if __name__ == "__main__":
    cli.run(main)
