"""The steps that the benchmarks compare, each with all imports inside: one runs in a process."""

import os
from typing import NamedTuple

import numpy as np
from timing import THREADS, import_tensorflow

VOCAB_SIZE = 21128


class Size(NamedTuple):
    """Sizes of a model and of its batch."""

    layers: int
    hidden: int
    heads: int
    intermediate: int
    length: int
    batch: int
    predictions: int
    vocab_size: int = VOCAB_SIZE


def random_batch(size):
    """Returns full sequences of random pieces, in the feature schema, as NumPy arrays."""
    rng = np.random.default_rng(0)
    shape = (size.batch, size.length)
    positions = [rng.permutation(size.length)[: size.predictions] for _ in range(size.batch)]
    return {
        "input_ids": rng.integers(0, size.vocab_size, shape).astype("int32"),
        "input_mask": np.ones(shape, "int32"),
        "segment_ids": (np.arange(size.length) >= size.length // 2) + np.zeros(shape, "int32"),
        "masked_lm_positions": np.sort(positions).astype("int32"),
        "masked_lm_ids": rng.integers(0, size.vocab_size, (size.batch, size.predictions), "int32"),
        "masked_lm_weights": np.ones((size.batch, size.predictions), "float32"),
        "next_sentence_labels": rng.integers(0, 2, (size.batch, 1), "int32"),
    }


def our_config(size, position_encoding="functional_relative"):
    """Returns our configuration of a size: of this module, or of `decoders`."""
    from nezha_tf import NezhaConfig

    return NezhaConfig(
        vocab_size=size.vocab_size,
        hidden_size=size.hidden,
        num_hidden_layers=size.layers,
        num_attention_heads=size.heads,
        intermediate_size=size.intermediate,
        type_vocab_size=6,
        position_encoding=position_encoding,
    )


def make_our_step(size, position_encoding, jit_compile, recompute=False):
    """Returns our training step: `tf.function`, AdamW, compiled by XLA if asked.

    With `recompute`, the layers compute their activations again for the backward pass.
    """
    step, *_ = our_train_step(size, position_encoding, jit_compile, recompute=recompute)
    import tensorflow as tf

    batch = {name: tf.constant(values) for name, values in random_batch(size).items()}
    return lambda: float(step.on_batch(batch).gradient_norm)


def make_objectives_step(size, objectives, jit_compile):
    """Returns our step on a mixture of pretraining objectives, as --objectives names it.

    The examples are random texts in pairs that belong together.
    """
    import_tensorflow()

    from nezha_tf import Vocabulary
    from nezha_tf.data.corruption.dynamic_masking import DynamicMasking
    from nezha_tf.data.corruption.policies import POLICIES
    from nezha_tf.data.schema import Lengths
    from nezha_tf.pretraining_objectives.mixture import ObjectiveMixture
    from nezha_tf.pretraining_objectives.objective import Examples

    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    unused = [f"[unused{number}]" for number in range(100)]
    rest = [f"piece{number}" for number in range(size.vocab_size - len(special) - len(unused))]
    vocabulary = Vocabulary([*special, *unused, *rest])
    lengths = Lengths(size.length, size.predictions)
    masking = DynamicMasking(vocabulary, POLICIES["whole_word"], lengths, 0.15)
    mixture = ObjectiveMixture.from_text(objectives)
    loss = mixture.loss(of_pairs=True)
    step, *_ = our_train_step(size, "functional_relative", jit_compile, loss, mixture.model)
    import tensorflow as tf

    batch = _unmasked_batch(size, vocabulary, first=len(special) + len(unused))
    for transform in mixture.transforms(Examples(lengths, vocabulary, masking)):
        batch = transform(batch, tf.range(size.batch, dtype=tf.int64), 0)
    return lambda: float(step.on_batch(batch).gradient_norm)


def _unmasked_batch(size, vocabulary, first):
    """Returns unmasked pairs [CLS] A [SEP] B [SEP] of random pieces from an id on, as tensors."""
    import tensorflow as tf

    ids = np.random.default_rng(0).integers(first, size.vocab_size, (size.batch, size.length))
    middle = size.length // 2
    ids[:, 0], ids[:, [middle, -1]] = vocabulary.cls_id, vocabulary.sep_id
    batch = {
        "input_ids": ids,
        "input_mask": np.ones_like(ids),
        "segment_ids": (np.arange(size.length) > middle) + np.zeros_like(ids),
        "word_starts": ids >= first,
        "next_sentence_labels": np.zeros((size.batch, 1)),
    }
    return {name: tf.constant(values.astype("int32")) for name, values in batch.items()}


def our_train_step(
    size, position_encoding, jit_compile, objective=None, model_class=None, recompute=False
):
    """Returns our `TrainStep`, the model's configuration, the optimizer and the model.

    Without an objective and a model it is masked LM with next-sentence prediction.
    """
    tf = import_tensorflow()

    from nezha_tf import AdamWeightDecay, NezhaForPreTraining
    from nezha_tf.objectives.pretraining import MaskedLMLoss
    from nezha_tf.training.step import Recipe, TrainStep

    config = our_config(size, position_encoding)
    model, optimizer = (model_class or NezhaForPreTraining)(config), AdamWeightDecay(1e-4)
    objective = objective or MaskedLMLoss()
    for layer in model.encoder.transformer_layers:
        layer.recompute = recompute
    # As in a run: layers that no term of the loss uses have no gradient.
    model.encoder.pooler.trainable = any(term.is_pooled for term in objective.terms)
    for head in ("masked_lm", "next_sentence"):
        if hasattr(model, head):
            getattr(model, head).trainable = any(term.head == head for term in objective.terms)
    step = TrainStep(
        tf.distribute.get_strategy(),
        model,
        objective,
        Recipe(optimizer),
        jit_compile=jit_compile,
    )
    return step, config, optimizer, model


def peer_config(size, **others):
    """Returns Hugging Face's configuration of a size: of this module, or of `classifiers`."""
    from transformers import NezhaConfig

    return NezhaConfig(
        vocab_size=size.vocab_size,
        hidden_size=size.hidden,
        num_hidden_layers=size.layers,
        num_attention_heads=size.heads,
        intermediate_size=size.intermediate,
        # Our function, and of its two forms in PyTorch the faster one.
        hidden_act="gelu_pytorch_tanh",
        max_position_embeddings=512,
        type_vocab_size=2,
        **others,
    )


def make_peer_step(size):
    """Returns the step of Hugging Face's Nezha on PyTorch: the same sizes, loss and optimizer."""
    os.environ["USE_TF"] = "0"  # transformers would import it, and its threads with it
    import torch
    from transformers import NezhaForPreTraining

    torch.set_num_threads(THREADS)
    model = NezhaForPreTraining(peer_config(size)).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.01, fused=True)
    batch = {name: torch.from_numpy(v).long() for name, v in random_batch(size).items()}
    labels = torch.full(batch["input_ids"].shape, -100)
    labels.scatter_(1, batch["masked_lm_positions"], batch["masked_lm_ids"])

    def step():
        output = model(
            input_ids=batch["input_ids"],
            attention_mask=batch["input_mask"],
            token_type_ids=batch["segment_ids"],
            labels=labels,
            next_sentence_label=batch["next_sentence_labels"][:, 0],
        )
        optimizer.zero_grad()
        output.loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return output.loss.item()

    return step
