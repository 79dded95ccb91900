"""A sentence or a pair as the model reads it when it is trained for an objective."""

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from nezha_tf.data.schema import Lengths
from nezha_tf.modeling import attention_mask
from nezha_tf.objectives.objective import ExampleSettings
from nezha_tf.objectives.table import OBJECTIVES, objective_named
from nezha_tf.util.errors import UserError

# A picture with more tokens cannot be read.
MOST_TOKENS = 64


class DrawnSentence(NamedTuple):
    """One example without padding: T tokens, with the segments and ranks of an objective.

    The ranks are those of `modeling.attention_mask`; the arrays are int32 [T].
    """

    tokens: list
    input_ids: np.ndarray
    segment_ids: np.ndarray
    ranks: np.ndarray

    def inputs(self):
        """Returns the inputs of an encoder, [1, T] each, and the objective's attention mask."""
        input_mask = tf.ones((1, len(self.tokens)), tf.int32)
        return {
            "input_ids": tf.constant(self.input_ids[None]),
            "input_mask": input_mask,
            "segment_ids": tf.constant(self.segment_ids[None]),
            "attention_mask": attention_mask.from_ranks(self.ranks[None], input_mask),
        }

    def visible(self):
        """Returns bool [T, T]: whether the token of the row sees the token of the column."""
        return self.inputs()["attention_mask"].numpy()[0, 0]


def lay_out(tokenizer, objective, text, text_pair=""):
    """Returns the `DrawnSentence` that pretraining for an objective makes of a text or a pair.

    Args:
      tokenizer: `FullTokenizer`.
      objective: name in the table of objectives.
      text: the sentence. For `seq2seq` it is cut in half if it is no pair. Objectives that are
        `shown_as` another one have its form.
      text_pair: the second sentence of a pair, or "".

    Raises:
      UserError: there is no such objective, a text has no token, or there are too many tokens.
    """
    objective = objective_named(objective, f"--objective={objective}")
    if objective.shown_as:
        objective = OBJECTIVES[objective.shown_as]
    texts = [text, text_pair] if text_pair else [text]
    vocabulary = tokenizer.vocabulary
    parts = [tokenizer.convert_tokens_to_ids(tokenizer.tokenize(part)) for part in texts]
    for flag, part in zip(("text", "text_pair"), parts, strict=False):
        if not part:
            raise UserError(f"--{flag} holds no token of text; give it a sentence")
    ids = [vocabulary.cls_id]
    for part in parts:
        ids += [*part, vocabulary.sep_id]
    if len(ids) > MOST_TOKENS:
        raise UserError(
            f"the text has {len(ids)} tokens, {len(parts) + 1} special ones included; a picture "
            f"has room for {MOST_TOKENS}: take a shorter text"
        )
    # The last place is for the [SEP] that divides a single text into source and target.
    whole = np.array([[*ids, vocabulary.pad_id]], np.int32)
    is_second = np.arange(whole.shape[1]) > len(parts[0]) + 1
    none = tf.zeros((1, 1), tf.int32)
    batch = {
        "input_ids": tf.constant(whole),
        "input_mask": tf.constant([[1] * len(ids) + [0]]),
        "segment_ids": tf.constant(is_second[None].astype(np.int32)),
        "next_sentence_labels": none,
        "masked_lm_positions": none,
        "masked_lm_ids": none,
        "masked_lm_weights": tf.zeros((1, 1)),
        "word_starts": tf.zeros_like(whole),
    }
    examples = ExampleSettings(Lengths(whole.shape[1], 1), vocabulary)
    for transform in objective.transforms(examples):
        batch = transform(batch, tf.constant([0], tf.int64), 0)
    length = int(tf.reduce_sum(batch["input_mask"]))
    arrays = batch["input_ids"], batch["segment_ids"], objective.ranks(batch)
    input_ids, segment_ids, ranks = (np.array(values[0, :length]) for values in arrays)
    return DrawnSentence(vocabulary.tokens_of(input_ids.tolist()), input_ids, segment_ids, ranks)


def check_segments(config, objective):
    """Raises `UserError` if a model does not have the segments of an objective."""
    segment_ids = objective_named(objective, f"--objective={objective}").segment_ids
    if max(segment_ids) >= config.type_vocab_size:
        raise UserError(
            f"--objective={objective} has the segments {segment_ids}, but the model has only "
            f"{config.type_vocab_size} (type_vocab_size); take --objective=bidirectional"
        )
