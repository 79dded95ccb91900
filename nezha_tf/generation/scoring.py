"""Scores given targets and texts with a model, in one pass for all tokens."""

import numpy as np
import tensorflow as tf

from nezha_tf.config import SEGMENT_IDS
from nezha_tf.generation.decoder import position_ids
from nezha_tf.generation.generator import check_room
from nezha_tf.modeling import attention_mask, positions


class TargetScorer:
    """Computes the log-probability of each token of given targets after the tokens before it.

    With the target prediction "masked", each token of a target is read once, and a [MASK] at the
    same place, which sees the tokens before it, predicts the token. With "shift", the tokens
    themselves predict. To score a text without a source, use [CLS] as its source and the mode
    "left_to_right".
    """

    def __init__(self, model, vocabulary, target_format, jit_compile=True):
        """Args:
          model: a `NezhaForMaskedLM`.
          vocabulary: its `Vocabulary`.
          target_format: the `TargetFormat` of the model's training.
          jit_compile: whether XLA compiles the scoring.

        Raises:
          UserError: the model does not have the segments.
        """
        target_format.check(model.config)
        self._model, self._target_format, self._mask_id = model, target_format, vocabulary.mask_id
        self._score = tf.function(self._log_probs, jit_compile=jit_compile, autograph=False)

    def __call__(self, source_ids, source_mask, target_ids, target_mask):
        """Args:
          source_ids, source_mask: int [B, S], padded on the left (`pad_left`).
          target_ids, target_mask: int [B, T], padded on the right. The final [SEP], if present,
            is scored too.

        Returns:
          float32 NumPy array [B, T], natural logarithms; 0 for padding.

        Raises:
          UserError: source and target together are longer than the table of positions.
        """
        lengths = (np.sum(mask, axis=1) for mask in (source_mask, target_mask))
        check_room(self._model.config, *lengths)
        arrays = (source_ids, source_mask, target_ids, target_mask)
        return self._score(*(tf.constant(array, tf.int32) for array in arrays)).numpy()

    def _log_probs(self, source_ids, source_mask, target_ids, target_mask):
        target_format = self._target_format
        source_length, target_length = source_ids.shape[1], target_ids.shape[1]
        places = tf.range(source_length + target_length)
        input_ids = tf.concat([source_ids, target_ids], axis=1)
        input_mask = tf.concat([source_mask, target_mask], axis=1)
        ranks = target_format.ranks(source_length, target_length)
        first = source_length - 1
        if target_format.is_masked:
            first = source_length + target_length
            blanks = tf.fill(target_ids.shape, self._mask_id)
            input_ids = tf.concat([input_ids, blanks], axis=1)
            input_mask = tf.concat([input_mask, target_mask], axis=1)
            ranks = tf.concat([ranks, ranks[:, source_length:]], axis=1)
            places = tf.concat([places, places[source_length:]], axis=0)
        is_blank = tf.range(input_ids.shape[1]) >= source_length + target_length
        is_source = tf.range(input_ids.shape[1]) < source_length
        inputs = {
            "input_ids": input_ids,
            "input_mask": input_mask,
            "segment_ids": tf.broadcast_to(
                tf.where(is_source, *target_format.segment_ids), input_ids.shape
            ),
            "attention_mask": attention_mask.with_blanks(ranks, input_mask, is_blank),
            "position_ids": position_ids(self._model.encoder.positions, source_mask, places),
            "masked_lm_positions": tf.broadcast_to(
                tf.range(first, first + target_length), target_ids.shape
            ),
        }
        logits = self._model(inputs)["masked_lm_logits"]
        log_probs = tf.gather(tf.nn.log_softmax(logits), target_ids, batch_dims=2)
        return tf.where(target_mask == 1, log_probs, 0.0)


class PseudoScorer:
    """Computes the log-probability of each token of a text when only this token is masked.

    Their mean gives the pseudo-perplexity (Salazar et al., arXiv 1910.14659 §2).
    """

    def __init__(self, model, vocabulary, jit_compile=True):
        """Arguments: see `TargetScorer`."""
        self._model, self._mask_id = model, vocabulary.mask_id
        self._cls_id, self._sep_id = vocabulary.cls_id, vocabulary.sep_id
        self._score = tf.function(self._log_probs, jit_compile=jit_compile, autograph=False)

    def __call__(self, text_ids, length, batch_size=32):
        """Args:
          text_ids: the ids of a text, without [CLS] and [SEP].
          length: T; the text with [CLS] and [SEP] is padded to this length, or to the length of the
            table of positions if that is shorter.
          batch_size: number of copies of the text in a batch of the model.

        Returns:
          float32 NumPy array [n] of the tokens' log-probabilities.

        Raises:
          UserError: the text is longer than the table of positions.
        """
        config = self._model.config
        tokens = [self._cls_id, *text_ids, self._sep_id]
        kind = positions.of(config)
        kind.check_length(config, len(tokens), f"a text of {len(tokens)} tokens")
        longest = kind.longest(config)
        if longest is not None:
            length = max(len(tokens), min(length, longest))
        input_ids = np.zeros(length, "int32")
        input_ids[: len(tokens)] = tokens
        places = np.arange(1, len(tokens) - 1)
        found = []
        for start in range(0, len(places), batch_size):
            part = places[start : start + batch_size]
            padded = np.pad(part, (0, batch_size - len(part)), mode="edge")
            log_probs = self._score(
                tf.constant(input_ids), tf.constant(len(tokens)), tf.constant(padded, tf.int32)
            )
            found.append(log_probs.numpy()[: len(part)])
        return np.concatenate(found) if found else np.zeros(0, "float32")

    def _log_probs(self, input_ids, num_tokens, places):
        shape = (places.shape[0], input_ids.shape[0])
        index = tf.range(shape[1])
        outputs = self._model(
            {
                "input_ids": tf.where(index == places[:, None], self._mask_id, input_ids),
                "input_mask": tf.broadcast_to(tf.cast(index < num_tokens, tf.int32), shape),
                "segment_ids": tf.fill(shape, SEGMENT_IDS["bidirectional"][0]),
                "masked_lm_positions": places[:, None],
            }
        )
        log_probs = tf.nn.log_softmax(outputs["masked_lm_logits"][:, 0])
        return tf.gather(log_probs, tf.gather(input_ids, places), batch_dims=1)
