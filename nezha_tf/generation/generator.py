"""Writing targets for a batch of sources: decoder and search in one compiled loop."""

import numpy as np
import tensorflow as tf
from keras import ops

from nezha_tf.generation.beam_search import BeamSearch
from nezha_tf.generation.decoder import Decoder
from nezha_tf.generation.rules import Rules
from nezha_tf.generation.sampling import Sampling
from nezha_tf.modeling import positions
from nezha_tf.text.vocabulary import check_vocabulary


class Generator:
    """Writes targets with a model, under rules.

    Everything from the sources to the finished hypotheses is one `tf.function` of static shapes;
    it is traced anew for each shape of the sources. `search` is its body.
    """

    def __init__(self, model, vocabulary, target_format, options, jit_compile=True):
        """Args:
          model: a `NezhaForMaskedLM`.
          vocabulary: its `Vocabulary`.
          target_format: `TargetFormat`, that in which the model was trained.
          options: `GenerationOptions`.
          jit_compile: compile by XLA: seconds for each shape, and faster afterwards.

        Raises:
          UserError: the model lacks segments, or has fewer rows than the vocabulary has pieces.
        """
        target_format.check(model.config)
        check_vocabulary(model.config, vocabulary)
        self._config = model.config
        self._vocabulary = vocabulary
        self._options = options
        self._decoder = Decoder(model, target_format, vocabulary.mask_id)
        self._rules = Rules(options, vocabulary, model.config.vocab_size)
        self._generate = tf.function(self.search, jit_compile=jit_compile, autograph=False)

    def __call__(self, source_ids, source_mask, seed=0):
        """Args:
          source_ids: int [B, S], padded on the left (`pad_left`).
          source_mask: int [B, S], 0 for padding.
          seed: of "sample", for the first example; that of each next one is one more.

        Returns:
          `Generated`.

        Raises:
          UserError: source and target together are past the table of positions.
        """
        check_room(self._config, np.sum(source_mask, axis=1), self._options.max_length)
        return self._generate(
            tf.constant(source_ids, tf.int32),
            tf.constant(source_mask, tf.int32),
            tf.constant((seed + np.arange(len(source_ids))) % 2**31, tf.int32),
        )

    def search(self, source_ids, source_mask, seeds):
        """Writes targets inside a graph, where B and S may be known only when it runs.

        Args:
          source_ids, source_mask: int32 [B, S], padded on the left.
          seeds: int32 [B], of "sample"; what is written for an example depends on no other one.

        Returns:
          `Generated`. Whether there is room for the places is for the caller to check
          (`check_room`).
        """
        options = self._options
        if options.method == "beam":
            search = BeamSearch(options, self._rules, self._vocabulary)
        else:
            search = Sampling(options, self._rules, self._vocabulary, seeds)
        batch, beams = ops.shape(source_ids)[0], options.num_hypotheses
        # The last piece of a target is never read.
        logits, source, cache = self._decoder.start(
            source_ids, source_mask, beams, max(options.max_length - 1, 1)
        )
        logits = tf.broadcast_to(logits[:, None], (batch, beams, logits.shape[-1]))
        state, _ = search.advance(search.start(batch), tf.nn.log_softmax(logits))

        def goes_on(state, _):
            return tf.logical_not(search.is_done(state))

        def step(state, cache):
            pieces = tf.gather(state.sequences, state.length - 1, axis=2)
            logits, cache = self._decoder.step(source, cache, pieces)
            state, parents = search.advance(state, tf.nn.log_softmax(logits))
            return state, cache if parents is None else cache.follow(parents)

        state, _ = tf.while_loop(
            goes_on, step, (state, cache), maximum_iterations=options.max_length - 1
        )
        return search.result(state)


def check_room(config, source_lengths, target_lengths):
    """Raises UserError where a source and its target are past the table of positions.

    Args:
      config: `NezhaConfig`.
      source_lengths: pieces of each source, int NumPy array [B].
      target_lengths: (most) pieces of each target, the same, or one for all.
    """
    lengths = source_lengths + target_lengths
    longest, source = lengths.max(), source_lengths[lengths.argmax()]
    positions.of(config).check_length(
        config, longest, f"a source of {source} pieces and a target of {longest - source}"
    )
