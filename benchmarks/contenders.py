"""The steps that the benchmarks compare, each with all imports inside: one runs in a process."""

from typing import NamedTuple

import numpy as np
from timing import import_tensorflow, import_torch

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
    """Returns full sequences of random tokens, in the feature schema, as NumPy arrays."""
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


def make_our_step(size, position_encoding, jit_compile, policy="float32", recompute=False):
    """Returns our training step: `tf.function`, AdamW, compiled by XLA if asked.

    With `recompute`, the layers compute their activations again for the backward pass.
    """
    step, *_ = our_train_step(
        size, position_encoding, jit_compile, policy=policy, recompute=recompute
    )
    import tensorflow as tf

    batch = {name: tf.constant(values) for name, values in random_batch(size).items()}
    return lambda: float(step.on_batch(batch).gradient_norm)


def make_objectives_step(size, objectives, jit_compile):
    """Returns our step on a mixture of pretraining objectives, as --objectives names it.

    The examples are random texts in pairs that belong together.
    """
    import_tensorflow()

    from nezha_tf import Vocabulary
    from nezha_tf.data.schema import Lengths
    from nezha_tf.objectives.dynamic_masking import DynamicMasking
    from nezha_tf.objectives.mixture import ObjectiveMixture
    from nezha_tf.objectives.objective import ExampleSettings
    from nezha_tf.objectives.policies import POLICIES

    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    unused = [f"[unused{number}]" for number in range(100)]
    rest = [f"token{number}" for number in range(size.vocab_size - len(special) - len(unused))]
    vocabulary = Vocabulary([*special, *unused, *rest])
    lengths = Lengths(size.length, size.predictions)
    masking = DynamicMasking(vocabulary, POLICIES["whole_word"], lengths, 0.15)
    mixture = ObjectiveMixture.from_text(objectives)
    loss = mixture.loss(of_pairs=True)
    step, *_ = our_train_step(size, "functional_relative", jit_compile, loss, mixture.model)
    import tensorflow as tf

    batch = _unmasked_batch(size, vocabulary, first=len(special) + len(unused))
    for transform in mixture.transforms(ExampleSettings(lengths, vocabulary, masking)):
        batch = transform(batch, tf.range(size.batch, dtype=tf.int64), 0)
    return lambda: float(step.on_batch(batch).gradient_norm)


def _unmasked_batch(size, vocabulary, first):
    """Returns unmasked pairs [CLS] A [SEP] B [SEP] of random tokens from an id on, as tensors."""
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
    size,
    position_encoding,
    jit_compile,
    objective=None,
    model_class=None,
    policy="float32",
    recompute=False,
):
    """Returns our `TrainStep`, the model's configuration, the optimizer and the model.

    Without an objective and a model it is masked LM with next-sentence prediction. `policy` is
    Keras's dtype policy.
    """
    tf = import_tensorflow()

    from nezha_tf import AdamWeightDecay, NezhaForPreTraining
    from nezha_tf.objectives.bert import Bidirectional
    from nezha_tf.training.recipe import Recipe
    from nezha_tf.training.step import TrainStep

    config = our_config(size, position_encoding)
    model = (model_class or NezhaForPreTraining)(config, dtype=policy)
    optimizer = AdamWeightDecay(1e-4)
    objective = objective or Bidirectional().loss()
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


def peer_config(size, kind="NezhaConfig", **others):
    """Returns Hugging Face's configuration of a size: of this module, or of `classifiers`.

    `kind` is the name of its class in transformers; `others` are further keys of it.
    """
    import transformers

    return getattr(transformers, kind)(
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


def make_peer_step(size, form, has_all_positions):
    """Returns the step of Hugging Face's Nezha on PyTorch: the same sizes, loss and optimizer.

    Args:
      size: `Size`.
      form: `forms.Form`.
      has_all_positions: whether the vocabulary is scored at every position, as transformers' own
        loss does it; else at the masked ones, as ours.
    """
    import_torch()
    from transformers import NezhaForPreTraining

    step = peer_train_step(NezhaForPreTraining(peer_config(size)), size, form, has_all_positions)
    return lambda: step().item()


def peer_train_step(model, size, form, has_all_positions, device="cpu"):
    """Returns a function that makes a step with a BERT or Nezha of transformers.

    It returns the loss, a tensor that may not be there yet on a GPU.
    """
    import torch

    model = model.to(device).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.01, fused=True)
    batch = {name: torch.from_numpy(v).long().to(device) for name, v in random_batch(size).items()}
    loss_of = peer_loss if has_all_positions else peer_loss_of_masked
    if form.is_compiled:
        loss_of = torch.compile(loss_of)

    def step():
        optimizer.zero_grad()
        with form.autocast(torch, device):
            loss = loss_of(model, batch)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss.detach()

    return step


def peer_loss(model, batch):
    """Returns the loss as transformers computes it, which scores every position."""
    labels = batch["input_ids"].new_full(batch["input_ids"].shape, -100)
    labels = labels.scatter(1, batch["masked_lm_positions"], batch["masked_lm_ids"])
    return model(
        input_ids=batch["input_ids"],
        attention_mask=batch["input_mask"],
        token_type_ids=batch["segment_ids"],
        labels=labels,
        next_sentence_label=batch["next_sentence_labels"][:, 0],
    ).loss


def peer_loss_of_masked(model, batch):
    """Returns the same loss; the states of the masked positions are gathered before the head."""
    from torch.nn.functional import cross_entropy

    outputs = model.base_model(
        input_ids=batch["input_ids"],
        attention_mask=batch["input_mask"],
        token_type_ids=batch["segment_ids"],
    )
    states, pooled = outputs[:2]
    places = batch["masked_lm_positions"][..., None].expand(-1, -1, states.shape[-1])
    scores, next_sentence = model.cls(states.gather(1, places), pooled)
    masked_lm = cross_entropy(scores.flatten(0, 1), batch["masked_lm_ids"].flatten())
    return masked_lm + cross_entropy(next_sentence, batch["next_sentence_labels"][:, 0])
