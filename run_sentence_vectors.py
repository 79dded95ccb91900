"""Fine-tunes a model on texts without labels, so that vectors of like texts are near (SimCSE).

  python run_sentence_vectors.py --train_file=texts.txt --eval_file=pairs.jsonl --do_train \
      --do_eval --vocab_file=vocab.txt --bert_config_file=bert_config.json \
      --init_checkpoint=model.ckpt --learning_rate=3e-5 --output_dir=out
"""

import sys

try:
    from nezha_tf import cli
except ImportError as error:
    sys.exit(f"{error}; install the project first: pip install -e .")

from nezha_tf.tasks.sentence_vectors.settings import SentenceVectorSettings


def main(settings):
    from nezha_tf.serving.export import run_and_export
    from nezha_tf.tasks.finetuning.sweep import run
    from nezha_tf.tasks.sentence_vectors.task import SentenceVectors

    run_and_export(run, settings, SentenceVectors)


if __name__ == "__main__":
    cli.run(main, SentenceVectorSettings)
