"""The configuration of a model: reads and writes the originals' `bert_config.json`."""

import dataclasses
import difflib
import errno
import json
import math
import os
import re
from typing import NamedTuple

from nezha_tf.errors import UserError
from nezha_tf.files import read_object, write_text

ACTIVATIONS = ("gelu", "gelu_erf", "relu", "tanh", "linear")


class HuggingFaceModel(NamedTuple):
    """A kind of model of transformers.

    Attributes:
      name: how the names of its classes begin; its `model_type` is the same in small letters.
      has_pooler: whether it has a pooler and the heads that read it.
    """

    name: str
    has_pooler: bool = True

    @property
    def model_type(self):
        """What its `config.json` calls it."""
        return self.name.lower()


class PositionEncoding(NamedTuple):
    """A position encoding as files of a configuration have it.

    Attributes:
      implementation: "module:Class", a subclass of `modeling.positions.base.Positions`. It is
        imported when a model is made: reading a configuration needs no Keras.
      use_relative_position: what TF1's key of this name says of it; None: TF1 has no such model.
      hugging_face: `HuggingFaceModel`, or None where transformers has no such model.
    """

    implementation: str
    use_relative_position: bool | None = None
    hugging_face: HuggingFaceModel | None = None


# THE table of position encodings. A row more is one assignment, of a class in any module.
_POSITIONS = "nezha_tf.modeling.positions"
POSITION_ENCODINGS = {
    "functional_relative": PositionEncoding(
        f"{_POSITIONS}.functional_relative:FunctionalRelativePositions",
        use_relative_position=True,
        hugging_face=HuggingFaceModel("Nezha"),
    ),
    "learned_relative": PositionEncoding(f"{_POSITIONS}.learned_relative:LearnedRelativePositions"),
    "absolute": PositionEncoding(
        f"{_POSITIONS}.absolute:AbsolutePositions",
        use_relative_position=False,
        hugging_face=HuggingFaceModel("Bert"),
    ),
    "rotary": PositionEncoding(
        f"{_POSITIONS}.rotary:RotaryPositions",
        hugging_face=HuggingFaceModel("RoFormer", has_pooler=False),
    ),
}
# The ids of the first and the second segment name the objective (UniLM arXiv 1905.03197 §2.1; the
# numbers are those of its code).
SEGMENT_IDS = {
    "bidirectional": (0, 1),
    "left_to_right": (2, 2),
    "right_to_left": (3, 3),
    "seq2seq": (4, 5),
}
UNILM_SEGMENTS = 6
# What the activations of a config.json of Hugging Face are here. Of two names for one, the first
# is written.
_HUGGING_FACE_ACTIVATIONS = {
    "gelu": "gelu_erf",
    "gelu_python": "gelu_erf",
    "gelu_new": "gelu",
    "gelu_fast": "gelu",
    "gelu_pytorch_tanh": "gelu",
}
# What there may differ, and is the same in every model here.
_HUGGING_FACE_FIXED = {
    "position_embedding_type": "absolute",
    "tie_word_embeddings": True,
    "is_decoder": False,
}
# How a target is predicted: by [MASK]s in it, or by the pieces before (see `TargetFormat`).
TARGET_PREDICTIONS = ("masked", "shift")


@dataclasses.dataclass(frozen=True, kw_only=True)
class NezhaConfig:
    """Sizes and rates of a NEZHA, BERT or RoFormer model, under the key names of the TF1 originals.

    Attributes:
      vocab_size: number of pieces, V.
      hidden_size: width of the encoder, N heads times the head size H.
      num_hidden_layers: number of Transformer layers.
      num_attention_heads: number of heads, N; divides `hidden_size`.
      intermediate_size: width of the feed-forward layer.
      hidden_act: "gelu" (the tanh form, as in both originals), "gelu_erf" (the exact one),
        "relu", "tanh" or "linear".
      hidden_dropout_prob: dropout of embeddings and layer outputs, in [0, 1).
      attention_probs_dropout_prob: dropout of the attention probabilities, in [0, 1).
      max_position_embeddings: rows of the absolute position table; no bound on the length
        in the other encodings.
      type_vocab_size: rows of the segment table (16 where a file is silent, as in the originals;
        published files say 2).
      initializer_range: standard deviation of the truncated normal initializer.
      position_encoding: a key of `POSITION_ENCODINGS`: "functional_relative" (NEZHA),
        "learned_relative" (Shaw et al. 2018), "absolute" (BERT) or "rotary" (RoFormer).
      max_relative_position: distances beyond it are clipped to it (64 in NEZHA's source).
      layer_norm_eps: added to the variance in each LayerNorm (1e-12 in the TF1 originals, which
        have no such key; 1e-5 in UniLM's).

    Raises:
      UserError: a value that no model can have; the message names the key.
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

    def __post_init__(self):
        for field in dataclasses.fields(self):
            _check_value(field, getattr(self, field.name))
        if self.hidden_size % self.num_attention_heads:
            raise UserError(
                f"hidden_size {self.hidden_size} is not a multiple of num_attention_heads "
                f"{self.num_attention_heads}"
            )

    @property
    def head_size(self):
        """Size of one attention head, H."""
        return self.hidden_size // self.num_attention_heads

    @property
    def hugging_face_model(self):
        """The `HuggingFaceModel` that has these positions, or None."""
        return POSITION_ENCODINGS[self.position_encoding].hugging_face

    @classmethod
    def from_dict(cls, values):
        """Builds a configuration from the keys of a `bert_config.json`.

        `use_relative_position` is the original's boolean: true means functional relative
        positions; false or absent means absolute ones, as for Google's BERT. The key
        `position_encoding`, where given, says which, and must not contradict it. Keys that no
        NezhaConfig has are passed over (published files carry several), unless one looks like
        a key that the file lacks. `missing_keys` tells of which keys the default is taken.

        A `model_type` marks a `config.json` of Hugging Face: "nezha" has functional relative
        positions, "bert" absolute and "roformer" rotary ones, and what is called "gelu" there is
        "gelu_erf".

        Raises:
          UserError: a missing, misspelt, contradictory or impossible key.
        """
        values = _from_hugging_face(values) if "model_type" in values else dict(values)
        _check_roformer({"hidden_size": cls.hidden_size, **values})
        use_relative = values.pop("use_relative_position", None)
        if use_relative not in (None, True, False):
            raise UserError(f"use_relative_position must be true or false, not {use_relative!r}")
        names = [field.name for field in dataclasses.fields(cls)]
        unknown = sorted(set(values) - set(names))
        for key in unknown:
            meant = _meant(key, [*sorted(set(names) - set(values)), "use_relative_position"])
            if meant:
                raise UserError(f"unknown key {key!r}; is {meant!r} meant?")
            del values[key]
        if "vocab_size" not in values:
            raise UserError("the key 'vocab_size' is missing")
        values.setdefault("position_encoding", encoding_of_tf1(use_relative))
        config = cls(**values)
        row = POSITION_ENCODINGS[config.position_encoding]
        # True is said of all encodings but BERT's, in files of ours that are older than the rest.
        if use_relative is not None and use_relative != (row.use_relative_position is not False):
            raise UserError(
                f"use_relative_position {json.dumps(use_relative)} contradicts "
                f"position_encoding {config.position_encoding!r}; drop one of them"
            )
        return config

    @classmethod
    def from_json_file(cls, path):
        """Reads a `bert_config.json`, or a `config.json` of Hugging Face.

        Raises:
          UserError: a file that is missing, is not a JSON object or fails `from_dict`.
        """
        values = read_values(path)
        try:
            return cls.from_dict(values)
        except UserError as error:
            raise UserError(f"config {path}: {error}") from error

    def to_dict(self):
        """Returns the keys that `from_dict` reads, with the original's boolean where it fits."""
        values = dataclasses.asdict(self)
        row = POSITION_ENCODINGS[self.position_encoding]
        if row.use_relative_position is not None:
            values["use_relative_position"] = row.use_relative_position
        return values

    def to_hugging_face(self):
        """Returns the keys of a `config.json` of Hugging Face's Nezha, BERT or RoFormer.

        Raises:
          UserError: the model has no counterpart there.
        """
        values = dataclasses.asdict(self)
        encoding = values.pop("position_encoding")
        if self.hugging_face_model is None:
            raise UserError(
                f"position_encoding {encoding!r} has no counterpart in Hugging Face's models"
            )
        # Only NEZHA's distances have a bound.
        if not POSITION_ENCODINGS[encoding].use_relative_position:
            del values["max_relative_position"]
        for theirs, ours in _HUGGING_FACE_ACTIVATIONS.items():
            if ours == self.hidden_act:
                values["hidden_act"] = theirs
                break
        return {"model_type": self.hugging_face_model.model_type, **values}

    def to_json_file(self, path):
        """Writes a `bert_config.json`; the file appears whole or not at all."""
        write_text(path, json.dumps(self.to_dict(), indent=2, sort_keys=True) + "\n")


def encoding_of_tf1(use_relative_position):
    """Returns the position encoding that TF1's key means; absent (None) it means false."""
    meant = bool(use_relative_position)
    return next(n for n, row in POSITION_ENCODINGS.items() if row.use_relative_position is meant)


def model_types():
    """Returns {`model_type` of Hugging Face: position encoding}."""
    rows = POSITION_ENCODINGS.items()
    return {row.hugging_face.model_type: name for name, row in rows if row.hugging_face}


def missing_keys(values):
    """Returns the keys of the originals' files that a file lacks, so that defaults are taken.

    The keys that files of TF1 never have are not among them.

    Args:
      values: dict, of a `bert_config.json`.
    """
    ours_alone = ("position_encoding", "max_relative_position", "layer_norm_eps")
    names = [field.name for field in dataclasses.fields(NezhaConfig)]
    return [name for name in names if name not in values and name not in ours_alone]


def told_defaults(path, config):
    """Returns a line on the keys that the file of a configuration lacks, or "".

    Args:
      path: the file.
      config: the `NezhaConfig` that was made of it.
    """
    missing = missing_keys(read_values(path))
    taken = ", ".join(f"{name} {getattr(config, name)}" for name in missing)
    return f"{path} lacks keys, and their defaults are taken: {taken}" if taken else ""


def _meant(key, names):
    """Returns which of some keys an unknown one looks like, or None.

    It is spelt nearly so, or it is some of the words of the key ("num_heads").
    """
    # hiddenSize, hidden-size: in the spelling of the originals.
    words = re.split("[^a-z0-9]+", re.sub("(?<=[a-z])(?=[A-Z])", "_", key).lower())
    similar = difflib.get_close_matches("_".join(words), names, n=1, cutoff=0.85)
    shorter = [name for name in names if len(words) > 1 and set(words) < set(name.split("_"))]
    return next(iter([*similar, *shorter]), None)


def read_values(path):
    """Returns the keys and values of a file of JSON, as they are.

    Raises:
      UserError: it is missing or not a JSON object.
    """
    values = read_object(path)
    if values is None:
        raise UserError(f"cannot read config {path}: {os.strerror(errno.ENOENT)}")
    return values


def _from_hugging_face(values):
    """Returns the keys of a `config.json` of Hugging Face as `from_dict` has them."""
    values = {"type_vocab_size": 2, "hidden_act": "gelu", **values}
    model_type, known = values.pop("model_type"), model_types()
    if model_type not in tuple(known):
        raise UserError(f"model_type {model_type!r} is not one of {', '.join(known)}")
    for key, needed in _HUGGING_FACE_FIXED.items():
        if values.pop(key, needed) != needed:
            raise UserError(f"{key} other than {json.dumps(needed)} is not supported")
    values.setdefault("position_encoding", known[model_type])
    name = values["hidden_act"]
    if isinstance(name, str):
        values["hidden_act"] = _HUGGING_FACE_ACTIVATIONS.get(name, name)
    return values


def _check_roformer(values):
    """Raises UserError where keys of RoFormer's files ask for what no model here has."""
    if values.get("rotary_value"):
        raise UserError("rotary_value true is not supported: only queries and keys are turned")
    width, hidden = values.get("embedding_size"), values["hidden_size"]
    if width not in (None, hidden):
        raise UserError(
            f"embedding_size {width!r} other than hidden_size {hidden} is not supported"
        )


def _check_value(field, value):
    choices = {"hidden_act": ACTIVATIONS, "position_encoding": tuple(POSITION_ENCODINGS)}
    choices = choices.get(field.name)
    if choices:
        if value not in choices:
            raise UserError(f"{field.name} must be one of {', '.join(choices)}, not {value!r}")
    elif field.type is int:
        if type(value) is not int or value < 1:
            raise UserError(f"{field.name} must be a whole number of at least 1, not {value!r}")
    elif type(value) not in (int, float) or not math.isfinite(value):
        raise UserError(f"{field.name} must be a finite number, not {value!r}")
    elif field.name.endswith("_prob") and not 0 <= value < 1:
        raise UserError(f"{field.name} must be in [0, 1), not {value!r}")
    elif field.name in ("initializer_range", "layer_norm_eps") and value <= 0:
        raise UserError(f"{field.name} must be above 0, not {value!r}")
