"""Pretrains a model on TFRecords, for one objective or for a mixture of several.

python run_pretraining.py --flagfile=configs/sample.flags
"""

import sys

try:
    from nezha_tf import cli
except ImportError as error:
    sys.exit(f"{error}; install the project first: pip install -e .")

from absl import flags

from nezha_tf.data.corruption.policies import POLICIES
from nezha_tf.pretraining_data.packing import PAIRS
from nezha_tf.training import flags as training_flags

flags.DEFINE_string("bert_config_file", None, "The model's configuration, JSON.")
flags.DEFINE_string(
    "vocab_file", None, "The vocabulary of the examples, for --output_dir and --dynamic_masking."
)
flags.DEFINE_bool(
    "do_lower_case",
    None,
    "Whether their text was lower-cased; said in --output_dir. Needed for examples of other tools "
    "that are not: beside ours it is written.",
)
flags.DEFINE_string("input_file", None, "TFRecords to train on: names or globs, comma-separated.")
flags.DEFINE_string("eval_file", None, "TFRecords to evaluate on, likewise.")
flags.DEFINE_string("output_dir", None, "Checkpoints and results; a run goes on from there.")
flags.DEFINE_string("init_checkpoint", None, "TF1's, one of ours or Hugging Face's, to start from.")
flags.DEFINE_integer(
    "max_seq_length",
    None,
    "Length of the examples. Beside ours it is written; of other tools' it is 128, if not given.",
    lower_bound=1,
)
flags.DEFINE_integer(
    "max_predictions_per_seq",
    None,
    "Their predictions. Beside ours it is written, but for --dynamic_masking; else 20, likewise.",
    lower_bound=1,
)
flags.DEFINE_enum(
    "dynamic_masking",
    None,
    [name for name, policy in POLICIES.items() if not policy.of_entities],
    "What is masked together in examples made with --masking=none, drawn anew in each epoch.",
)
flags.DEFINE_float(
    "masked_lm_prob",
    None,
    "Share of pieces that --dynamic_masking predicts; 0.15 if not given.",
    lower_bound=0,
    upper_bound=1,
)
flags.DEFINE_enum(
    "pair",
    None,
    PAIRS,
    "What the examples' segments are; with none there is no next-sentence prediction. Needed for "
    "examples of other tools only: beside ours it is written.",
)
flags.DEFINE_string(
    "objectives",
    "bidirectional",
    "What the examples are trained for, with their shares: bidirectional (masked LM and, of pairs, "
    "next sentence), left_to_right, right_to_left, seq2seq; UniLM's is "
    "bidirectional:2,seq2seq:2,left_to_right:1,right_to_left:1.",
)
flags.DEFINE_bool("do_train", False, "Train.")
flags.DEFINE_bool("do_eval", False, "Evaluate: after training, and at each checkpoint of it.")
training_flags.define()
flags.adopt_module_key_flags(training_flags)


def main():
    from nezha_tf.export.exporter import run_and_export
    from nezha_tf.tasks.pretraining.task import Pretraining
    from nezha_tf.training.run import run

    run_and_export(run, cli.flag_values(), Pretraining)


if __name__ == "__main__":
    cli.run(main)
