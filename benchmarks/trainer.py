"""A fine-tuning by transformers' Trainer, as commands.py starts it.

python trainer.py MODEL TRAIN PREDICT EPOCHS BATCH LENGTH RATE THREADS eager|compiled OUTPUT
"""

import os
import sys

import torch
from transformers import (
    BertTokenizerFast,
    DataCollatorWithPadding,
    NezhaForSequenceClassification,
    Trainer,
    TrainingArguments,
)


def main(model, train, predict, epochs, batch, length, rate, threads, form, output):
    torch.set_num_threads(int(threads))
    tokenizer = BertTokenizerFast.from_pretrained(model)
    parts = [_read(path, tokenizer, int(length)) for path in (train, predict)]
    labels = sorted({row["label"] for row in parts[0]})
    for row in (*parts[0], *parts[1]):
        row["label"] = labels.index(row["label"])
    settings = TrainingArguments(
        output,
        num_train_epochs=float(epochs),
        per_device_train_batch_size=int(batch),
        per_device_eval_batch_size=int(batch),
        learning_rate=float(rate),
        warmup_ratio=0.1,
        weight_decay=0.01,
        group_by_length=True,
        torch_compile=form == "compiled",
        use_cpu=True,
        save_strategy="no",
        report_to=[],
    )
    trainer = Trainer(
        NezhaForSequenceClassification.from_pretrained(model, num_labels=len(labels)),
        settings,
        DataCollatorWithPadding(tokenizer),
        train_dataset=parts[0],
    )
    trainer.train()
    trainer.save_model(output)
    found = trainer.predict(parts[1]).predictions.argmax(axis=-1)
    with open(os.path.join(output, "predictions.tsv"), "w", encoding="utf-8") as file:
        file.writelines(f"{labels[index]}\n" for index in found)


def _read(path, tokenizer, length):
    with open(path, encoding="utf-8") as file:
        rows = [line.rstrip("\n").rsplit("\t", 1) for line in file]
    texts, labels = zip(*rows, strict=True)
    packed = tokenizer(list(texts), truncation=True, max_length=length)
    names = ("input_ids", "attention_mask", "token_type_ids")
    return [
        {**{name: packed[name][i] for name in names}, "label": label}
        for i, label in enumerate(labels)
    ]


if __name__ == "__main__":
    main(*sys.argv[1:])
