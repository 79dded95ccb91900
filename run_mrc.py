"""Fine-tunes a model to find answers in passages, evaluates it, and answers questions.

  python run_mrc.py --do_train --do_eval --train_file=train.json --eval_file=dev.json \
      --vocab_file=vocab.txt --bert_config_file=bert_config.json --init_checkpoint=model.ckpt \
      --output_dir=out
"""

import sys

try:
    from nezha_tf import cli
except ImportError as error:
    sys.exit(f"{error}; install the project first: pip install -e .")

from absl import flags

from nezha_tf.tasks.finetuning import flags as finetuning_flags
from nezha_tf.tasks.reading_comprehension.metrics import METRICS, NAMES
from nezha_tf.training import flags as training_flags

FLAGS = flags.FLAGS

flags.DEFINE_string(
    "train_file",
    None,
    "Questions to train on, JSON as SQuAD 1.1, SQuAD 2.0 and CMRC2018 have it; names or globs, "
    "comma-separated.",
)
flags.DEFINE_string("eval_file", None, "Questions to evaluate on, likewise.")
flags.DEFINE_string("predict_file", None, "Questions to answer, likewise; with answers or without.")
flags.DEFINE_integer("max_query_length", 64, "Most pieces of a question; longer ones are cut.", 1)
flags.DEFINE_integer("doc_stride", 128, "Pieces between the starts of two windows.", 1)
flags.DEFINE_integer("n_best_size", 20, "Candidates for each question that are written.", 1)
flags.DEFINE_integer("max_answer_length", 50, "Most pieces of an answer.", 1)
flags.DEFINE_bool(
    "version_2_with_negative", False, "Questions may have no answer in the passage (SQuAD 2.0)."
)
flags.DEFINE_float(
    "null_score_diff_threshold",
    0.0,
    "Then no answer is predicted where its score is above the best text's by more than this.",
)
flags.DEFINE_enum("metric", "cmrc", METRICS, "Whose F1 and exact match.")

finetuning_flags.define(["loss", "span_accuracy", *NAMES], "f1")
flags.adopt_module_key_flags(finetuning_flags)
flags.adopt_module_key_flags(training_flags)

# Chinese passages are of about 500 pieces.
FLAGS.set_default("max_seq_length", 512)


def main():
    from nezha_tf.export.exporter import run_and_export
    from nezha_tf.tasks.finetuning import sweep
    from nezha_tf.tasks.reading_comprehension.task import ReadingComprehension

    run_and_export(sweep.run, cli.flag_values(), ReadingComprehension)


if __name__ == "__main__":
    cli.run(main)
