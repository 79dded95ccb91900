"""Fine-tunes a model to write a target for a source, evaluates it, and writes.

  python run_seq2seq.py --do_train --do_eval --train_file=train.jsonl --eval_file=dev.jsonl \
      --vocab_file=vocab.txt --bert_config_file=bert_config.json --init_checkpoint=model.ckpt \
      --output_dir=out
"""

import sys

try:
    from nezha_tf import cli
except ImportError as error:
    sys.exit(f"{error}; install the project first: pip install -e .")

from absl import flags

from nezha_tf.config import TARGET_PREDICTIONS
from nezha_tf.tasks.seq2seq import flags as seq2seq_flags
from nezha_tf.tasks.seq2seq.metrics import NAMES
from nezha_tf.training import flags as training_flags

FLAGS = flags.FLAGS

BEST_METRICS = ("loss", "masked_lm_accuracy", *NAMES)

flags.DEFINE_string("bert_config_file", None, "The model's configuration, JSON.")
flags.DEFINE_string("vocab_file", None, "Its vocabulary, one piece a line.")
flags.DEFINE_bool("do_lower_case", True, "Lower-case the text and strip accents.")
flags.DEFINE_string(
    "train_file",
    None,
    'Pairs to train on: .json or .jsonl with {"src": ..., "tgt": ...} a line, or .tsv or .txt with '
    "two columns; .gz too; names or globs, comma-separated.",
)
flags.DEFINE_string("eval_file", None, "Pairs to evaluate on, likewise.")
flags.DEFINE_string(
    "predict_file", None, "Sources to write for, likewise; targets may be left out."
)
flags.DEFINE_string("output_dir", None, "Checkpoints and results; a run goes on from there.")
flags.DEFINE_string("init_checkpoint", None, "TF1's, one of ours or Hugging Face's, to start from.")
flags.DEFINE_bool("do_train", False, "Train.")
flags.DEFINE_bool("do_eval", False, "Evaluate: after training, and at each checkpoint of it.")
flags.DEFINE_bool("do_predict", False, "Write predictions.jsonl, with the best checkpoint.")

flags.DEFINE_integer("max_source_length", 128, "Most pieces, [CLS] and [SEP] counted.", 1)
flags.DEFINE_integer("max_target_length", 64, "Most pieces, the final [SEP] counted.", 1)
flags.DEFINE_enum(
    "truncate_source", "tail", seq2seq_flags.ENDS, "Which end of a longer source is cut off."
)
flags.DEFINE_enum(
    "truncate_target", "tail", seq2seq_flags.ENDS, "Which end of a longer target is cut off."
)
flags.DEFINE_enum(
    "target_prediction",
    "masked",
    TARGET_PREDICTIONS,
    "Predict masked pieces of the target, or at each of its positions the next piece.",
)
flags.DEFINE_float("masked_lm_prob", 0.7, "Share of the target that is masked.", 0, 1)
flags.DEFINE_integer(
    "max_predictions_per_seq", None, "Most masked pieces; that share of the longest target.", 1
)
flags.DEFINE_enum("best_metric", "loss", BEST_METRICS, "Of the checkpoint that is kept as best.")
flags.DEFINE_integer(
    "max_eval_generated",
    200,
    "Held-out sources that an evaluation writes targets for, to measure them; 0: the loss alone.",
    0,
)

seq2seq_flags.define_search()
flags.adopt_module_key_flags(seq2seq_flags)
training_flags.define()
flags.adopt_module_key_flags(training_flags)

# What UniLM is fine-tuned with.
for name, value in (
    ("optimizer", "adamw"),
    ("learning_rate", 3e-5),
    ("warmup_proportion", 0.1),
    ("train_batch_size", 64),
    ("num_train_steps", 10_000),
):
    FLAGS.set_default(name, value)


def main():
    from nezha_tf.export.exporter import run_and_export
    from nezha_tf.tasks.seq2seq.task import Seq2Seq
    from nezha_tf.training.run import run

    run_and_export(run, cli.flag_values(), Seq2Seq)


if __name__ == "__main__":
    cli.run(main)
