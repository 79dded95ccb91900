"""Makes TFRecords for pretraining out of running text.

The text has one sentence a line and a blank line between documents. After an interruption the
same command goes on where it was.

  python tools/create_pretraining_data.py --input_file='corpus/*.txt.gz' \
      --output_file=train.tfrecord --vocab_file=vocab.txt
"""

import sys

try:
    from nezha_tf import cli
except ImportError as error:
    sys.exit(f"{error}; install the project first: pip install -e .")

from absl import flags

from nezha_tf.data.corruption.policies import DEFAULT_MASKED_LM_PROB, POLICIES, UNMASKED
from nezha_tf.pretraining_data.beam import RUNNERS
from nezha_tf.pretraining_data.packing import PAIRS
from nezha_tf.text.word_segmentation import SEGMENTERS

FLAGS = flags.FLAGS

flags.DEFINE_string("input_file", None, "Text files: names or globs, comma-separated; .gz too.")
flags.DEFINE_string(
    "output_file",
    None,
    "TFRecord file; of several shards train.tfrecord becomes train-00000-of-00032.tfrecord and on.",
)
flags.DEFINE_string("vocab_file", None, "The vocabulary, one piece a line.")
flags.DEFINE_bool("do_lower_case", True, "Lower-case the text and strip accents.")
flags.DEFINE_integer("max_seq_length", 128, "Length of an example.", lower_bound=5)
flags.DEFINE_integer("max_predictions_per_seq", 20, "Most predictions.", lower_bound=1)
flags.DEFINE_integer("random_seed", 12345, "The same seed gives the same bytes.")
flags.DEFINE_integer("dupe_factor", 10, "Times each document is masked anew.", lower_bound=1)
flags.DEFINE_float("masked_lm_prob", DEFAULT_MASKED_LM_PROB, "Share of pieces predicted.", 0, 1)
flags.DEFINE_float(
    "short_seq_prob", 0.1, "Share of shorter examples.", lower_bound=0, upper_bound=1
)
flags.DEFINE_float("random_next_prob", 0.5, "Share of pairs that do not belong together.", 0, 1)
flags.DEFINE_enum(
    "masking",
    "whole_word",
    [*POLICIES, UNMASKED],
    "What is masked together; none: run_pretraining.py masks, with --dynamic_masking.",
)
flags.DEFINE_enum(
    "pair",
    "nsp",
    PAIRS,
    "The two segments: a random next sentence in one pair of two (nsp), segments in changed order "
    "(sop), or full sentences as one segment (none).",
)
flags.DEFINE_enum("segmenter", "jieba", SEGMENTERS, "What cuts the text into words.")
flags.DEFINE_string("user_dict", "", "One's own words or entities: word, frequency and tag a line.")
flags.DEFINE_enum(
    "on_invalid",
    "error",
    ["error", "replace", "skip"],
    "What is done with bytes that are not UTF-8: end with the line's number, drop the bytes, or "
    "leave the line out.",
)
flags.DEFINE_string("eval_output_file", "", "Keep documents out of training; write them here.")
flags.DEFINE_float("eval_share", 0.05, "Share of documents kept out.", lower_bound=0, upper_bound=1)
flags.DEFINE_integer(
    "num_output_shards", 0, "Files; 0: as many as leave 4 MiB of text to each.", lower_bound=0
)
flags.DEFINE_integer("num_workers", 0, "Processes; 0: one for each core.", lower_bound=0)
flags.DEFINE_enum("runner", "", ["", *RUNNERS], "Let a runner of Apache Beam make the shards.")
flags.DEFINE_string("beam_options", "", "Its options: '--project=... --temp_location=...'.")


def main():
    from nezha_tf.errors import require_flag
    from nezha_tf.pretraining_data.create import create_pretraining_data

    for name in ("input_file", "output_file", "vocab_file"):
        require_flag(FLAGS[name].value, name)
    create_pretraining_data(**cli.flag_values())


if __name__ == "__main__":
    cli.run(main, with_tensorflow=False)
