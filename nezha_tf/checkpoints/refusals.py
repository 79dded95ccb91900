"""Why weights are refused, in whatever layout they are."""

import re

from nezha_tf.util.errors import UserError

# The types of weights; NumPy has bfloat16 from the package ml_dtypes.
FLOATS = ("float16", "bfloat16", "float32", "float64")
_WORDS = "bert/embeddings/word_embeddings"
_POSITIONS = "bert/embeddings/position_embeddings"
_MAPPING = "bert/encoder/embedding_hidden_mapping_in/kernel"
_LAYER, _GROUP = re.compile(r"/layer_(\d+)/"), re.compile(r"/group_(\d+)/")
# The names of programs whose models are not read here, and what to do with such a file.
_FOREIGN = (
    (
        re.compile(r"(^|\.)encoder\.transformer\.\d+\.self_attn\.linear_layers\."),
        "the names of UER-py: convert it with UER-py's "
        "scripts/convert_bert_from_uer_to_huggingface.py",
    ),
    (
        re.compile(r"(^|\.)encoder\.layers\.\d+\.self_attn\.q_proj\."),
        "the names of PaddleNLP: take the model in the form of transformers",
    ),
)


class UnreadableCheckpoint(UserError):
    """The files of a checkpoint are damaged or incomplete."""


def no_float(path, name, dtype):
    """Returns the `UserError` on a weight of integers, truth values or quantised numbers."""
    return UserError(
        f"checkpoint {path}: {name} is of {dtype}; only floating-point weights can be loaded, no "
        "quantised or sparse ones"
    )


def no_finite(path, name):
    """Returns the `UserError` on a weight with NaN or infinity."""
    return UserError(f"checkpoint {path}: {name} holds NaN or infinity; take an earlier checkpoint")


def check_structure(path, shapes, expected, num_groups=None, advice=""):
    """Raises a `UserError` if the names of a checkpoint contradict a configuration.

    The checkpoint of another structure would lack almost all variables, or have some that the
    model does not use; the message says which key to change instead.

    Args:
      path, shapes: the checkpoint, and dict of its TF1 names to shapes.
      expected: the same dict of the model that the configuration describes.
      num_groups: `num_hidden_groups` of the configuration, or None.
      advice: the end of the message.
    """
    foreign = _foreign(shapes, expected)
    if foreign:
        raise UserError(f"checkpoint {path} {foreign}")
    contradiction = (
        _other_layers(shapes, expected, num_groups)
        or _other_embeddings(shapes, expected)
        or _other_positions(shapes, expected)
    )
    if contradiction:
        raise UserError(f"checkpoint {path} {contradiction}{advice}")


def _foreign(shapes, expected):
    if not shapes or not expected or not set(expected).isdisjoint(shapes):
        return ""
    for pattern, whose in _FOREIGN:
        name = next(filter(pattern.search, sorted(shapes)), None)
        if name:
            return f"has {name} and others with {whose}"
    more = f" and {len(shapes) - 1} more" if len(shapes) > 1 else ""
    return f"has no weights with the names of BERT, NEZHA or ALBERT, but {min(shapes)}{more}"


def _other_layers(shapes, expected, num_groups):
    layers, groups = _count(_LAYER, shapes), _count(_GROUP, shapes)
    needed = _count(_GROUP, expected)
    if groups and _count(_LAYER, expected):
        return (
            f"has layers that share the weights of {groups} groups, as ALBERT has, but its "
            f'configuration says of no groups: put "num_hidden_groups": {groups} into it'
        )
    if layers and needed:
        return (
            f"has the weights of {layers} layers, but by the configuration the layers share those "
            f"of {needed} groups (num_hidden_groups): remove this key"
        )
    # Of more groups than layers, TF1's programs keep those that a layer uses, transformers all.
    if groups and needed and groups not in (needed, num_groups):
        return (
            f"has {groups} groups of layers, but by the configuration it has {needed} "
            f'(num_hidden_groups): put "num_hidden_groups": {groups} into it'
        )
    return ""


def _other_embeddings(shapes, expected):
    is_mapped = _MAPPING in shapes, _MAPPING in expected
    if not any(is_mapped) or not all(_WORDS in names for names in (shapes, expected)):
        return ""
    width, needed = shapes[_WORDS][-1], expected[_WORDS][-1]
    put = f'put "embedding_size": {width} into it'
    if width != needed:
        # ELECTRA's class in transformers takes 128 where the key is missing.
        other = "" if _count(_GROUP, expected) else f", or {put}"
        advice = put if is_mapped[0] else f"remove this key{other}"
        return (
            f"has embeddings of width {width}, but by the configuration they are of width {needed} "
            f"(embedding_size): {advice}"
        )
    if is_mapped == (True, False):
        return f"has {_MAPPING}, which the model of its configuration lacks: {put}"
    if is_mapped == (False, True):
        hidden = expected[_MAPPING][-1]
        if width != hidden:
            return f"lacks {_MAPPING}, by which embeddings of width {width} become {hidden} wide"
        return (
            f"lacks {_MAPPING}, and its embeddings are as wide as its layers: remove "
            "embedding_size from the configuration"
        )
    return ""


def _other_positions(shapes, expected):
    if _POSITIONS not in expected or _POSITIONS in shapes or _WORDS not in shapes:
        return ""
    return (
        f"has no table of positions ({_POSITIONS}), as NEZHA and RoFormer have none, but its "
        'configuration is that of a BERT: put "position_encoding": "functional_relative" (NEZHA) '
        'or "position_encoding": "rotary" (RoFormer) into it'
    )


def _count(pattern, names):
    return len({match[1] for match in map(pattern.search, names) if match})
