"""The kinds of models that a checkpoint may hold, told apart by their heads."""

from collections.abc import Callable
from typing import NamedTuple

from nezha_tf.modeling.encoder import NezhaEncoder
from nezha_tf.modeling.finetuning import (
    NezhaForCrfTagging,
    NezhaForQuestionAnswering,
    NezhaForSequenceClassification,
    NezhaForTokenClassification,
)
from nezha_tf.modeling.pretraining import NezhaForMaskedLM, NezhaForPreTraining

POOLER = "bert/pooler/"
LABELLED = ("output_weights", "output_bias")


class Kind(NamedTuple):
    """A kind of model.

    Attributes:
      make: our Keras model of a configuration and, where `has_labels`, a number of labels.
      heads: prefixes of the TF1 names of its heads.
      architecture: what its class is called in transformers, behind the name of the model.
      has_labels: whether its head is of any number of labels.
      heads_on_pooler: those of the heads that read the pooler's output.
    """

    make: Callable
    heads: tuple[str, ...]
    architecture: str | None
    has_labels: bool = False
    heads_on_pooler: tuple[str, ...] = ()

    def model(self, config, num_labels):
        """Returns our model, with random weights."""
        return self.make(config, num_labels) if self.has_labels else self.make(config)


# Those with more heads before those with some of them.
KINDS = {
    "pretraining": Kind(
        NezhaForPreTraining,
        ("cls/predictions/", "cls/seq_relationship/"),
        "ForPreTraining",
        heads_on_pooler=("cls/seq_relationship/",),
    ),
    "masked_lm": Kind(NezhaForMaskedLM, ("cls/predictions/",), "ForMaskedLM"),
    "crf_tagging": Kind(NezhaForCrfTagging, (*LABELLED, "crf/"), None, has_labels=True),
    "tagging": Kind(
        NezhaForTokenClassification, LABELLED, "ForTokenClassification", has_labels=True
    ),
    "classification": Kind(
        NezhaForSequenceClassification,
        LABELLED,
        "ForSequenceClassification",
        has_labels=True,
        heads_on_pooler=LABELLED,
    ),
    "reading_comprehension": Kind(
        NezhaForQuestionAnswering, ("cls/squad/",), "ForQuestionAnswering"
    ),
    "encoder": Kind(NezhaEncoder, (), "Model"),
}


def kind_of(names, said=None):
    """Returns the kind of a checkpoint, a key of `KINDS`.

    Args:
      names: the TF1 names of its weights.
      said: the kind that a file beside it says, or None. It is what tells taggers from
        classifiers, whose heads have one name; without it, those with a pooler classify.
    """

    def has(prefix):
        return any(name.startswith(prefix) for name in names)

    if has("crf/"):
        return "crf_tagging"
    if has(LABELLED):
        is_tagger = said in ("tagging", "crf_tagging") if said else not has(POOLER)
        return "tagging" if is_tagger else "classification"
    if has("cls/squad/"):
        return "reading_comprehension"
    if has("cls/seq_relationship/"):
        return "pretraining"
    return "masked_lm" if has("cls/predictions/") else "encoder"
