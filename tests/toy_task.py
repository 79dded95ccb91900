"""A fine-tuning task that is learnt in a few steps: which of two marks is in a sequence."""

import json

import numpy as np
from keras import ops

from nezha_tf.objectives.losses import cross_entropies, hits, weighted
from nezha_tf.tasks.finetuning.task import FineTuning
from nezha_tf.util import files

CONFIG = {
    "vocab_size": 30,
    "hidden_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "type_vocab_size": 2,
    "use_relative_position": True,
    "initializer_range": 0.1,
}
LABELS = 2


class ToyObjective:
    """Cross-entropy of the class of each example."""

    def __init__(self, label_smoothing=0.0):
        self._label_smoothing = label_smoothing

    def inputs(self, batch):
        return {name: batch[name] for name in ("input_ids", "input_mask", "segment_ids")}

    def loss_weights(self, batch):
        return {"toy_loss": ops.cast(batch["input_mask"][:, 0], "float32")}

    def losses(self, outputs, batch):
        values = cross_entropies(
            outputs["logits"], batch["label_ids"], label_smoothing=self._label_smoothing
        )
        return {"toy_loss": weighted(values, self.loss_weights(batch)["toy_loss"])}

    def metrics(self, outputs, batch):
        right = hits(outputs["logits"], batch["label_ids"])
        return {"toy_accuracy": weighted(right, self.loss_weights(batch)["toy_loss"])}

    def predictions(self, outputs):
        return {"logits": outputs["logits"]}

    def distributions(self, outputs, batch):
        return {"toy_loss": outputs["logits"]}


class Examples:
    """Random tokens with one mark (7 or 8)."""

    def __init__(self, count, seed):
        rng = np.random.default_rng(seed)
        labels = rng.integers(0, LABELS, count).astype("int32")
        ids = [rng.integers(10, 30, length) for length in rng.integers(4, 12, count)]
        for row, label in zip(ids, labels, strict=True):
            row[rng.integers(1, len(row))] = 7 + label
        self.arrays = {
            "input_ids": [row.astype("int32") for row in ids],
            "segment_ids": [np.zeros(len(row), "int32") for row in ids],
            "label_ids": labels,
        }


class ToyTask(FineTuning):
    """A task that reads "COUNT SEED" from the file of a part."""

    num_labels = LABELS

    def read(self, part):
        with open(getattr(self.settings, f"{part}_file"), encoding="utf-8") as file:
            text = file.read()
        self.notes.append(f"{part}: {text}")
        return Examples(*map(int, text.split()))

    def task_file_settings(self):
        labels = [str(label) for label in range(LABELS)]
        own = {"label_type": "single", "labels": labels, "is_pair": False}
        return {"task": "classification", **own}

    def make_objective(self, label_smoothing):
        return ToyObjective(label_smoothing)

    def measure(self, part, outputs):
        right = np.argmax(outputs["logits"], axis=-1) == self.examples[part].arrays["label_ids"]
        return {"accuracy": float(np.mean(right))}

    def report(self, outputs):
        return [f"{len(outputs['logits'])} examples were evaluated"]

    def write_predictions(self, outputs):
        rows = [[float(value) for value in row] for row in outputs["logits"]]
        files.write_text(self.path("predictions.json"), json.dumps(rows))


def write_files(folder):
    """Writes the files of the task, with the names in `CHANGES`."""
    (folder / "config.json").write_text(json.dumps(CONFIG))
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokens = special + [chr(0x4E00 + number) for number in range(25)]
    (folder / "vocab.txt").write_text("\n".join(tokens) + "\n", encoding="utf-8")
    for part, count in (("train", 48), ("eval", 21), ("predict", 17)):
        (folder / f"{part}.txt").write_text(f"{count} {len(part)}")


CHANGES = {
    "bert_config_file": "config.json",
    "vocab_file": "vocab.txt",
    "train_file": "train.txt",
    "eval_file": "eval.txt",
    "predict_file": "predict.txt",
    "output_dir": "out",
    "max_seq_length": 16,
    "train_batch_size": 16,
    "num_train_epochs": 4.0,
    "jit_compile": False,
    "do_train": True,
    "do_eval": True,
    "do_predict": True,
}


def interrupted(number, interrupt):
    """Returns a task whose evaluation of a number, from 1, calls `interrupt`."""
    numbers = iter(range(1, 99))

    class Interrupted(ToyTask):
        def measure(self, part, outputs):
            if next(numbers) == number:
                interrupt()
            return super().measure(part, outputs)

    return Interrupted
