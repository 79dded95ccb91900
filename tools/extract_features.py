"""Writes what a model makes of texts: vectors of pieces, characters or texts; or likeness of pairs.

  python tools/extract_features.py --input_file=texts.txt --output_file=vectors.npy \
      --model_folder=out/chnsenti
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
    'Texts: .txt or .tsv with one a line, or .json or .jsonl with {"text": ...} a line; pairs have '
    'a second column, or "text_pair"; .gz too; names or globs, comma-separated.',
)
flags.DEFINE_string(
    "output_file",
    None,
    "What to write, in the order of the input: .jsonl, or .npy with a row for each text, or for "
    "each piece or character of one text after the other. Similarities are shown on the screen, "
    "if none.",
)
flags.DEFINE_enum(
    "level",
    "text",
    ["piece", "character", "text"],
    "What has a vector; [CLS] and [SEP] are pieces.",
)
flags.DEFINE_list(
    "layers",
    ["-1"],
    "Layers whose vectors stand side by side: 0 is the embeddings, -1 the last layer.",
)
flags.DEFINE_enum(
    "pooling",
    "mean",
    ["mean", "cls", "max", "pooler"],
    "A text's vector: mean or maximum of its pieces, but for [CLS] and [SEP]; that of [CLS]; or "
    "what the pooler makes of that.",
)
flags.DEFINE_bool("similarity", False, "Cosine similarity of the texts of each pair, in place.")
flags.DEFINE_integer(
    "max_seq_length",
    None,
    "Most pieces, special ones counted; as the model's folder says, or 128.",
    3,
)
flags.DEFINE_integer("predict_batch_size", 32, "Texts that are read at a time.", 1)
model_flags.define_model()
flags.adopt_module_key_flags(model_flags)


def main():
    from nezha_tf.inference.extract import extract_features

    print(extract_features(cli.flag_values()))


if __name__ == "__main__":
    cli.run(main)
