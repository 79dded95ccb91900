"""Exports of models that write texts: tokenizer, search and detokenizer in one graph."""

import copy
import dataclasses
import functools

import tensorflow as tf

from nezha_tf.generation.generator import Generator
from nezha_tf.generation.writing_format import format_of, pretrained_format
from nezha_tf.modeling import positions
from nezha_tf.serving.signature import Serving, as_graphs
from nezha_tf.serving.text_reader import INPUT_MEANINGS, ids_specs, padded, text_spec
from nezha_tf.text.graph_detokenizer import GraphDetokenizer
from nezha_tf.util.errors import UserError

# The seed if the caller passes none.
SEED = 0
# The options of a pretrained model on the page, by its mode. Such a model repeats itself and loses
# its thread, or writes less of the source than there is.
ON_PAGE = {
    "left_to_right": {
        "num_return_sequences": 3,
        "temperature": 0.7,
        "repetition_penalty": 1.2,
        "no_repeat_ngram_size": 3,
    },
    "seq2seq": {"num_return_sequences": 3, "length_penalty": 2.0, "no_repeat_ngram_size": 3},
}
MEANINGS = {
    **INPUT_MEANINGS,
    "seed": "the seed of sampling for each text; the same text and seed give the same texts",
    "texts": "the written texts, best first; empty if there are fewer",
    "continuations": "the continuations of the text, best first; empty if there are fewer",
    "scores": "log-probability divided by length penalty; minus infinity if there are fewer",
    "log_probs": "natural logarithm of the probability",
    "ids": "the ids of the written tokens, with the final [SEP], padded with zeros",
    "lengths": "the number of written tokens",
}


class WritingServing(Serving):
    """Texts that a model writes for texts, best first, with their scores."""

    meanings = MEANINGS
    example = 'text=tf.constant(["今天很冷。"])'

    def __init__(self, model, tokenizer, form, written="texts", on_page=None):
        """Args:
          model: a `NezhaForMaskedLM`.
          tokenizer: its `FullTokenizer`.
          form: its `WritingFormat`.
          written: the name of the output with the texts.
          on_page: dict of the `GenerationOptions` that are others on the page; None: only as
            many texts as the search finds.

        Raises:
          UserError: the model does not have the segments, or is too short for source and target.
        """
        super().__init__(model, tokenizer)
        form.check(model.config)
        self._side, _, self._options = form
        self.written, self._on_page = written, on_page
        self._make_generator = functools.partial(
            Generator, model, tokenizer.vocabulary, form.target_format
        )
        self._detokenizer = GraphDetokenizer(tokenizer.vocabulary)
        self._longest = positions.of(model.config).longest(model.config)
        self._set_generator()

    @property
    def about(self):
        side = self._side
        end = "front" if side.truncate == "head" else "end"
        special = "`[CLS]` and `[SEP]`" if side.special_tokens == 2 else "`[CLS]`"
        paragraphs = [
            f"Writes texts of at most {self._options.max_length} tokens, by {self._options.method}"
            f" search. {side.name.capitalize()}s are cut at their {end} to {side.max_length} "
            f"tokens, including {special}.",
            "Unlike the programs, the graph does not look words up in the source: an unknown token"
            " is left out, words stay in lower case if the model lower-cases, and spaces beside"
            " punctuation follow the rules of English.",
        ]
        if self._is_drawn:
            paragraphs.append(
                f"`serving_default` samples with the seed {SEED}, so it returns the same texts"
                " each time; `with_seed` takes other seeds."
            )
        return "\n\n".join(paragraphs)

    def signatures(self):
        seed = [tf.TensorSpec([None], tf.int32, name="seed")] if self._is_drawn else []

        def of_texts(text, seed=None):
            return self._texts(self._search(*self._packed(self._reader.ids(text)), seed))

        def from_ids(input_ids, input_mask, seed=None):
            return self._search(input_ids, input_mask, seed)._asdict()

        functions = {"serving_default": (of_texts, [text_spec("text")])}
        if self._is_drawn:
            functions["with_seed"] = (of_texts, [text_spec("text"), *seed])
        functions["from_ids"] = (from_ids, [*ids_specs()[:2], *seed])
        return as_graphs(functions)

    @property
    def written_count(self):
        """How many texts it writes for each."""
        return self._options.num_return_sequences

    def for_page(self):
        return self.with_options(
            **self._on_page or {"num_return_sequences": self._options.num_hypotheses}
        )

    def in_parts(self, text):
        """Yields the default signature's outputs for texts, string [B], while they are written."""
        sources = self._sources(*self._packed(self._reader.ids(text)))
        for generated in self._generator.in_parts(*sources, self._seeds(sources[0])):
            yield self._texts(generated)

    def with_options(self, **changes):
        """Returns this with other `GenerationOptions`; a `UserError` if one is bad."""
        other = copy.copy(self)
        try:
            other._options = dataclasses.replace(self._options, **changes)
        except TypeError as error:
            names = ", ".join(field.name for field in dataclasses.fields(self._options))
            raise UserError(f"{error}; the options of a search are {names}") from error
        other._set_generator()
        return other

    def _set_generator(self):
        options = self._options
        self._generator = self._make_generator(options)
        self._is_drawn = options.method == "sample"
        # Past the table of positions, the decoder would take its last row again and again.
        self._longest_source = self._longest and self._longest - options.max_length

    def _packed(self, ids):
        """Returns (input_ids, input_mask), int32 [B, S]; `ids` is a RaggedTensor [B, (n)]."""
        side = self._side
        room = side.max_length - side.special_tokens
        ids = ids[:, :room] if side.truncate == "tail" else ids[:, -room:]
        special = (self._reader.vocabulary.cls_id, self._reader.vocabulary.sep_id)
        begin, end = (tf.fill([ids.nrows(), 1], token) for token in special)
        parts = [begin, ids, end][: side.special_tokens + 1]
        return padded(tf.concat(parts, axis=1), side.special_tokens)

    def _search(self, input_ids, input_mask, seeds):
        """Returns the `Generated` of sources, padded on the right."""
        sources = self._sources(input_ids, input_mask)
        return self._generator.search(*sources, self._seeds(input_ids) if seeds is None else seeds)

    def _seeds(self, input_ids):
        return tf.fill(tf.shape(input_ids)[:1], SEED)

    def _sources(self, input_ids, input_mask):
        """Returns (input_ids, input_mask) padded on the left, if they are not too long."""
        if self._longest_source is not None:
            longest = tf.reduce_max(tf.reduce_sum(input_mask, axis=1))
            message = f"a source has more than {self._longest_source} tokens; shorten it"
            with tf.control_dependencies(
                [tf.debugging.assert_less_equal(longest, self._longest_source, message)]
            ):
                input_ids = tf.identity(input_ids)
        return [_padded_left(array, input_mask) for array in (input_ids, input_mask)]

    def _texts(self, generated):
        shape = tf.shape(generated.lengths)
        texts = self._detokenizer.detokenize(
            tf.reshape(generated.ids, (-1, generated.ids.shape[-1]))
        )
        texts = tf.ensure_shape(tf.reshape(texts, shape), generated.lengths.shape)
        return {self.written: texts, "scores": generated.scores, "log_probs": generated.log_probs}


def finetuned_writing(folder, model):
    """Returns the `WritingServing` of a sequence-to-sequence run, given as a `ModelFolder`."""
    return WritingServing(model, folder.tokenizer, format_of(folder.task, folder.tokenizer))


def pretrained_writing(folder, model, mode):
    """Returns the `WritingServing` of a pretraining run, given as a `ModelFolder`.

    Without fine-tuning it writes targets ("seq2seq") or continuations ("left_to_right").

    Raises:
      UserError: no objective of the run trains for this mode.
    """
    written = "continuations" if mode == "left_to_right" else "texts"
    form = pretrained_format(folder, mode)
    return WritingServing(model, folder.tokenizer, form, written, ON_PAGE[mode])


def _padded_left(values, input_mask):
    """Moves the padding of values [B, S] from the right to the left, where a search needs it."""
    lengths = tf.reduce_sum(input_mask, axis=1)
    return tf.reverse(tf.reverse_sequence(values, lengths, seq_axis=1), [1])
