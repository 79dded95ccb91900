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

from nezha_tf.tasks.tagging.settings import TaggingSettings


def main(settings):
    from nezha_tf.serving.export import run_and_export
    from nezha_tf.tasks.finetuning.sweep import run
    from nezha_tf.tasks.tagging.task import NamedEntities

    run_and_export(run, settings, NamedEntities)


if __name__ == "__main__":
    cli.run(main, TaggingSettings)
