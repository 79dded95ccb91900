"""Fine-tunes a model to classify texts or pairs of texts, evaluates it, and predicts.

  python run_classifier.py --task_name=chnsenti --data_dir=chnsenti --do_train --do_eval \
      --vocab_file=vocab.txt --bert_config_file=bert_config.json --init_checkpoint=model.ckpt \
      --output_dir=out

  python run_classifier.py --task_name=custom --train_file=train.csv --eval_file=dev.csv \
      --text_column=question --text_pair_column=answer --label_column=verdict ...
"""

import sys

try:
    from nezha_tf import cli
except ImportError as error:
    sys.exit(f"{error}; install the project first: pip install -e .")

from absl import flags

from nezha_tf.tasks.classification import flags as classification_flags
from nezha_tf.tasks.classification.metrics import NAMES
from nezha_tf.tasks.finetuning import flags as finetuning_flags
from nezha_tf.training import flags as training_flags

classification_flags.define()
flags.adopt_module_key_flags(classification_flags)
finetuning_flags.define(("loss", *NAMES), best_metric=None)
flags.adopt_module_key_flags(finetuning_flags)
flags.adopt_module_key_flags(training_flags)


def main():
    from nezha_tf.export.exporter import run_and_export
    from nezha_tf.tasks.classification.task import Classification
    from nezha_tf.tasks.finetuning import sweep

    run_and_export(sweep.run, cli.flag_values(), Classification)


if __name__ == "__main__":
    cli.run(main)
