"""Fine-tunes a model to classify texts or pairs of texts, evaluates it, and predicts.

  python run_classifier.py --task_name=chnsenti --data_dir=chnsenti --do_train --do_eval \
      --vocab_file=vocab.txt --bert_config_file=bert_config.json --init_checkpoint=model.ckpt \
      --output_dir=out

  python run_classifier.py --task_name=custom --train_file=train.csv --eval_file=dev.csv \
      --text_column=question --text_pair_column=answer --label_column=verdict ...

  python run_classifier.py --task_name=bustm --data_dir=bustm --label_words=不,很 \
      --pattern='{text}和{text_pair}的意思[MASK]像。' ...
"""

import sys

try:
    from nezha_tf import cli
except ImportError as error:
    sys.exit(f"{error}; install the project first: pip install -e .")

from nezha_tf.tasks.classification.settings import ClassificationSettings


def main(settings):
    from nezha_tf.serving.export import run_and_export
    from nezha_tf.tasks.classification.task import Classification
    from nezha_tf.tasks.finetuning.sweep import run
    from nezha_tf.tasks.prompting.task import Prompting

    def make_task(settings):  # They have the pattern of the folder, if it is not given.
        return (Prompting if settings.pattern else Classification)(settings)

    run_and_export(run, settings, make_task)


if __name__ == "__main__":
    cli.run(main, ClassificationSettings)
