"""Exports of models that find named entities, with their characters in the raw text."""

import tensorflow as tf

from nezha_tf.data.entity_tags import OUTSIDE, SCHEMES, TagSet
from nezha_tf.serving.signature import Serving, as_graphs
from nezha_tf.serving.text_reader import INPUT_MEANINGS, of_ids, text_of, text_spec
from nezha_tf.serving.windows import in_chunks, windows_on
from nezha_tf.tasks.tagging.data import SPECIAL_TOKENS, units_of
from nezha_tf.tasks.tagging.loss import CrfTaggingLoss, TaggingLoss

MEANINGS = {
    **INPUT_MEANINGS,
    "num_entities": "number of entities in each text; after them, values are empty or -1",
    "label": "the label of each entity",
    "start": "its first character (code point, from 0)",
    "end": "the first character after it",
    "entity": "its characters",
    "probability": "the lowest one of its tokens' tags; `from_ids`: that of each token's tag",
    "tag": "the tag of each token; empty for `[CLS]`, `[SEP]` and padding",
}
OUTPUTS = {"tag_ids": tf.int32, "probabilities": tf.float32}


class TaggingServing(Serving):
    """Finds the entities of texts."""

    meanings = MEANINGS
    example = 'text=tf.constant(["李白在长安。"])'

    def __init__(self, folder, model):
        """Takes the `ModelFolder` of a run, and the model that `folder.make_model` returned."""
        task = folder.task
        super().__init__(model, folder.tokenizer)
        self._objective = CrfTaggingLoss() if task["crf"] else TaggingLoss()
        self._tag_set = TagSet.of_model(task["labels"], folder.path)
        self._size = task["max_seq_length"] - SPECIAL_TOKENS
        self._stride = task["window_stride"]

    @property
    def about(self):
        labels = ", ".join(filter(None, sorted(self._tag_set.labels)))
        return (
            f"Finds entities in texts{labels and ': '}{labels}. Texts of more than {self._size} "
            "tokens are read in overlapping windows."
        )

    def assets(self):
        tags = "".join(f"{tag}\n" for tag in self._tag_set.tags)
        return {**super().assets(), "tags.txt": tags}

    def signatures(self):
        def of_texts(text):
            tokens = self._reader.tokens(text)
            units, is_unit = units_of(tokens)
            tag_ids, probabilities = self._of_units(tokens, units, is_unit)
            return self._entities(tokens, units, tag_ids, probabilities)

        def of_tokens(inputs):
            ids, vocabulary = inputs["input_ids"], self._reader.vocabulary
            is_special = (ids == vocabulary.cls_id) | (ids == vocabulary.sep_id)
            is_text = (inputs["input_mask"] > 0) & ~is_special
            found = self._predict({**inputs, "label_mask": tf.cast(is_text, tf.int32)})
            tags = tf.gather(self._tag_set.tags, found["tag_ids"])
            return {
                "tag": tf.where(is_text, tags, ""),
                "probability": tf.where(is_text, found["probabilities"], 0.0),
            }

        of_texts = (of_texts, [text_spec("text")])
        return as_graphs({"serving_default": of_texts, "from_ids": of_ids(of_tokens)})

    def _predict(self, inputs):
        return self._objective.predictions(self._model(inputs, all_outputs=True))

    def _of_units(self, tokens, units, is_unit):
        """Returns (tag ids int32 [U], probabilities float32 [U]), from each unit's best window."""
        num_tokens = tokens.ids.row_lengths()
        windows = windows_on(num_tokens, self._size, self._stride, is_last_full=True)
        inputs = self._reader.packed(windows.show(tokens.ids))
        shown = windows.show(tokens.ids.with_values(tf.cast(is_unit, tf.int32)))
        shape = tf.shape(inputs["input_ids"]) - [0, 1]  # [CLS] comes first.
        inputs["label_mask"] = tf.pad(shown.to_tensor(shape=shape), [[0, 0], [1, 0]])
        found = in_chunks(self._predict, inputs, OUTPUTS)
        window = windows.best(units.rows, units.places, self._size, self._stride)
        where = tf.stack([window, units.places - tf.gather(windows.starts, window) + 1], axis=1)
        return tuple(tf.gather_nd(found[name], where) for name in OUTPUTS)

    def _entities(self, tokens, units, tag_ids, probabilities):
        """Returns the outputs for the entities that `TagSet.entities_of` returns."""
        prefixes = tf.gather([tag[0] for tag in self._tag_set.read_as], tag_ids)
        labels = tf.gather([tag[2:] for tag in self._tag_set.read_as], tag_ids)
        begins, ends = _edges(prefixes, labels, units.rows)
        first, last = tf.where(begins)[:, 0], tf.where(ends)[:, 0]
        inside = prefixes != OUTSIDE
        number = tf.boolean_mask(tf.cumsum(tf.cast(begins, tf.int32)) - 1, inside)
        least = tf.math.unsorted_segment_min(
            tf.boolean_mask(probabilities, inside), number, tf.size(first)
        )
        if self._tag_set.is_strict:
            begin, _, end, single = SCHEMES[self._tag_set.scheme]
            begin_tags, end_tags = tf.gather(prefixes, first), tf.gather(prefixes, last)
            is_whole = (begin_tags == begin) & (end_tags == end)
            is_well_formed = tf.where(first == last, begin_tags == single, is_whole)
            first, last, least = (tf.boolean_mask(v, is_well_formed) for v in (first, last, least))
        rows, starts = tf.gather(units.rows, first), tf.gather(units.starts, first)
        ends = tf.gather(units.ends, last)
        texts = text_of(tokens.characters, rows, starts, ends)
        by_text = tf.RaggedTensor.from_value_rowids(rows, rows, tokens.ids.nrows())
        return {
            "label": by_text.with_values(tf.gather(labels, first)).to_tensor(""),
            "start": by_text.with_values(starts).to_tensor(-1),
            "end": by_text.with_values(ends).to_tensor(-1),
            "entity": by_text.with_values(texts).to_tensor(""),
            "probability": by_text.with_values(least).to_tensor(0.0),
            "num_entities": tf.cast(by_text.row_lengths(), tf.int32),
        }


def _edges(prefixes, labels, rows):
    """Returns (whether an entity begins at a unit, whether one ends there), bool [U] each.

    The rules are those of `entity_tags.entities_of`; `rows` are the indices of the units' texts.
    """
    before, after = prefixes[:-1], prefixes[1:]
    ends_before = (before == OUTSIDE) | (before == "E") | (before == "S")
    is_start = (after == OUTSIDE) | (after == "B") | (after == "S")
    is_same = (rows[1:] == rows[:-1]) & (labels[1:] == labels[:-1])
    goes_on = is_same & ~ends_before & ~is_start
    inside, edge = prefixes != OUTSIDE, tf.fill([tf.minimum(tf.size(rows), 1)], False)
    begins = inside & ~tf.concat([edge, goes_on], axis=0)
    ends = inside & ~tf.concat([goes_on, edge], axis=0)
    return begins, ends
