"""Examples of the sample corpus, and the settings of short pretraining on them."""

import json

from commands import CONFIG, settings_of
from conftest import RESOURCES

from nezha_tf.corpus.create import create_pretraining_data
from nezha_tf.tasks.pretraining.settings import PretrainingSettings

VOCABULARY = str(RESOURCES / "vocab.txt")


def make_examples(folder, config=(), **changes):
    """Writes examples of 48 tokens, held-out ones and a configuration into a folder.

    `config` are changes of its configuration, `changes` more of `create_pretraining_data`.
    """
    sizes = {**CONFIG, "type_vocab_size": 6, "num_attention_heads": 4, **dict(config)}
    (folder / "config.json").write_text(json.dumps(sizes))
    create_pretraining_data(
        input_file=str(RESOURCES / "sample_corpus.txt"),
        output_file=str(folder / "train.tfrecord"),
        eval_output_file=str(folder / "eval.tfrecord"),
        eval_share=0.2,
        vocab_file=VOCABULARY,
        max_seq_length=48,
        num_workers=1,
        **changes,
    )


def settings_for(folder, objectives, *flags):
    """Returns the settings of three steps on what `make_examples` wrote."""
    return settings_of(
        PretrainingSettings,
        *(f"--bert_config_file={folder}/config.json", f"--vocab_file={VOCABULARY}"),
        *(f"--input_file={folder}/train.tfrecord", f"--eval_file={folder}/eval.tfrecord"),
        *(f"--output_dir={folder}/run", f"--objectives={objectives}", "--do_train", "--do_eval"),
        *("--num_train_steps=3", "--num_warmup_steps=1", "--train_batch_size=8"),
        *("--log_steps=1", "--nojit_compile", *flags),
    )
