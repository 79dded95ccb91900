"""Converts a model between the layouts of TF1, of this project and of Hugging Face.

python tools/convert_checkpoint.py --from=chinese_L-12_H-768_A-12 --to=bert --format=hugging_face
"""

import sys

try:
    from nezha_tf import cli
except ImportError as error:
    sys.exit(f"{error}; install the project first: pip install -e .")

from absl import flags

flags.DEFINE_string(
    "from",
    None,
    "The model: a folder of a run or of a published model, a TF1 prefix (model.ckpt), or a file "
    "of Hugging Face's (.safetensors, .bin).",
)
flags.DEFINE_string("to", None, "The folder to make.")
flags.DEFINE_enum(
    "format",
    "nezha_tf",
    ["tf1", "nezha_tf", "hugging_face"],
    "What to make: bert_config.json and bert_model.ckpt, for TF1's programs; the same as "
    "model.ckpt-STEP, as a run here leaves it; or config.json and model.safetensors.",
)
flags.DEFINE_string("config_file", None, "The configuration, in place of the one beside --from.")
flags.DEFINE_string("vocab_file", None, "The vocabulary, in place of the one beside --from.")
flags.DEFINE_bool(
    "do_lower_case",
    None,
    "Whether the model's texts are lower-cased; if not given, what the files beside --from say.",
)
flags.DEFINE_list(
    "allow_missing",
    [],
    "Names of variables, or how they begin (bert/pooler/), that may be missing, or that no such "
    "model has; they are left out. Names are TF1's.",
)
flags.DEFINE_list("drop", [], "Names, or how they begin (cls/), of weights to leave out.")
flags.DEFINE_integer(
    "type_vocab_size",
    None,
    "Segment rows to make: 6 of 2, as UniLM begins (2, 3 and 4 as row 0, 5 as row 1), or 2 of 6, "
    "the first two.",
)
flags.DEFINE_bool("averages", False, "Take the moving averages of the weights (--ema_decay).")
flags.DEFINE_enum("dtype", "float32", ["float32", "float16"], "The type that weights are kept in.")


def main():
    from nezha_tf.conversion.conversion import convert_checkpoint

    print(convert_checkpoint(cli.flag_values()))


if __name__ == "__main__":
    cli.run(main)
