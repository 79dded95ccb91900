"""Compares the layers and the embeddings of a checkpoint with those of a model, by their names."""

import re

_WORDS = "bert/embeddings/word_embeddings"
_MAPPING = "bert/encoder/embedding_hidden_mapping_in/kernel"
_LAYER, _GROUP = re.compile(r"/layer_(\d+)/"), re.compile(r"/group_(\d+)/")


def fault(found, expected):
    """Returns how a checkpoint contradicts the keys of a configuration that ALBERT added, or "".

    These are `num_hidden_groups` and `embedding_size`. The checkpoint of another structure would
    lack almost all variables, or have some that the model does not use.

    Args:
      found: dict of TF1 name to shape, of the checkpoint.
      expected: the same, of the model that the configuration describes.

    Returns:
      The end of a sentence about the checkpoint, which says what to change in the configuration.
    """
    return _fault_of_layers(found, expected) or _fault_of_embeddings(found, expected)


def _fault_of_layers(found, expected):
    layers, groups = _count(_LAYER, found), _count(_GROUP, found)
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
    if groups and needed and groups != needed:
        return (
            f"has {groups} groups of layers, but by the configuration it has {needed} "
            f'(num_hidden_groups): put "num_hidden_groups": {groups} into it'
        )
    return ""


def _fault_of_embeddings(found, expected):
    is_mapped = _MAPPING in found, _MAPPING in expected
    if not any(is_mapped) or not all(_WORDS in names for names in (found, expected)):
        return ""
    width, needed = found[_WORDS][-1], expected[_WORDS][-1]
    if width != needed:
        # ELECTRA's class in transformers takes 128 where the key is missing.
        put = f'put "embedding_size": {width} into it'
        other = "" if _count(_GROUP, expected) else f", or {put}"
        advice = put if is_mapped[0] else f"remove this key{other}"
        return (
            f"has embeddings of width {width}, but by the configuration they are of width {needed} "
            f"(embedding_size): {advice}"
        )
    if is_mapped == (False, True):
        return (
            f"lacks {_MAPPING}, and its embeddings are as wide as its layers: remove "
            "embedding_size from the configuration"
        )
    if is_mapped == (True, False):
        return (
            f"has {_MAPPING}, which the model of its configuration lacks: put "
            f'"embedding_size": {width} into it'
        )
    return ""


def _count(pattern, names):
    """Returns the number of different layers or groups in names; 0: there are none."""
    return len({match[1] for match in map(pattern.search, names) if match})
