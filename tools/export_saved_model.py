"""Writes a model as a SavedModel that takes raw text: what a run has left, or a published one.

python tools/export_saved_model.py --model_folder=out/chnsenti --output_dir=export
"""

import sys

try:
    from nezha_tf import cli
except ImportError as error:
    sys.exit(f"{error}; install the project first: pip install -e .")

from absl import flags

flags.DEFINE_string(
    "model_folder",
    None,
    "The --output_dir of a run; or a published model: bert_config.json or config.json, weights "
    "and vocab.txt.",
)
flags.DEFINE_string("output_dir", None, "A folder that is not there yet.")
flags.DEFINE_enum(
    "task",
    None,
    ["features", "fill_mask", "left_to_right", "seq2seq"],
    "Vectors of texts, candidates for [MASK], what goes on from a prompt, or targets; what the "
    "model was trained for, if none.",
)


def main():
    from nezha_tf.export.exporter import export

    print(export(cli.flag_values()))


if __name__ == "__main__":
    cli.run(main)
