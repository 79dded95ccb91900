"""Writes targets for a batch of sources: decoder and search in one compiled loop."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import tensorflow as tf
from keras import ops

from nezha_tf.generation.decoder import Decoder
from nezha_tf.generation.options import GenerationOptions
from nezha_tf.generation.search import BeamSearch, Generated, Rules, Sampling
from nezha_tf.generation.target_format import TargetFormat
from nezha_tf.modeling import positions
from nezha_tf.modeling.pretraining import NezhaForMaskedLM
from nezha_tf.text.vocabulary import Vocabulary, check_vocabulary

# Tokens between two results of `Generator.in_parts`.
PART = 4


class Generator:
    """Writes targets with a model.

    Everything from the sources to the finished hypotheses is one `tf.function` with static shapes;
    it is traced again for each shape of the sources. Its body is `search`. `in_parts` runs the same
    search in several steps, to show what is written so far.
    """

    def __init__(
        self,
        model: NezhaForMaskedLM,
        vocabulary: Vocabulary,
        target_format: TargetFormat,
        options: GenerationOptions,
        jit_compile: bool = True,
    ):
        """Args:
          model: a `NezhaForMaskedLM`.
          vocabulary: its `Vocabulary`.
          target_format: the `TargetFormat` of the model's training.
          options: `GenerationOptions`.
          jit_compile: whether XLA compiles the search, which takes seconds for each shape but is
            faster afterwards.

        Raises:
          UserError: the model lacks the segments, or has fewer rows than the vocabulary has tokens.
        """
        target_format.check(model.config)
        check_vocabulary(model.config, vocabulary)
        self._config = model.config
        self._vocabulary = vocabulary
        self._options = options
        self._decoder = Decoder(model, target_format, vocabulary.mask_id)
        self._rules = Rules(options, vocabulary, model.config.vocab_size)
        self._generate = tf.function(self.search, jit_compile=jit_compile, autograph=False)
        # Not compiled by XLA: a single text is not worth the seconds that this takes.
        self._begun_in_graph, self._part_in_graph = (
            tf.function(function, autograph=False, reduce_retracing=True)
            for function in (self._begun, self._part)
        )

    def __call__(
        self, source_ids: npt.ArrayLike, source_mask: npt.ArrayLike, seed: int = 0
    ) -> Generated:
        """Returns the `Generated` of sources, int [B, S], padded on the left (`pad_left`).

        The mask is 0 for padding. For the method "sample", the seed is that of the first example;
        each next one has the next number. A `UserError` if source and target are longer than the
        table of positions.
        """
        check_room(self._config, np.sum(source_mask, axis=1), self._options.max_length)
        return self._generate(
            tf.constant(source_ids, tf.int32),
            tf.constant(source_mask, tf.int32),
            tf.constant((seed + np.arange(len(source_ids))) % 2**31, tf.int32),
        )

    def search(self, source_ids: tf.Tensor, source_mask: tf.Tensor, seeds: tf.Tensor) -> Generated:
        """Returns the `Generated` of sources, int32 [B, S], in a graph; B and S may be dynamic.

        They are padded on the left, and the caller has checked that there are enough positions
        (`check_room`). For the method "sample", the seeds, int32 [B], decide each example's result.
        """
        state, source, cache = self._begun(source_ids, source_mask, seeds)
        steps = self._options.max_length - 1
        state, _ = self._extended(state, source, cache, seeds, steps)
        return self._searching(seeds).result(state)

    def in_parts(
        self, source_ids: tf.Tensor, source_mask: tf.Tensor, seeds: tf.Tensor
    ) -> Iterator[Generated]:
        """Yields the `Generated` as it grows, after every few tokens; the last is the whole one.

        The arguments are those of `search`.
        """
        state, source, cache = self._begun_in_graph(source_ids, source_mask, seeds)
        is_done = False
        while not is_done:
            state, cache, generated, is_done = self._part_in_graph(state, source, cache, seeds)
            yield generated

    def _part(self, state, source, cache, seeds):
        """Returns (state, cache, `Generated` so far, whether it is whole) a few tokens later."""
        search = self._searching(seeds)
        most = self._options.max_length
        steps = tf.minimum(PART, most - state.length)
        state, cache = self._extended(state, source, cache, seeds, steps)
        is_done = search.is_done(state) | (state.length == most)
        return state, cache, search.so_far(state), is_done

    def _searching(self, seeds):
        if self._options.method == "beam":
            return BeamSearch(self._options, self._rules, self._vocabulary)
        return Sampling(self._options, self._rules, self._vocabulary, seeds)

    def _begun(self, source_ids, source_mask, seeds):
        """Returns (state of the search after the first token, cache of the sources, cache)."""
        options, search = self._options, self._searching(seeds)
        batch, beams = ops.shape(source_ids)[0], options.num_hypotheses
        # The last token of a target is never an input, so it needs no place in the cache.
        logits, source, cache = self._decoder.start(
            source_ids, source_mask, beams, max(options.max_length - 1, 1)
        )
        logits = tf.broadcast_to(logits[:, None], (batch, beams, logits.shape[-1]))
        state, _ = search.advance(search.start(batch), logits)
        return state, source, cache

    def _extended(self, state, source, cache, seeds, steps):
        """Returns (state, cache) after so many further tokens, or when the search is done."""
        search = self._searching(seeds)

        def goes_on(state, _):
            return tf.logical_not(search.is_done(state))

        def step(state, cache):
            tokens = tf.gather(state.sequences, state.length - 1, axis=2)
            logits, cache = self._decoder.step(source, cache, tokens)
            state, parents = search.advance(state, logits)
            return state, cache if parents is None else cache.follow(parents)

        return tf.while_loop(goes_on, step, (state, cache), maximum_iterations=steps)


def check_room(config, source_lengths, target_lengths):
    """Raises a `UserError` if a source and its target are longer than the table of positions.

    The lengths are numbers of tokens, int NumPy arrays [B]; those of the targets may be one int.
    """
    lengths = source_lengths + target_lengths
    longest, source = lengths.max(), source_lengths[lengths.argmax()]
    positions.of(config).check_length(
        config, longest, f"a source of {source} tokens and a target of {longest - source}"
    )
