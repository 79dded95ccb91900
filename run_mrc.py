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

from nezha_tf.tasks.reading_comprehension.settings import ReadingComprehensionSettings


def main(settings):
    from nezha_tf.serving.export import run_and_export
    from nezha_tf.tasks.finetuning.sweep import run
    from nezha_tf.tasks.reading_comprehension.task import ReadingComprehension

    run_and_export(run, settings, ReadingComprehension)


if __name__ == "__main__":
    cli.run(main, ReadingComprehensionSettings)
