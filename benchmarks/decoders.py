"""The searches that decoding.py compares, each with all imports inside: one runs in a process."""

from typing import NamedTuple

import numpy as np
from contenders import VOCAB_SIZE, our_config
from forms import Form
from timing import import_tensorflow, import_torch

PLAIN = Form("float32", is_compiled=False)
PAD_ID, SEP_ID, MASK_ID, FIRST_ID = 0, 3, 4, 5


class Size(NamedTuple):
    """Sizes of a model and of what it writes; every target has `target` tokens."""

    layers: int
    hidden: int
    heads: int
    intermediate: int
    source: int
    target: int
    batch: int
    beams: int
    vocab_size: int = VOCAB_SIZE


def random_sources(size):
    rng = np.random.default_rng(0)
    return rng.integers(FIRST_ID, VOCAB_SIZE, (size.batch, size.source)).astype("int32")


def make_ours(size, target_prediction, jit_compile, recompute=False, policy="float32"):
    """Returns our search, which keeps keys and values or computes all anew at each step."""
    import_tensorflow()

    from nezha_tf import Vocabulary
    from nezha_tf.generation.generator import Generator
    from nezha_tf.generation.options import GenerationOptions
    from nezha_tf.generation.target_format import TargetFormat
    from nezha_tf.modeling.pretraining import NezhaForMaskedLM
    from nezha_tf.text.vocabulary import SPECIAL_TOKENS

    vocabulary = Vocabulary([*SPECIAL_TOKENS, *(f"p{n}" for n in range(FIRST_ID, VOCAB_SIZE))])
    target_format = TargetFormat(target_prediction=target_prediction)
    options = GenerationOptions(
        method="beam" if size.beams > 1 else "greedy",
        beam_size=size.beams,
        max_length=size.target,
        min_length=size.target,
    )
    model = NezhaForMaskedLM(our_config(size), dtype=policy)
    generator = Generator(model, vocabulary, target_format, options, jit_compile)
    if recompute:
        generator._decoder = _recomputing_decoder(
            model, target_format, generator._decoder, jit_compile
        )
    sources = random_sources(size)
    mask = np.ones_like(sources)

    def search():
        found = generator(sources, mask)
        assert (found.lengths.numpy() == size.target).all()

    return search


def _recomputing_decoder(model, target_format, decoder, is_static):
    """Returns a decoder that reads source and target whole at each step of each beam.

    Compiled, it reads as many places as there will be, as XLA's shapes are static; else as many
    as there are.
    """
    import tensorflow as tf

    from nezha_tf.modeling import attention_mask

    class Written(NamedTuple):
        """The tokens of the hypotheses so far, and the sources."""

        tokens: tf.Tensor
        length: tf.Tensor

        def follow(self, parents):
            return self._replace(tokens=tf.gather(self.tokens, parents, batch_dims=1))

    class RecomputingDecoder:
        def start(self, source_ids, source_mask, beams, max_length):
            logits, *_ = decoder.start(source_ids, source_mask, beams, max_length)
            tokens = tf.zeros((source_ids.shape[0], beams, max_length + 1), tf.int32)
            return logits, source_ids, Written(tokens, tf.constant(0))

        def step(self, source, written, tokens):
            batch, beams, places = written.tokens.shape
            index = tf.range(places)
            tokens = tf.where(index == written.length, tokens[..., None], written.tokens)
            length = written.length + 1
            target = (
                tf.where(index == length, MASK_ID, tokens) if target_format.is_masked else tokens
            )
            source_length = source.shape[1]
            source = tf.repeat(source[:, None], beams, axis=1)
            input_ids = tf.reshape(
                tf.concat([source, target], axis=-1), (batch * beams, source_length + places)
            )
            last = source_length + length - int(not target_format.is_masked)
            if not is_static:
                input_ids = input_ids[:, : last + 1]
            place = tf.range(tf.shape(input_ids)[1])
            input_mask = tf.broadcast_to(tf.cast(place <= last, tf.int32), tf.shape(input_ids))
            outputs = model(
                {
                    "input_ids": input_ids,
                    "input_mask": input_mask,
                    "segment_ids": tf.broadcast_to(
                        tf.where(place < source_length, *target_format.segment_ids),
                        tf.shape(input_ids),
                    ),
                    "attention_mask": attention_mask.from_ranks(
                        tf.maximum(place - source_length + 1, 0)[None], input_mask
                    ),
                    "masked_lm_positions": tf.fill((batch * beams, 1), last),
                }
            )
            logits = tf.reshape(outputs["masked_lm_logits"], (batch, beams, VOCAB_SIZE))
            return logits, Written(tokens, length)

    return RecomputingDecoder()


def make_peer(size, kind, form=PLAIN):
    """Returns Hugging Face's cached `generate` with a model of the same size on PyTorch.

    Args:
      size: `Size`.
      kind: "gpt2" or "bert" (a decoder without cross-attention).
      form: `forms.Form`. Compiled, the cache still grows; these models have no other.
    """
    torch = import_torch()
    from transformers import BertConfig, BertLMHeadModel, GPT2Config, GPT2LMHeadModel

    if kind == "gpt2":
        model = GPT2LMHeadModel(
            GPT2Config(
                vocab_size=VOCAB_SIZE,
                n_embd=size.hidden,
                n_layer=size.layers,
                n_head=size.heads,
                n_inner=size.intermediate,
                n_positions=512,
            )
        )
    else:
        model = BertLMHeadModel(
            BertConfig(
                vocab_size=VOCAB_SIZE,
                hidden_size=size.hidden,
                num_hidden_layers=size.layers,
                num_attention_heads=size.heads,
                intermediate_size=size.intermediate,
                hidden_act="gelu_pytorch_tanh",
                is_decoder=True,
            )
        )
    model.eval()
    if form.is_compiled:
        model.forward = torch.compile(model.forward, dynamic=True)
    sources = torch.from_numpy(random_sources(size)).long()
    options = {
        "attention_mask": torch.ones_like(sources),
        "max_new_tokens": size.target,
        "min_new_tokens": size.target,
        "num_beams": size.beams,
        "do_sample": False,
        "use_cache": True,
        "pad_token_id": PAD_ID,
        "eos_token_id": SEP_ID,
    }

    def search():
        with torch.inference_mode(), form.autocast(torch):
            found = model.generate(sources, **options)
        assert found.shape == (size.batch, size.source + size.target)

    return search
