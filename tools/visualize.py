"""Draws what explains a model: relative positions, attention masks, or attention by layer and head.

  python tools/visualize.py --picture=relative_positions --output_file=positions.png
  python tools/visualize.py --picture=attention --model_folder=out/sample/nezha_tiny \
      --text=今天的豆浆是新磨的。 --output_file=attention.png
"""

import sys

try:
    from nezha_tf import cli
except ImportError as error:
    sys.exit(f"{error}; install the project first: pip install -e .")

from absl import flags

from nezha_tf.pictures import PICTURES

flags.DEFINE_enum(
    "picture",
    None,
    PICTURES,
    "What to draw: the table of relative positions; who sees whom in a text, for each objective; "
    "or how much a piece attends to each, for each layer and head.",
)
flags.DEFINE_string("output_file", None, "The PNG to write.")
flags.DEFINE_string(
    "model_folder",
    None,
    "A model: --output_dir of a run, or a published one. Relative positions are those of NEZHA, "
    "if none.",
)
flags.DEFINE_string("text", None, "The sentence that is drawn.")
flags.DEFINE_string("text_pair", "", "What follows it, if it is the first of a pair.")
flags.DEFINE_string("vocab_file", None, "Cuts the text of attention_masks, if no model does.")
flags.DEFINE_bool(
    "do_lower_case", None, "Lower-case the text and strip accents; as the model's folder says."
)
flags.DEFINE_list("layers", [], "Layers to draw, from 0; -1 is the last one; all, if none.")
flags.DEFINE_list("heads", [], "Heads to draw, likewise.")
flags.DEFINE_string(
    "objective",
    None,
    "Whose form and mask the sentence of attention gets; that of the model's task, if none.",
)


def main():
    from nezha_tf.pictures.visualize import visualize

    print(visualize(cli.flag_values()))


if __name__ == "__main__":
    cli.run(main)
