"""Fine-tunes a model to choose among the answers to a question, or among the idioms for a blank.

  python run_multiple_choice.py --task_name=c3 --data_dir=c3 --do_train --do_eval \
      --vocab_file=vocab.txt --bert_config_file=bert_config.json --init_checkpoint=model.ckpt \
      --output_dir=out
"""

import sys

try:
    from nezha_tf import cli
except ImportError as error:
    sys.exit(f"{error}; install the project first: pip install -e .")

from nezha_tf.tasks.multiple_choice.settings import MultipleChoiceSettings


def main(settings):
    from nezha_tf.serving.export import run_and_export
    from nezha_tf.tasks.finetuning.sweep import run
    from nezha_tf.tasks.multiple_choice.task import MultipleChoice

    run_and_export(run, settings, MultipleChoice)


if __name__ == "__main__":
    cli.run(main, MultipleChoiceSettings)
