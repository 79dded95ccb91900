"""Shows the likeliest pieces for each [MASK] of a text: of a file, or as it is typed.

  python tools/fill_mask.py --model_folder=out/small
  python tools/fill_mask.py --bert_config_file=bert_config.json --vocab_file=vocab.txt \
      --init_checkpoint=model.ckpt
"""

import sys

try:
    from nezha_tf import cli
except ImportError as error:
    sys.exit(f"{error}; install the project first: pip install -e .")

from absl import flags

from nezha_tf.inference import flags as model_flags

flags.DEFINE_string("input_file", None, "A text a line, .gz too; from standard input, if none.")
flags.DEFINE_integer("top_k", 5, "Candidates of a blank.", 1)
model_flags.define_model()
flags.adopt_module_key_flags(model_flags)


def main():
    from nezha_tf.inference.fill import fill_mask

    fill_mask(cli.flag_values())


if __name__ == "__main__":
    cli.run(main)
