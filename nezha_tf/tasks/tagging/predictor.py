"""Finds the entities of one text."""

from nezha_tf.data.entity_files import Sentence
from nezha_tf.data.entity_tags import TagSet
from nezha_tf.serving.predictor import Found, Predictor
from nezha_tf.tasks.tagging.examples import WindowedSentences
from nezha_tf.tasks.tagging.loss import CrfTaggingLoss, TaggingLoss


class EntityFinder(Predictor):
    """Returns the entities of a text in order, a list of `Found`."""

    ability = "tagging"

    def __init__(self, folder, model):
        super().__init__(folder, model)
        task = folder.task
        self._objective = CrfTaggingLoss() if task["crf"] else TaggingLoss()
        self._tag_set = TagSet.of_model(task["labels"], folder.path)
        self._lengths = (task["max_seq_length"], task["window_stride"])

    def __call__(self, text):
        self._ids(text, "the text")
        sentences = WindowedSentences(
            [Sentence(text, None)], self._tokenizer, self._tag_set, *self._lengths
        )
        names = ("input_ids", "segment_ids", "label_mask")
        outputs = {"tag_ids": [], "probabilities": []}
        for ids, segment_ids, label_mask in zip(*map(sentences.arrays.get, names), strict=True):
            model_outputs = self._outputs(ids, segment_ids, label_mask=[label_mask])
            for name, values in self._objective.predictions(model_outputs).items():
                outputs[name].append(values[0].numpy())
        (entities,) = sentences.entities(outputs)
        return [
            Found(start, end, text[start:end], probability, label)
            for start, end, label, probability in entities
        ]
