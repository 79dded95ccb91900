"""Fine-tunes a model to find named entities, evaluates it, and writes what it finds.

  python run_ner.py --do_train --do_eval --train_file=train.txt --eval_file=dev.txt \
      --vocab_file=vocab.txt --bert_config_file=bert_config.json --init_checkpoint=model.ckpt \
      --output_dir=out
"""

import sys

try:
    from nezha_tf import cli
except ImportError as error:
    sys.exit(f"{error}; install the project first: pip install -e .")

from absl import flags

from nezha_tf.data.entity_tags import SCHEMES
from nezha_tf.tasks.finetuning import flags as finetuning_flags
from nezha_tf.tasks.tagging.metrics import NAMES
from nezha_tf.training import flags as training_flags

flags.DEFINE_string(
    "train_file",
    None,
    'Sentences to train on: .json or .jsonl with {"text": ..., "entities": [{"start":, "end":, '
    '"label":}]} a line (end: the first character behind the entity), or else a character, a '
    "space or a tab and its tag a line, a blank line between sentences; .gz too; names or globs, "
    "comma-separated.",
)
flags.DEFINE_string("eval_file", None, "Sentences to evaluate on, likewise.")
flags.DEFINE_string(
    "predict_file",
    None,
    "Sentences to find entities in, likewise, but that entities may be left out; or raw text, one "
    "sentence a line.",
)
flags.DEFINE_enum(
    "scheme",
    "auto",
    ["auto", *SCHEMES],
    "Of the model's tags; auto: as the training files have them, and BIO for JSON.",
)
flags.DEFINE_integer(
    "window_stride",
    None,
    "Pieces from the start of one window of a long sentence to the next; half of a window, if not "
    "given.",
    1,
)
flags.DEFINE_bool("crf", False, "A conditional random field over the tags.")
flags.DEFINE_float("crf_learning_rate_factor", 100.0, "Of its transitions, which begin at 0.", 0)

finetuning_flags.define(("loss", *NAMES), "f1")
for module in (finetuning_flags, training_flags):
    flags.adopt_module_key_flags(module)


def main():
    from nezha_tf.export.exporter import run_and_export
    from nezha_tf.tasks.finetuning import sweep
    from nezha_tf.tasks.tagging.task import NamedEntities

    run_and_export(sweep.run, cli.flag_values(), NamedEntities)


if __name__ == "__main__":
    cli.run(main)
