"""Low-rank adaptation (LoRA, Hu et al., arXiv 2106.09685) of an encoder's dense layers.

To a frozen kernel W [in, out] it adds alpha / rank * A B, with A [in, rank] and B [rank, out],
which alone are trained. B begins at 0, so the model begins as it was. The adapters are those of
Keras's `Dense.enable_lora`.
"""

import keras
from keras import ops

from nezha_tf.modeling.layers import Dense
from nezha_tf.util.errors import UserError

# How Keras begins the names of adapters, which lie beside the kernel that they change.
PREFIX = "lora_"


def enable_lora(model: keras.Model, rank: int, alpha: float | None = None) -> None:
    """Freezes an encoder, and gives each dense layer of its Transformer layers an adapter.

    The pooler and what lies on the encoder stay as they are: they are new in most tasks, and
    trained whole. Layers that share their weights (ALBERT) share their adapters.

    Args:
      model: a `NezhaEncoder`, or a model with one as its `encoder`.
      rank: the rank of all adapters, above 0.
      alpha: the adapters' product is multiplied by alpha / rank; None: `rank`, as in Keras.

    Raises:
      UserError: the rank or alpha is not above 0, the model has adapters already, or its layers are
        frozen by `layer_mix`.
    """
    alpha = rank if alpha is None else alpha
    if rank < 1 or not alpha > 0:
        raise UserError(f"adapters need a rank and an alpha above 0, not {rank} and {alpha:g}")
    if adapted_layers(model):
        raise UserError("the model has adapters already; merge them, or take a new model")
    encoder = getattr(model, "encoder", model)
    if encoder.mixture is not None:
        raise UserError("layer_mix freezes the layers, so adapters of them are not trained")
    whole = {id(variable) for variable in encoder.pooler.weights}
    for variable in encoder.weights:
        if id(variable) not in whole:
            variable.trainable = False
    for layer in dict.fromkeys(encoder.transformer_layers):
        for part in _parts_of(layer):
            if isinstance(part, Dense):
                part.enable_lora(rank, alpha)


def adapted_layers(model):
    """Returns the list of a model's layers with adapters, each once."""
    found = {id(part): part for part in _parts_of(model) if getattr(part, "lora_enabled", False)}
    return list(found.values())


def adapters_of(layer):
    """Returns (A, B), the variables of a dense layer with an adapter."""
    return layer.lora_kernel_a, layer.lora_kernel_b


def kernel_of(layer):
    """Returns the variable of the kernel that the adapter of a dense layer changes."""
    return layer._kernel


def merged_kernel(layer):
    """Returns W + alpha / rank * A B of a dense layer with an adapter, float32 [in, out].

    The layer's own `kernel` is the same in its compute dtype.
    """
    a, b = map(ops.convert_to_tensor, adapters_of(layer))
    kernel = ops.cast(ops.convert_to_tensor(kernel_of(layer)), a.dtype)
    return kernel + layer.lora_alpha / layer.lora_rank * ops.matmul(a, b)


def begin_anew(model):
    """Sets B of all adapters of a model to 0, as it was at the beginning."""
    for layer in adapted_layers(model):
        _, b = adapters_of(layer)
        b.assign(ops.zeros(b.shape, b.dtype))


def is_adapter(variable):
    """Whether a variable is A or B of an adapter."""
    return variable.path.rpartition("/")[2].startswith(PREFIX)


def _parts_of(layer):
    return layer._flatten_layers(include_self=False)
