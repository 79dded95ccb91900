"""Multiple choice from raw text."""

import tensorflow as tf

from nezha_tf.data.choices import CHID_PUNCTUATION, ONE_BLANK
from nezha_tf.serving.signature import Serving, as_graphs
from nezha_tf.serving.text_reader import (
    INPUT_MEANINGS,
    MODEL_INPUTS,
    heads,
    of_ids,
    text_spec,
    valid,
)
from nezha_tf.tasks.multiple_choice.loss import MultipleChoiceLoss
from nezha_tf.tasks.multiple_choice.packing import (
    OTHER_BLANK,
    OTHER_BLANK_TOKENS,
    SPECIAL_TOKENS,
    blank_id,
)

# `data.choices.BLANK` in the syntax of RE2.
_ANY_BLANK = r"#idiom\p{Nd}*#"
_IDS = " of each choice's sequence; all 0: there is no such choice"
MEANINGS = {
    **{name: meaning + _IDS for name, meaning in INPUT_MEANINGS.items() if name in MODEL_INPUTS},
    "context": "the texts",
    "question": "the question about each text",
    "choices": 'the choices of each question; "": there is no such choice',
    "choice": "the most probable choice",
    "index": "its number, from 0",
    "probability": "its probability",
    "probabilities": "the probability of each choice",
}


class MultipleChoiceServing(Serving):
    """The most probable choice for each question or blank."""

    meanings = MEANINGS

    def __init__(self, folder, model):
        super().__init__(model, folder.tokenizer)
        self._has_blanks = folder.task["has_blanks"]
        self._is_ascii = folder.task.get("ascii_punctuation", False)
        self._length = folder.task["max_seq_length"]
        self._room = self._length - SPECIAL_TOKENS
        self._blank_id = blank_id(folder.tokenizer.vocabulary)
        self._predictions = MultipleChoiceLoss().predictions

    @property
    def about(self):
        longer = f"Longer sequences are cut to {self._length} tokens."
        if self._has_blanks:
            return f"Chooses what belongs in the blank {ONE_BLANK} of each text. {longer}"
        return f"Chooses the answer to a question about each text. {longer}"

    @property
    def example(self):
        if self._has_blanks:
            return (
                'context=tf.constant(["雨#idiom#，下个不停。"]), '
                'choices=tf.constant([["绵绵不断", "画蛇添足"]])'
            )
        return (
            'context=tf.constant(["今天下雨。"]), question=tf.constant(["天气怎么样？"]), '
            'choices=tf.constant([["晴天", "雨天"]])'
        )

    def signatures(self):
        specs = [text_spec("context"), tf.TensorSpec([None, None], tf.string, name="choices")]
        if self._has_blanks:
            default = (lambda context, choices: self._of_texts(context, None, choices), specs)
        else:
            specs.insert(1, text_spec("question"))
            default = (self._of_texts, specs)
        return as_graphs({"serving_default": default, "from_ids": of_ids(self._found, rank=3)})

    def _of_texts(self, context, question, choices):
        """Returns the outputs for texts, string [B], and choices, string [B, C]."""
        shape = tf.shape(choices)
        message = "context, question and choices must have as many rows"
        texts = [context] if self._has_blanks else [context, question]
        with tf.control_dependencies(
            [tf.debugging.assert_equal(tf.size(text), shape[0], message) for text in texts]
        ):
            choices = tf.identity(choices)
        flat = tf.strings.strip(tf.reshape(choices, [-1]))
        owner = tf.repeat(tf.range(shape[0]), shape[1])
        found = self._reader.ids(flat)
        if self._has_blanks:
            inputs = self._with_blanks(context, owner, found)
        else:
            inputs = self._with_questions(context, question, owner, found)
        is_choice = tf.cast(found.row_lengths() > 0, tf.int32)[:, None]
        length = tf.shape(inputs["input_ids"])[1]
        whole = tf.stack([shape[0], shape[1], length])
        outputs = self._found({n: tf.reshape(v * is_choice, whole) for n, v in inputs.items()})
        choice = tf.gather(choices, outputs["index"], batch_dims=1)
        return {"choice": choice, **outputs}

    def _with_questions(self, context, question, owner, choice):
        """Returns the model's inputs as `QuestionPacking` makes them, [B * C, T]."""
        context, question = (
            tf.gather(self._reader.ids(text), owner) for text in (context, question)
        )
        kept = _truncated([context, choice, question], self._room)
        context, choice, question = map(heads, (context, choice, question), kept)
        sep = _column(self._reader.vocabulary.sep_id, choice.nrows())
        return self._reader.packed(context, tf.concat([question, sep, choice], axis=1))

    def _with_blanks(self, context, owner, choice):
        """Returns the model's inputs as `BlankPacking` makes them, [B * C, T]."""
        context = valid(context)
        for old, new in CHID_PUNCTUATION if self._is_ascii else ():
            context = tf.strings.regex_replace(context, old, new)
        # Without a blank the whole text is in front of it.
        left = tf.strings.regex_replace(context, f"(?s){ONE_BLANK}.*", "")
        end = tf.minimum(tf.strings.length(left) + len(ONE_BLANK), tf.strings.length(context))
        right = tf.strings.substr(context, end, tf.strings.length(context) - end)
        left, right = (tf.gather(self._around(text), owner) for text in (left, right))
        choice = heads(choice, self._room - 1)
        lengths = [side.row_lengths() for side in (left, right)]
        room = self._room - choice.row_lengths()
        before = tf.minimum(lengths[0], tf.maximum(room // 2, room - lengths[1]))
        after = tf.minimum(lengths[1], room - before)
        left = _tails(self._with_masks(_tails(left, before)), before)
        right = heads(self._with_masks(heads(right, after)), after)
        blank = _column(self._blank_id, choice.nrows())
        inputs = self._reader.packed(choice, tf.concat([left, blank, right], axis=1))
        return {**inputs, "segment_ids": tf.zeros_like(inputs["segment_ids"])}

    def _around(self, text):
        """Returns the ids of texts, int32 RaggedTensor [B, (n)], `OTHER_BLANK` for each blank."""
        text = tf.strings.regex_replace(text, _ANY_BLANK, ONE_BLANK)
        return self._reader.ids_with(text, ONE_BLANK, OTHER_BLANK)

    def _with_masks(self, ids):
        """Returns ids, RaggedTensor [N, (n)], with the [MASK]s of the other blanks."""
        is_blank = ids.values == OTHER_BLANK
        counts = tf.where(is_blank, OTHER_BLANK_TOKENS, 1)
        values = tf.where(is_blank, self._reader.vocabulary.mask_id, ids.values)
        ends = tf.cumsum(tf.concat([[0], counts], axis=0))
        splits = tf.cast(tf.gather(ends, ids.row_splits), tf.int64)
        return tf.RaggedTensor.from_row_splits(tf.repeat(values, counts), splits, validate=False)

    def _found(self, inputs):
        count = tf.shape(inputs["input_ids"])[1]
        message = "there must be a choice, at least one for each row"
        with tf.control_dependencies([tf.debugging.assert_positive(count, message)]):
            inputs = {name: tf.identity(value) for name, value in inputs.items()}
        probabilities = self._predictions(self._model(inputs, all_outputs=True))["probabilities"]
        return {
            "index": tf.argmax(probabilities, axis=-1, output_type=tf.int32),
            "probability": tf.reduce_max(probabilities, axis=-1),
            "probabilities": probabilities,
        }


def _column(token, count):
    return tf.RaggedTensor.from_uniform_row_length(tf.repeat([token], count), 1, count)


def _tails(ragged, lengths):
    """Returns the last entries of each row of a RaggedTensor [B, (n)], at most `lengths`, [B]."""
    return tf.reverse(heads(tf.reverse(ragged, [1]), lengths), [1])


def _truncated(texts, room):
    """Returns `packing.truncated_lengths` of RaggedTensors [N, (n)]: a list of int64 [N]."""
    lengths = tf.stack([text.row_lengths() for text in texts], axis=1)
    levels = tf.range(room + 1, dtype=tf.int64)
    sums = tf.reduce_sum(tf.minimum(lengths[:, None], levels[:, None]), axis=-1)
    level = tf.reduce_sum(tf.cast(sums <= room, tf.int64), axis=1, keepdims=True) - 1
    kept = tf.minimum(lengths, level)
    is_cut = tf.cast(lengths > level, tf.int64)
    spare = room - tf.reduce_sum(kept, axis=1, keepdims=True)
    # The later ones of the texts that are cut keep a token more.
    rank = tf.cumsum(is_cut, axis=1, exclusive=True, reverse=True)
    return tf.unstack(kept + is_cut * tf.cast(rank < spare, tf.int64), axis=1)
