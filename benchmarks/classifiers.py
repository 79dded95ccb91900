"""What finetuning.py compares, each with all imports inside: one runs in a process."""

import os
from typing import NamedTuple

import numpy as np
from contenders import VOCAB_SIZE, our_config, peer_config
from timing import THREADS, import_tensorflow

NUM_LABELS = 2
# Pieces at the quantiles of the texts' lengths, with [CLS] and [SEP]: 16,883 reviews of goods, and
# 10,000 pairs of natural-language inference (OCNLI).
QUANTILES = (0, 0.05, 0.25, 0.5, 0.75, 0.9, 0.95, 1)
LENGTHS = {"reviews": (5, 18, 40, 70, 156, 189, 233, 300), "pairs": (8, 20, 27, 35, 48, 58, 62, 90)}


class Size(NamedTuple):
    """Sizes of a model and of its batch."""

    layers: int
    hidden: int
    heads: int
    intermediate: int
    longest: int
    batch: int
    vocab_size: int = VOCAB_SIZE


def random_examples(size, texts, count):
    """Returns (list of ids [n], labels [count]) as long as real texts, cut to `longest`."""
    rng = np.random.default_rng(0)
    lengths = np.interp(rng.random(count), QUANTILES, LENGTHS[texts]).astype(int)
    ids = [rng.integers(5, VOCAB_SIZE, min(n, size.longest)).astype("int32") for n in lengths]
    return ids, rng.integers(0, NUM_LABELS, count).astype("int32")


def make_ours(size, texts, count, training, shortens):
    """Returns a callable that trains on, or predicts, all examples once."""
    tf = import_tensorflow()

    from nezha_tf import AdamWeightDecay
    from nezha_tf.data.array_reader import ArrayReader
    from nezha_tf.modeling.finetuning import NezhaForSequenceClassification
    from nezha_tf.objectives.classification import ClassificationLoss
    from nezha_tf.tasks.finetuning.evaluation import collect, make_predict_step
    from nezha_tf.training.step import Recipe, TrainStep

    ids, labels = random_examples(size, texts, count)
    arrays = {"input_ids": ids, "segment_ids": [0 * i for i in ids], "label_ids": labels}
    reader = ArrayReader(arrays, size.longest, shortens)
    model = NezhaForSequenceClassification(our_config(size), NUM_LABELS, size.longest)
    strategy, objective = tf.distribute.get_strategy(), ClassificationLoss()
    if not training:
        step = make_predict_step(strategy, model, objective, jit_compile=True, is_labelled=False)
        return lambda: collect(step, reader.evaluation_batches(size.batch))
    recipe = Recipe(AdamWeightDecay(2e-5))
    step = TrainStep(strategy, model, objective, recipe, jit_compile=True)
    batches = iter(reader.training_batches(size.batch, seed=1))
    per_epoch = reader.batches_per_epoch(size.batch)
    return lambda: float(step.run(batches, per_epoch).gradient_norm)


def make_peer(size, texts, count, training, shortens):
    """Returns the same of Hugging Face's Nezha on PyTorch, in shuffled batches."""
    os.environ["USE_TF"] = "0"  # transformers would import it, and its threads with it
    import torch
    from transformers import NezhaForSequenceClassification

    torch.set_num_threads(THREADS)
    model = NezhaForSequenceClassification(peer_config(size, num_labels=NUM_LABELS)).train(training)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-5, weight_decay=0.01, fused=True)
    ids, labels = random_examples(size, texts, count)
    rng = np.random.default_rng(1)

    def batches():
        order = rng.permutation(count)
        for first in range(0, count, size.batch):
            chosen = order[first : first + size.batch]
            width = max(len(ids[i]) for i in chosen) if shortens else size.longest
            padded = np.zeros((len(chosen), width), "int64")
            for row, i in enumerate(chosen):
                padded[row, : len(ids[i])] = ids[i]
            mask = (padded > 0).astype("int64")
            yield map(torch.from_numpy, (padded, mask, labels[chosen].astype("int64")))

    def train():
        for input_ids, mask, target in batches():
            output = model(input_ids=input_ids, attention_mask=mask, labels=target)
            optimizer.zero_grad()
            output.loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
        return output.loss.item()

    def predict():
        with torch.inference_mode():
            for input_ids, mask, _ in batches():
                model(input_ids=input_ids, attention_mask=mask).logits.numpy()

    return train if training else predict
