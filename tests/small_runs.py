"""Short runs of pretraining on texts in a cyclic order, so that each token tells the next one."""

import json
import pathlib

from commands import settings_of
from records import encode_values, write

from nezha_tf.data import schema
from nezha_tf.tasks.pretraining.settings import PretrainingSettings
from nezha_tf.tasks.pretraining.task import Pretraining
from nezha_tf.training.run import run

TEXT = [chr(0x4E00 + number) for number in range(20)]
TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *TEXT]
CLS, SEP, FIRST = 2, 3, 5
LENGTHS = schema.Lengths(12, 2)
CONFIG = {
    "vocab_size": len(TOKENS),
    "hidden_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 4,
    "intermediate_size": 32,
    "type_vocab_size": 6,
    "use_relative_position": True,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
    "initializer_range": 0.1,
}


def text_of(number):
    """Returns the ids of 4 to 10 tokens in a cyclic order."""
    return [FIRST + (number + place) % 20 for place in range(4 + number % 7)]


def record(number):
    """Returns an unmasked record of a single text."""
    text = text_of(number)
    rest = [0] * (LENGTHS.max_seq_length - len(text) - 2)
    values = {
        "input_ids": [CLS, *text, SEP, *rest],
        "input_mask": [1] * (len(text) + 2) + rest,
        "segment_ids": [0] * LENGTHS.max_seq_length,
        "word_starts": [0, *[1] * len(text), 0, *rest],
        "next_sentence_labels": [0],
    }
    return encode_values(values, schema.UNMASKED_FEATURES)


def write_data(folder, **config):
    """Writes a configuration, a vocabulary, 200 records to train on and 40 to evaluate on."""
    (folder / "config.json").write_text(json.dumps({**CONFIG, **config}))
    (folder / "vocab.txt").write_text("\n".join(TOKENS) + "\n", encoding="utf-8")
    write(folder / "train.tfrecord", map(record, range(200)))
    write(folder / "eval.tfrecord", map(record, range(200, 240)))


def train(folder, output_dir, objectives, *flags):
    """Trains on the files of `write_data`; returns the results of the evaluation, if there is one.

    `output_dir` is relative to the folder.
    """
    folder = pathlib.Path(folder)
    settings = settings_of(
        PretrainingSettings,
        *(f"--objectives={objectives}", f"--output_dir={folder / output_dir}", "--do_train"),
        *(f"--bert_config_file={folder}/config.json", f"--vocab_file={folder}/vocab.txt"),
        *(f"--input_file={folder}/train.tfrecord", f"--eval_file={folder}/eval.tfrecord"),
        *("--pair=none", "--max_seq_length=12", "--max_predictions_per_seq=2"),
        *("--train_batch_size=16", "--num_warmup_steps=5", "--optimizer=adamw"),
        *("--log_steps=20", "--nojit_compile", *flags),
    )
    run(settings, Pretraining)
    results = folder / output_dir / "eval_results.json"
    return json.loads(results.read_text()) if results.exists() else None
