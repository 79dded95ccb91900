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

from nezha_tf.tasks.seq2seq.settings import Seq2SeqSettings


def main(settings):
    from nezha_tf.serving.export import run_and_export
    from nezha_tf.tasks.seq2seq.task import Seq2Seq
    from nezha_tf.training.run import run

    run_and_export(run, settings, Seq2Seq)


if __name__ == "__main__":
    cli.run(main, Seq2SeqSettings)
