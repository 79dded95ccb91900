"""The configuration of a model: reads and writes the originals' `bert_config.json`."""

import dataclasses
import errno
import json
import math
import os
import typing
from collections.abc import Mapping

from nezha_tf import config_forms
from nezha_tf.config_forms import ALBERT, ELECTRA, HuggingFaceModel
from nezha_tf.util import package_data
from nezha_tf.util.errors import UserError
from nezha_tf.util.files import read_object, write_text

# Keys that only training reads; they may be others than those a model was trained with.
OF_TRAINING = {"hidden_dropout_prob", "attention_probs_dropout_prob", "initializer_range"}
ACTIVATIONS = ("gelu", "gelu_erf", "relu", "tanh", "linear")


class PositionEncoding(typing.NamedTuple):
    """What configuration files say about a position encoding."""

    # "module:Class", a subclass of `modeling.positions.base.Positions`. It is imported only when a
    # model is made, so that reading a configuration needs no Keras.
    implementation: str
    # The value of TF1's key of this name; None: TF1 has no such model.
    use_relative_position: bool | None = None
    # transformers' models; of two of the same structure, a model is written as the first.
    hugging_face: tuple[HuggingFaceModel, ...] = ()


# All position encodings by name. One assignment adds another; its class may be in any module.
_POSITIONS = "nezha_tf.modeling.positions"
POSITION_ENCODINGS = {
    "functional_relative": PositionEncoding(
        f"{_POSITIONS}.relative:FunctionalRelativePositions",
        use_relative_position=True,
        hugging_face=(HuggingFaceModel("Nezha", reads=("max_relative_position",)),),
    ),
    "learned_relative": PositionEncoding(f"{_POSITIONS}.relative:LearnedRelativePositions"),
    "absolute": PositionEncoding(
        f"{_POSITIONS}.absolute:AbsolutePositions",
        use_relative_position=False,
        # ERNIE is a BERT with a table of kinds of tasks, which `checkpoints.hugging_face` adds up.
        hugging_face=(HuggingFaceModel("Bert"), ALBERT, ELECTRA, HuggingFaceModel("Ernie")),
    ),
    "rotary": PositionEncoding(
        f"{_POSITIONS}.rotary:RotaryPositions",
        hugging_face=(
            HuggingFaceModel(
                "RoFormer", has_pooler=False, has_embedding_size=True, reads=("rotary_value",)
            ),
        ),
    ),
}
# Where the norm of a sublayer stands, which norm it is, and which feed-forward layer follows
# attention: the classes by name. One assignment adds another; its class may be in any module.
NORM_POSITIONS = {
    "post": "nezha_tf.modeling.residual:PostNorm",
    "pre": "nezha_tf.modeling.residual:PreNorm",
}
NORMS = {
    "layer_norm": "nezha_tf.modeling.layers:LayerNorm",
    "rms_norm": "nezha_tf.modeling.layers:RMSNorm",
}
FEED_FORWARDS = {
    "dense": "nezha_tf.modeling.feed_forward:FeedForward",
    "geglu": "nezha_tf.modeling.feed_forward:GeGLU",
    "swiglu": "nezha_tf.modeling.feed_forward:SwiGLU",
}
# What the layers of all originals are; their files have no such keys.
_OF_THE_ORIGINALS = {
    "norm_position": "post",
    "norm": "layer_norm",
    "feed_forward": "dense",
    "use_bias": True,
}
# The segment ids of the first and the second segment tell the model which objective an example
# is for (UniLM, arXiv 1905.03197 §2.1; the numbers come from its code).
SEGMENT_IDS = {
    "bidirectional": (0, 1),
    "left_to_right": (2, 2),
    "right_to_left": (3, 3),
    "seq2seq": (4, 5),
}
UNILM_SEGMENTS = 6
# Hugging Face's names of activations, and ours. Where two of theirs mean one of ours, the first
# is written.
_HUGGING_FACE_ACTIVATIONS = {
    "gelu": "gelu_erf",
    "gelu_python": "gelu_erf",
    "gelu_new": "gelu",
    "gelu_fast": "gelu",
    "gelu_pytorch_tanh": "gelu",
    "gelu_accurate": "gelu",
}
# What files without the key `pooler_act` mean: that of BERT.
_POOLER_ACT = "tanh"
# Keys of ALBERT's files, which those of BERT and NEZHA lack.
_OF_ALBERT = ("embedding_size", "num_hidden_groups")
# Of the deepest published Transformer: 1,000 layers of two parts each (DeepNet, arXiv 2203.00555).
_MOST_LAYERS = 10_000
# 400 GB in float32; the largest published encoders have a tenth of them.
_MOST_WEIGHTS = 10**11
# How a target is predicted: at [MASK]s in it, or from the tokens before (see `TargetFormat`).
TARGET_PREDICTIONS = ("masked", "shift")
# How targets are searched (see `GenerationOptions`).
SEARCH_METHODS = ("beam", "greedy", "sample")


@dataclasses.dataclass(frozen=True, kw_only=True)
class NezhaConfig:
    """Sizes and rates of a model, with the key names of the TF1 originals.

    The models are NEZHA, BERT, RoFormer, ALBERT and ELECTRA. ALBERT (arXiv 1909.11942) is a BERT
    with `embedding_size` and `num_hidden_groups`; both keys work with any position encoding.
    ELECTRA (arXiv 2003.10555) is a BERT that may have `embedding_size`, with its own `pooler_act`.

    Attributes:
      vocab_size: number of tokens, V.
      hidden_size: width of the encoder: N heads times the head size H.
      num_hidden_layers: number of Transformer layers.
      num_attention_heads: number of heads, N; divides `hidden_size`.
      intermediate_size: width of the feed-forward layer.
      hidden_act: "gelu" (the tanh form, as in both originals), "gelu_erf" (the exact form),
        "relu", "tanh" or "linear".
      hidden_dropout_prob: dropout of embeddings and layer outputs, in [0, 1).
      attention_probs_dropout_prob: dropout of the attention probabilities, in [0, 1).
      max_position_embeddings: rows of the absolute position table. The other encodings have no
        such table, and this number does not limit their length.
      type_vocab_size: rows of the segment table. The default of 16 is that of the originals;
        published files say 2.
      initializer_range: standard deviation of the truncated normal initializer.
      position_encoding: a key of `POSITION_ENCODINGS`: "functional_relative" (NEZHA),
        "learned_relative" (Shaw et al. 2018), "absolute" (BERT) or "rotary" (RoFormer).
      max_relative_position: larger distances are clipped to this one (64 in NEZHA's source).
      layer_norm_eps: added to the variance in each LayerNorm: 1e-12 in the TF1 originals, which
        have no such key, and 1e-5 in UniLM's code.
      embedding_size: width of the embeddings, E, which a dense layer maps to `hidden_size` (ALBERT
        §3.1, factorized embeddings); None: `hidden_size`, without such a layer. Without
        `num_hidden_groups`, the value of `hidden_size` becomes None.
      num_hidden_groups: number of groups of layers, G; the layers of a group share their weights
        (ALBERT §3.1, cross-layer parameter sharing). Layer i is of group i * G // layers; of more
        groups than layers, some are not used. None: each layer has its own weights.
      pooler_act: the activation of the pooler, named as `hidden_act`: "tanh" in BERT, "gelu_erf"
        in the heads that transformers' ELECTRA has for texts.
      norm_position: "post" (the norm follows the residual sum, as in all originals) or "pre" (it
        stands before attention and feed-forward, and once more after the last layer).
      norm: "layer_norm" or "rms_norm", the norm of layers, embeddings and the head of masked LM.
      feed_forward: "dense", or gated: "geglu" or "swiglu".
      use_bias: whether the dense layers of the Transformer layers have biases.

    Raises:
      UserError: no model can have one of the values; the message names the key.
    """

    vocab_size: int
    hidden_size: int = 768
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    intermediate_size: int = 3072
    hidden_act: str = "gelu"
    hidden_dropout_prob: float = 0.1
    attention_probs_dropout_prob: float = 0.1
    max_position_embeddings: int = 512
    type_vocab_size: int = 16
    initializer_range: float = 0.02
    position_encoding: str = "functional_relative"
    max_relative_position: int = 64
    layer_norm_eps: float = 1e-12
    embedding_size: int | None = None
    num_hidden_groups: int | None = None
    pooler_act: str = _POOLER_ACT
    norm_position: str = "post"
    norm: str = "layer_norm"
    feed_forward: str = "dense"
    use_bias: bool = True

    def __post_init__(self):
        for field in dataclasses.fields(self):
            _check_value(field, getattr(self, field.name))
        if self.hidden_size % self.num_attention_heads:
            raise UserError(
                f"hidden_size {self.hidden_size} is not a multiple of num_attention_heads "
                f"{self.num_attention_heads}"
            )
        # RoFormer's files have the key though it says nothing new there.
        if self.num_hidden_groups is None and self.embedding_size == self.hidden_size:
            object.__setattr__(self, "embedding_size", None)
        if self.num_hidden_layers > _MOST_LAYERS:
            raise UserError(
                f"num_hidden_layers {self.num_hidden_layers} is more than {_MOST_LAYERS:,}"
            )
        if self._num_weights() > _MOST_WEIGHTS:
            sizes = {n: v for n, v in dataclasses.asdict(self).items() if type(v) is int}
            largest = max(sizes, key=sizes.get)
            raise UserError(
                f"a model of these sizes has more than {_MOST_WEIGHTS:,} weights; the largest size "
                f"is {largest} {sizes[largest]}"
            )

    def _num_weights(self):
        """Returns about the number of weights, and of numbers in tables of positions."""
        tables = (
            self.vocab_size,
            self.max_position_embeddings,
            self.type_vocab_size,
            self.max_relative_position,
        )
        layer = 4 * self.hidden_size + 3 * self.intermediate_size + self.embedding_width
        layers = self.num_hidden_groups or self.num_hidden_layers
        return sum(tables) * self.embedding_width + layers * layer * self.hidden_size

    @property
    def head_size(self) -> int:
        """Size of one attention head, H."""
        return self.hidden_size // self.num_attention_heads

    @property
    def embedding_width(self) -> int:
        """Width of the embeddings, E: `embedding_size`, or `hidden_size` without this key."""
        return self.hidden_size if self.embedding_size is None else self.embedding_size

    @property
    def maps_embeddings(self) -> bool:
        """Whether a dense layer maps the embeddings to `hidden_size`, as in any ALBERT."""
        return self.embedding_size is not None

    @property
    def masked_lm_act(self) -> str:
        """The activation of the head of masked LM, named as `hidden_act`."""
        # All heads of ELECTRA in transformers have the exact gelu, whatever `hidden_act` says.
        return self.hidden_act if self.pooler_act == _POOLER_ACT else self.pooler_act

    @property
    def layer_names(self) -> list[str]:
        """The names of the layers from the first to the last; layers of one name share weights."""
        layers, groups = self.num_hidden_layers, self.num_hidden_groups
        if groups is None:
            return [f"layer_{index}" for index in range(layers)]
        return [f"group_{index * groups // layers}" for index in range(layers)]

    @property
    def hugging_face_model(self) -> HuggingFaceModel | None:
        """The `HuggingFaceModel` of the same structure, or None."""
        model = hugging_face_model(self.position_encoding, self.num_hidden_groups, self.pooler_act)
        if model is None or self._own_structure():
            return None
        # ALBERT's code always has the key, BERT's and NEZHA's never.
        has_size = self.embedding_size is not None
        fits = model.has_embedding_size if has_size else not model.has_groups
        return model if fits else None

    @classmethod
    def from_dict(cls, values: Mapping[str, typing.Any]) -> typing.Self:
        """Builds a configuration from the keys of a `bert_config.json`.

        The original's `use_relative_position` means functional relative positions; false or absent
        means absolute ones, as in Google's BERT. `position_encoding` is optional, and must not
        contradict it. Unknown keys are ignored, because published files have several, unless one
        looks like a key that the file lacks.

        The key `model_type` marks a `config.json` of Hugging Face, where "gelu" means "gelu_erf".

        Raises:
          UserError: a key is missing, misspelt, contradictory or has an impossible value.
        """
        values = _in_our_form(values)
        config_forms.check_fixed(values)
        use_relative = values.pop("use_relative_position", None)
        if use_relative not in (None, True, False):
            raise UserError(f"use_relative_position must be true or false, not {use_relative!r}")
        names = [field.name for field in dataclasses.fields(cls)]
        config_forms.check_spelling(values, [*names, "use_relative_position"])
        values = {key: value for key, value in values.items() if key in names}
        if "vocab_size" not in values:
            raise UserError("the key 'vocab_size' is missing")
        values.setdefault("position_encoding", encoding_of_tf1(use_relative))
        config = cls(**values)
        row = POSITION_ENCODINGS[config.position_encoding]
        # Our older files say true for every encoding except BERT's.
        if use_relative is not None and use_relative != (row.use_relative_position is not False):
            raise UserError(
                f"use_relative_position {json.dumps(use_relative)} contradicts "
                f"position_encoding {config.position_encoding!r}; remove one of the two keys"
            )
        return config

    @classmethod
    def from_json_file(cls, path: str | os.PathLike[str]) -> typing.Self:
        """Reads a `bert_config.json`, or a `config.json` of Hugging Face; see `from_dict`.

        The path may be the name of a configuration of the package, as `nezha_base`.
        """
        values = read_values(path)
        try:
            return cls.from_dict(values)
        except UserError as error:
            raise UserError(f"config {path}: {error}") from error

    def to_dict(self) -> dict[str, typing.Any]:
        """Returns the keys that `from_dict` reads, those of TF1 among them."""
        values = self._given()
        row = POSITION_ENCODINGS[self.position_encoding]
        if row.use_relative_position is not None:
            values["use_relative_position"] = row.use_relative_position
        return values

    def to_hugging_face(self) -> dict[str, typing.Any]:
        """Returns the keys of a `config.json`; `UserError`: transformers has no such model."""
        values = self._given()
        encoding = values.pop("position_encoding")
        if self.hugging_face_model is None:
            raise UserError(
                f"position_encoding {encoding!r}{self._structure()} has no counterpart in "
                "Hugging Face's models"
            )
        values.pop("pooler_act", None)  # The kind of model says it.
        if "embedding_size" in self.hugging_face_model.defaults:
            values["embedding_size"] = self.embedding_width
        # Of these models only Nezha clips distances.
        if not POSITION_ENCODINGS[encoding].use_relative_position:
            del values["max_relative_position"]
        if self.num_hidden_groups is not None:  # transformers has no unused ones
            values["num_hidden_groups"] = len(set(self.layer_names))
        for theirs, ours in _HUGGING_FACE_ACTIVATIONS.items():
            if ours == self.hidden_act:
                values["hidden_act"] = theirs
                break
        return {"model_type": self.hugging_face_model.model_type, **values}

    def _given(self):
        """Returns the dict of all keys but those that only some models have, and not this one."""
        values = dataclasses.asdict(self)
        if self.pooler_act == _POOLER_ACT:
            del values["pooler_act"]
        for name in _OF_THE_ORIGINALS.keys() - self._own_structure().keys():
            del values[name]
        return {name: value for name, value in values.items() if value is not None}

    def _own_structure(self):
        """Returns a dict of the keys whose values no original has."""
        own = {name: getattr(self, name) for name in _OF_THE_ORIGINALS}
        return {name: value for name, value in own.items() if value != _OF_THE_ORIGINALS[name]}

    def _structure(self):
        """Returns a clause on the keys that BERT and NEZHA do not have, or ""."""
        values = {name: getattr(self, name) for name in _OF_ALBERT}
        parts = [f"no {k}" if value is None else f"{k} {value}" for k, value in values.items()]
        parts = [] if set(values.values()) == {None} else parts
        if self.pooler_act != _POOLER_ACT:
            parts.append(f"pooler_act {self.pooler_act!r}")
        parts += [f"{name} {value!r}" for name, value in self._own_structure().items()]
        return f" with {' and '.join(parts)}" if parts else ""

    def to_json_file(self, path: str | os.PathLike[str]) -> None:
        """Writes a complete `bert_config.json`, or no file after an error."""
        write_text(path, json.dumps(self.to_dict(), indent=2, sort_keys=True) + "\n")


def encoding_of_tf1(use_relative_position):
    """Returns the name of the position encoding that TF1's key means; None means false."""
    value = bool(use_relative_position)
    return next(n for n, row in POSITION_ENCODINGS.items() if row.use_relative_position is value)


def hugging_face_model(position_encoding, num_hidden_groups=None, pooler_act=_POOLER_ACT):
    """Returns the `HuggingFaceModel` of a position encoding, groups and pooler; or None."""
    for model in POSITION_ENCODINGS[position_encoding].hugging_face:
        if model.has_groups == (num_hidden_groups is not None) and model.pooler_act == pooler_act:
            return model
    return None


def model_types():
    """Returns {`model_type` of Hugging Face: (position encoding, `HuggingFaceModel`)}."""
    rows = POSITION_ENCODINGS.items()
    return {model.model_type: (name, model) for name, row in rows for model in row.hugging_face}


def note_on_defaults(path, config, is_trained=True):
    """Returns a line on the keys that the file of a `NezhaConfig` lacks, or "".

    Keys that TF1's files never have may be missing, and `OF_TRAINING` if it will not be trained.
    """
    optional = {"position_encoding", "max_relative_position", "layer_norm_eps", "pooler_act"}
    optional |= {*_OF_ALBERT, *_OF_THE_ORIGINALS, *(() if is_trained else OF_TRAINING)}
    optional |= read_values(path).keys()
    names = [field.name for field in dataclasses.fields(NezhaConfig)]
    taken = ", ".join(f"{name} {getattr(config, name)}" for name in names if name not in optional)
    return f"{path} lacks keys; their defaults are used: {taken}" if taken else ""


def read_values(path):
    """Returns the dict in a JSON file, or in a configuration of the package by its name.

    Raises:
      UserError: the file is missing or holds something else.
    """
    values = read_object(package_data.named(path, ".json"))
    if values is None:
        raise UserError(f"cannot read config {path}: {os.strerror(errno.ENOENT)}")
    return values


def _in_our_form(values):
    config_forms.check_origin(values)
    if "model_type" in values:
        return _from_hugging_face(values)
    return config_forms.from_albert_zh(dict(values))


def _from_hugging_face(values):
    known = model_types()
    model_type = model_type_of(values)
    encoding, model = known[model_type]
    values = {"type_vocab_size": 2, "hidden_act": "gelu", **model.defaults, **values}
    values = config_forms.without_left_overs(values, model)
    values.setdefault("position_encoding", encoding)
    values.setdefault("pooler_act", model.pooler_act)
    name = values["hidden_act"]
    if isinstance(name, str):
        values["hidden_act"] = _HUGGING_FACE_ACTIVATIONS.get(name, name)
    return values


def model_type_of(values):
    """Returns the `model_type` of the class that computes what a `config.json` describes.

    NEZHA's programs for PyTorch are made of transformers' BERT, and some of their files say so:
    only `use_relative_position` tells that the model is a NEZHA. That there is no such class here,
    or that two keys contradict each other, is a `UserError`.
    """
    known = model_types()
    model_type, is_relative = values["model_type"], values.get("use_relative_position")
    if model_type not in tuple(known):
        raise UserError(f"model_type {model_type!r} is not one of {', '.join(known)}")
    if is_relative not in (None, True, False):
        raise UserError(f"use_relative_position must be true or false, not {is_relative!r}")
    absolute, relative = (hugging_face_model(encoding_of_tf1(value)) for value in (False, True))
    if is_relative and model_type == absolute.model_type:
        return relative.model_type
    expected = bool(POSITION_ENCODINGS[known[model_type][0]].use_relative_position)
    if is_relative not in (None, expected):
        raise UserError(
            f"use_relative_position {json.dumps(is_relative)} contradicts model_type "
            f"{model_type!r}; remove one of the two keys"
        )
    return model_type


def _check_value(field, value):
    choices = {
        "hidden_act": ACTIVATIONS,
        "pooler_act": ACTIVATIONS,
        "position_encoding": tuple(POSITION_ENCODINGS),
        "norm_position": tuple(NORM_POSITIONS),
        "norm": tuple(NORMS),
        "feed_forward": tuple(FEED_FORWARDS),
    }
    choices = choices.get(field.name)
    types = typing.get_args(field.type) or (field.type,)  # (int, NoneType) of `int | None`
    if value is None and type(None) in types:
        return
    if choices:
        if value not in choices:
            raise UserError(f"{field.name} must be one of {', '.join(choices)}, not {value!r}")
    elif bool in types:
        if type(value) is not bool:
            raise UserError(f"{field.name} must be true or false, not {value!r}")
    elif int in types:
        if type(value) is not int or value < 1:
            raise UserError(f"{field.name} must be a whole number of at least 1, not {value!r}")
    elif type(value) not in (int, float) or not math.isfinite(value):
        raise UserError(f"{field.name} must be a finite number, not {value!r}")
    elif field.name.endswith("_prob") and not 0 <= value < 1:
        raise UserError(f"{field.name} must be in [0, 1), not {value!r}")
    elif field.name in ("initializer_range", "layer_norm_eps") and not 0 < value <= 1:
        raise UserError(f"{field.name} must be above 0 and at most 1, not {value!r}")
