"""Multiple choice from raw text."""

import tensorflow as tf

from nezha_tf.data.choices import CHID_PUNCTUATION, ONE_BLANK
from nezha_tf.serving.signature import Serving, as_graphs
from nezha_tf.serving.text_reader import (
    INPUT_MEANINGS,
    MODEL_INPUTS,
    inputs_of,
    of_ids,
    text_spec,
    valid,
)
from nezha_tf.tasks.multiple_choice.loss import MultipleChoiceLoss
from nezha_tf.tasks.multiple_choice.packing import BlankPacking, QuestionPacking

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
        kind = BlankPacking if self._has_blanks else QuestionPacking
        self._packing = kind(folder.tokenizer.vocabulary, self._length)
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
        owner = tf.repeat(tf.range(shape[0]), shape[1])
        found = self._reader.ids(tf.strings.strip(tf.reshape(choices, [-1])))
        if self._has_blanks:
            texts = self._around_blank(context)
        ids = (self._packing.ids_of(self._reader, text) for text in texts)
        packed = self._packing(*(tf.gather(each, owner) for each in ids), found)
        inputs = inputs_of(packed.ids, packed.segment_ids)
        is_choice = tf.cast(found.row_lengths() > 0, tf.int32)[:, None]
        length = tf.shape(inputs["input_ids"])[1]
        whole = tf.stack([shape[0], shape[1], length])
        outputs = self._found({n: tf.reshape(v * is_choice, whole) for n, v in inputs.items()})
        choice = tf.gather(choices, outputs["index"], batch_dims=1)
        return {"choice": choice, **outputs}

    def _around_blank(self, context):
        """Returns the texts before and after the first blank of each context."""
        context = valid(context)
        for old, new in CHID_PUNCTUATION if self._is_ascii else ():
            context = tf.strings.regex_replace(context, old, new)
        # Without a blank the whole text is in front of it.
        left = tf.strings.regex_replace(context, f"(?s){ONE_BLANK}.*", "")
        end = tf.minimum(tf.strings.length(left) + len(ONE_BLANK), tf.strings.length(context))
        return left, tf.strings.substr(context, end, tf.strings.length(context) - end)

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
