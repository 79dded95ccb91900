"""What finetuning.py compares, each with all imports inside: one runs in a process."""

from typing import NamedTuple

import numpy as np
from contenders import VOCAB_SIZE, our_config, peer_config
from forms import Form
from timing import import_tensorflow, import_torch

NUM_LABELS = 2
# Tokens at the quantiles of the texts' lengths, with [CLS] and [SEP]: 16,883 reviews of goods,
# 10,000 pairs of natural-language inference (OCNLI), and 11,869 questions of C3, of which each
# choice is a sequence with the text and the question.
QUANTILES = (0, 0.05, 0.25, 0.5, 0.75, 0.9, 0.95, 1)
LENGTHS = {
    "reviews": (5, 18, 40, 70, 156, 189, 233, 300),
    "pairs": (8, 20, 27, 35, 48, 58, 62, 90),
    "choices": (30, 50, 80, 160, 330, 620, 710, 900),
}
BY_TOKENS = "by tokens"
# Of 100 questions of C3 so many have 2, 3 and 4 choices.
CHOICES = {2: 5, 3: 12, 4: 83}


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
    """Returns (ids, labels [count]) as long as real texts, cut to `longest`.

    The ids are a list of arrays [n]; of `choices`, a list of lists of such arrays, as many for each
    question as the most choices are, the last of them empty where a question has fewer.
    """
    rng = np.random.default_rng(0)
    lengths = np.interp(rng.random(count), QUANTILES, LENGTHS[texts]).astype(int)
    lengths = np.minimum(lengths, size.longest)

    def sequence(length):
        return rng.integers(5, size.vocab_size, length).astype("int32")

    if texts != "choices":
        return [sequence(n) for n in lengths], rng.integers(0, NUM_LABELS, count).astype("int32")
    counts = rng.choice(list(CHOICES), count, p=np.array(list(CHOICES.values())) / 100)
    most = max(CHOICES)
    ids = [
        [sequence(n if choice < number else 0) for choice in range(most)]
        for n, number in zip(lengths, counts, strict=True)
    ]
    return ids, rng.integers(0, counts).astype("int32")


def make_ours(size, texts, count, training, form, shortens, lora_rank=0):
    """Returns a callable that trains on, or predicts, all examples once.

    Args:
      size, texts, count: see `random_examples`.
      training: whether it trains.
      form: `forms.Form`.
      shortens: whether texts of like lengths come into a batch, which is as long as its bucket; in
        prediction in float32 without XLA, as programs predict here, as its longest text. "by
        tokens": in training the batches of short texts have more texts, too.
      lora_rank: the rank of adapters, which are trained in place of the encoder; 0: no adapters.
    """
    tf = import_tensorflow()

    from nezha_tf import AdamWeightDecay, enable_lora
    from nezha_tf.data.in_memory import ArrayReader, TokenBudgetReader
    from nezha_tf.modeling.finetuning import NezhaForMultipleChoice, NezhaForSequenceClassification
    from nezha_tf.tasks.classification.loss import ClassificationLoss
    from nezha_tf.tasks.finetuning.evaluation import collect, make_predict_step
    from nezha_tf.tasks.multiple_choice.loss import MultipleChoiceLoss
    from nezha_tf.training.recipe import Recipe
    from nezha_tf.training.step import TrainStep

    ids, labels = random_examples(size, texts, count)
    arrays = {"input_ids": ids, "label_ids": labels}
    if texts == "choices":  # BERT's positions, as the peer
        arrays["segment_ids"] = [[0 * choice for choice in question] for question in ids]
        config, objective = our_config(size, "absolute"), MultipleChoiceLoss()
        model = NezhaForMultipleChoice(config, size.longest, dtype=form.policy)
    else:
        arrays["segment_ids"] = [0 * i for i in ids]
        config, objective = our_config(size), ClassificationLoss()
        model = NezhaForSequenceClassification(config, NUM_LABELS, size.longest, dtype=form.policy)
    any_length = not training and form == Form("float32", False)
    if training and shortens == BY_TOKENS:
        reader = TokenBudgetReader(arrays, size.longest)
    else:
        reader = ArrayReader(arrays, size.longest, bool(shortens), any_length)
    strategy = tf.distribute.get_strategy()
    if not training:
        spec = reader.evaluation_batches(size.batch).element_spec if reader.any_length else None
        how = (form.is_compiled, False, spec)
        step = make_predict_step(strategy, model, objective, *how)
        return lambda: collect(step, reader.evaluation_batches(size.batch))
    if lora_rank:
        enable_lora(model, lora_rank)
    recipe = Recipe(AdamWeightDecay(2e-5))
    step = TrainStep(strategy, model, objective, recipe, jit_compile=form.is_compiled)
    batches = iter(reader.training_batches(size.batch, seed=1))
    per_epoch = reader.batches_per_epoch(size.batch)
    return lambda: float(step.run(batches, per_epoch).gradient_norm)


def make_peer(size, texts, count, training, form, shortens):
    """Returns the same of Hugging Face on PyTorch, in shuffled batches.

    It is Nezha, and BERT for `choices`. The arguments are those of `make_ours`, but a batch that is
    shortened has texts of any lengths.
    """
    torch = import_torch()
    from transformers import BertForMultipleChoice, NezhaForSequenceClassification

    if texts == "choices":
        model = BertForMultipleChoice(peer_config(size, "BertConfig"))
    else:
        model = NezhaForSequenceClassification(peer_config(size, num_labels=NUM_LABELS))
    model = model.train(training)
    if form.precision == "bfloat16 weights":
        model = model.to(torch.bfloat16)
    batches = _PeerBatches(*random_examples(size, texts, count), size, shortens)
    if form.is_compiled:
        # Lengths differ from batch to batch, so the compiled code is for any of them.
        model.compile(dynamic=shortens)

    def train():
        for input_ids, mask, target in batches():
            optimizer.zero_grad()
            with form.autocast(torch):
                loss = model(input_ids=input_ids, attention_mask=mask, labels=target).loss
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
        return loss.item()

    def predict():
        with torch.inference_mode(), form.autocast(torch):
            for input_ids, mask, _ in batches():
                model(input_ids=input_ids, attention_mask=mask).logits.float().numpy()

    if not training:
        return predict
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-5, weight_decay=0.01, fused=True)
    return train


class _PeerBatches:
    """Batches of PyTorch (ids, mask, labels), in another order each time."""

    def __init__(self, ids, labels, size, shortens):
        self._ids, self._labels, self._size, self._shortens = ids, labels, size, shortens
        self._rng = np.random.default_rng(1)

    def __call__(self):
        import torch

        order = self._rng.permutation(len(self._ids))
        for first in range(0, len(order), self._size.batch):
            chosen = order[first : first + self._size.batch]
            rows = [
                self._ids[i] if isinstance(self._ids[i], list) else [self._ids[i]] for i in chosen
            ]
            longest = max(len(ids) for row in rows for ids in row)
            width = longest if self._shortens else self._size.longest
            padded = np.zeros((len(rows), len(rows[0]), width), "int64")
            for row, column in np.ndindex(padded.shape[:2]):
                padded[row, column, : len(rows[row][column])] = rows[row][column]
            padded = padded.squeeze(1) if padded.shape[1] == 1 else padded
            arrays = (padded, (padded > 0).astype("int64"), self._labels[chosen].astype("int64"))
            yield map(torch.from_numpy, arrays)
