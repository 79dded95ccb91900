"""Configuration files of other programs: which of their keys count, and whose a file is."""

import difflib
import json
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from nezha_tf.util.errors import UserError

# Keys of Hugging Face that may vary there but have one fixed value in every model here.
_FIXED = {
    "position_embedding_type": "absolute",
    "tie_word_embeddings": True,
    "is_decoder": False,
}
# The keys that every one of Hugging Face's classes reads. What else a file of theirs has is left
# over, as the keys that a class wrote back which took them from another one's defaults.
_OF_EVERY_CLASS = (
    "vocab_size",
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "intermediate_size",
    "hidden_act",
    "hidden_dropout_prob",
    "attention_probs_dropout_prob",
    "max_position_embeddings",
    "type_vocab_size",
    "initializer_range",
    "layer_norm_eps",
    *_FIXED,
)
# Keys of UER-py, whose files have these instead of those of BERT.
_OF_UER = ("heads_num", "layers_num", "emb_size", "feedforward_size")


class HuggingFaceModel(NamedTuple):
    """A kind of model of transformers."""

    name: str  # the prefix of its class names; in lower case it is the `model_type`
    has_pooler: bool = True  # and heads that read the pooler's output
    has_embedding_size: bool = False  # whether embeddings may have another width than layers
    defaults: Mapping = MappingProxyType({})  # of its `config.json`, where they are not BERT's
    outputs: Mapping = MappingProxyType({})  # BERT's names of outputs -> its own, if they differ
    # The ends of its class names by ours (`Kind.architecture`), if they differ; None: no class.
    classes: Mapping = MappingProxyType({})
    pooler_act: str = "tanh"  # the activation of the first layer of its heads for texts
    reads: tuple = ()  # keys of its `config.json`, but `embedding_size`, that no other class reads

    @property
    def model_type(self):
        """The value of `model_type` in its `config.json`."""
        return self.name.lower()

    @property
    def has_groups(self):
        """Whether its layers share the weights of groups."""
        return "num_hidden_groups" in self.defaults

    def class_name(self, architecture):
        """Returns the name of its class for a `Kind.architecture`, or None."""
        own = self.classes.get(architecture, architecture)
        return None if own is None else self.name + own

    def architecture(self, class_name):
        """Returns the `Kind.architecture` of one of its classes by name."""
        end = class_name.removeprefix(self.name)
        return next((ours for ours, theirs in self.classes.items() if theirs == end), end)


# ALBERT's defaults in transformers are those of its largest model.
ALBERT = HuggingFaceModel(
    "Albert",
    has_embedding_size=True,
    defaults=MappingProxyType(
        {
            "embedding_size": 128,
            "hidden_size": 4096,
            "num_hidden_groups": 1,
            "num_attention_heads": 64,
            "intermediate_size": 16384,
            "hidden_act": "gelu_new",
            "hidden_dropout_prob": 0,
            "attention_probs_dropout_prob": 0,
        }
    ),
    outputs=MappingProxyType({"seq_relationship_logits": "sop_logits"}),
    reads=("num_hidden_groups", "inner_group_num"),
)
# ELECTRA's defaults are those of its small model. Its encoder has no pooler, but the heads for
# texts begin with such a layer, whose activation is the exact gelu.
ELECTRA = HuggingFaceModel(
    "Electra",
    has_pooler=False,
    has_embedding_size=True,
    defaults=MappingProxyType(
        {
            "embedding_size": 128,
            "hidden_size": 256,
            "num_attention_heads": 4,
            "intermediate_size": 1024,
        }
    ),
    classes=MappingProxyType({"ForPreTraining": None, "ForReplacedTokens": "ForPreTraining"}),
    pooler_act="gelu_erf",
)


def without_left_overs(values, model):
    """Returns the keys that a `HuggingFaceModel` reads (transformers 4.40.2), and our own.

    A key that looks like one that the file lacks, or asks for what no model here has, is a
    `UserError`.
    """
    own = ("embedding_size",) if model.has_embedding_size else ()
    read = (*_OF_EVERY_CLASS, *own, *model.reads, "position_encoding")
    check_spelling(values, (*read, "use_relative_position"))
    for key, needed in _FIXED.items():
        if values.get(key, needed) != needed:
            raise UserError(f"{key} other than {json.dumps(needed)} is not supported")
    return {key: value for key, value in values.items() if key in read and key not in _FIXED}


def check_fixed(values):
    """Raises a `UserError` if keys of RoFormer's or ALBERT's files ask for what no model has."""
    if values.get("rotary_value"):
        raise UserError("rotary_value true is not supported: only queries and keys are rotated")
    inner = values.get("inner_group_num")
    if inner not in (None, 1):
        raise UserError(
            f"inner_group_num {inner!r} is not supported, only 1: a group has one layer's weights"
        )


def check_spelling(values, names):
    """Raises a `UserError` if an unknown key looks like one of the `names` that a file lacks."""
    for key in sorted(set(values) - set(names)):
        similar = _similar(key, sorted(set(names) - set(values)))
        if similar:
            raise UserError(f"unknown key {key!r}; is {similar!r} meant?")


def _similar(key, names):
    """Returns the name that is spelt almost alike or has more words ("num_heads"), or None."""
    # hiddenSize and hidden-size become hidden_size, the spelling of the originals.
    words = re.split("[^a-z0-9]+", re.sub("(?<=[a-z])(?=[A-Z])", "_", key).lower())
    similar = difflib.get_close_matches("_".join(words), names, n=1, cutoff=0.85)
    common = [name for name in names if name in _OF_EVERY_CLASS]
    shorter = [name for name in common if len(words) > 1 and set(words) < set(name.split("_"))]
    return next(iter([*similar, *shorter]), None)


def check_origin(values):
    """Raises a `UserError` if a file has the form of a program whose models are not read here."""
    uers = [key for key in _OF_UER if key in values]
    streams = [v for v in values.values() if isinstance(v, dict) and set(_OF_UER) & set(v)]
    if "num_attention_heads" not in values and (len(uers) > 1 or streams):
        keys = ", ".join(uers) or "stream_0"
        raise UserError(
            f"{keys}: this is the form of UER-py, whose weights have other names, too; take "
            "the model in Hugging Face's form (https://huggingface.co/uer has the published ones), "
            "or convert a BERT with UER-py's scripts/convert_bert_from_uer_to_huggingface.py and "
            "write its config.json"
        )
    if "init_args" in values and "init_class" in values:
        raise UserError(
            f"init_class {values['init_class']!r}: this is PaddleNLP's form, whose weights "
            "(model_state.pdparams) are not read here; take the model in the form of PyTorch "
            "(config.json and model.safetensors or pytorch_model.bin)"
        )


def from_albert_zh(values):
    """Returns the keys of a file of brightmart/albert_zh as those of a model here; others as given.

    Its own program (modeling.py, not modeling_google.py) multiplies the tokens' table by a second
    one before anything is added, so that all embeddings have the width of the layers (see
    `checkpoints.views`), and all layers share their weights.
    """
    if "ln_type" not in values:
        return values
    if values["ln_type"] != "postln":
        raise UserError(
            f"ln_type {values['ln_type']!r}: in this model of albert_zh each layer normalizes "
            "before its parts, which no model here does; take Google's of that size "
            "(albert_xlarge_zh, albert_xxlarge_zh)"
        )
    kept = {key: value for key, value in values.items() if key not in ("ln_type", "embedding_size")}
    return {**kept, "num_hidden_groups": 1}
