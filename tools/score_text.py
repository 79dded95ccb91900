"""Tells how likely a model finds targets for their sources, or texts.

python tools/score_text.py --input_file=pairs.jsonl --model_folder=out/task
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
    'Pairs: .json or .jsonl with {"src": ..., "tgt": ...} a line, or .tsv or .txt with two '
    'columns; or texts: {"text": ...}, or one column; .gz too; names or globs, comma-separated.',
)
flags.DEFINE_string("output_file", None, "JSON lines to write; shown on the screen, if none.")
flags.DEFINE_enum(
    "mode",
    "seq2seq",
    ["seq2seq", "left_to_right", "bidirectional"],
    "Targets for their sources; texts, each piece after those before it; or texts, each piece "
    "masked by itself (their pseudo-perplexity).",
)
flags.DEFINE_integer("predict_batch_size", 16, "Texts that are scored at a time.", 1)
model_flags.define_model()
model_flags.define_form()
flags.adopt_module_key_flags(model_flags)


def main():
    from nezha_tf.inference.score import score_text

    print(score_text(cli.flag_values()))


if __name__ == "__main__":
    cli.run(main)
