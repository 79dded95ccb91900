"""The base of what is made of a `NezhaConfig`: Keras can write, read and copy it."""

import dataclasses
import inspect

import keras
from keras import ops

from nezha_tf.config import NezhaConfig
from nezha_tf.util.errors import UserError

# The inputs that every model reads, int [B, T].
_OF_TOKENS = ("input_ids", "input_mask", "segment_ids")
# Names of inputs in transformers and keras-hub, and ours.
_FOREIGN_NAMES = {
    "token_type_ids": "segment_ids",
    "token_ids": "input_ids",
    "padding_mask": "input_mask",
}


class Configured:
    """A layer or model whose first argument is a `NezhaConfig`.

    Each further argument of its constructor is an attribute of the same name. Keras finds the class
    by its name when it reads a file.
    """

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        keras.saving.register_keras_serializable(cls.__module__.split(".")[0])(cls)

    def get_config(self):
        """Returns a dict for `from_config`, of what JSON can hold."""
        config = {**super().get_config(), "config": dataclasses.asdict(self.config)}
        for name in _arguments(type(self)):
            config[name] = keras.saving.serialize_keras_object(getattr(self, name))
        quantized = {
            str(number): {
                "mode": layer.quantization_mode,
                "config": keras.saving.serialize_keras_object(layer.quantization_config),
            }
            for number, layer in enumerate(self._flatten_layers())
            if hasattr(layer, "quantization_config") and layer.quantization_mode
        }
        return {**config, "quantized": quantized} if quantized else config

    @classmethod
    def from_config(cls, config):
        """Returns a new layer or model, with new weights, of the dict of `get_config`."""
        arguments = {name: value for name, value in config.items() if name != "quantized"}
        arguments["config"] = NezhaConfig(**config["config"])
        for name in _arguments(cls):
            arguments[name] = keras.saving.deserialize_keras_object(config[name])
        made = cls(**arguments)
        parts = made._flatten_layers() if "quantized" in config else ()
        for number, layer in enumerate(list(parts)):
            if (own := config["quantized"].get(str(number))) is not None:
                own_config = keras.saving.deserialize_keras_object(own["config"])
                layer.quantize(None if own_config else own["mode"], config=own_config)
        return made


class NezhaModel(Configured, keras.Model):
    """The base of all models; a subclass has `outputs`, which computes everything.

    `main_outputs` are the names of what a call returns by itself: a dict, or the tensor if
    `main_outputs` is a name.
    """

    main_outputs = ("sequence_output", "pooled_output")
    # The rank of `input_ids`.
    ids_rank = 2

    def call(self, inputs, training=False, all_outputs=False):
        """Args:
          inputs: dict of `input_ids`, int [B, T], and the other inputs of `outputs`; or the ids.
            Without `input_mask`, ids other than 0, which is [PAD], are tokens; without
            `segment_ids`, all tokens are of segment 0.
          training: whether dropout is on.
          all_outputs: whether everything is returned, the dict of `outputs`.

        Raises:
          UserError: `input_ids` is missing, or an input has the name of another library.
        """
        return self._selected(self.outputs(completed(inputs), training), all_outputs)

    def outputs(self, inputs, training=False):
        """Returns a dict of everything; a part of `call`, with the inputs complete."""
        raise NotImplementedError(f"{type(self).__name__} has no outputs()")

    def export(
        self, filepath, format="tf_saved_model", verbose=None, input_signature=None, **kwargs
    ):
        """As Keras's; without `input_signature` it is a dict of ids, mask and segments.

        Raises:
          UserError: on JAX there is no signature, as Keras would take open lengths for different
            ones; or a SavedModel on PyTorch, where Keras exports no model with a dict of inputs.
        """
        backend = keras.backend.backend()
        if backend == "torch" and format == "tf_saved_model":
            raise UserError(
                "Keras exports this on TensorFlow or JAX: save it as .keras, and load it there"
            )
        if input_signature is None:
            if backend == "jax":
                raise UserError(
                    "on JAX an export needs the length of its texts: give input_signature, such as "
                    '[{"input_ids": keras.InputSpec(shape=(None, 128), dtype="int32")}]'
                )
            spec = keras.InputSpec(shape=(None,) * self.ids_rank, dtype="int32")
            input_signature = [dict.fromkeys(_OF_TOKENS, spec)]
        super().export(filepath, format, verbose, input_signature, **kwargs)

    def _selected(self, outputs, all_outputs):
        if all_outputs:
            return outputs
        if isinstance(self.main_outputs, str):
            return outputs[self.main_outputs]
        return {name: outputs[name] for name in self.main_outputs}


def completed(inputs):
    """Returns the inputs of a model with `input_mask` and `segment_ids`; see `NezhaModel.call`."""
    if not isinstance(inputs, dict):
        inputs = {"input_ids": inputs}
    for foreign, own in _FOREIGN_NAMES.items():
        if foreign in inputs:
            raise UserError(f"the inputs have {foreign}; the name here is {own}, rename it")
    if "input_ids" not in inputs:
        names = ", ".join(inputs) or "nothing"
        raise UserError(f"the inputs have no input_ids, but {names}; they are a dict of tensors")
    # To build a model of several replicas, Keras calls it with floats.
    inputs = {
        name: ops.cast(value, "int32") if name in _OF_TOKENS else value
        for name, value in inputs.items()
    }
    if len(getattr(inputs.get("attention_mask"), "shape", (None,) * 3)) < 3:
        raise UserError(
            "attention_mask [B, T] is the mask of padding: its name here is input_mask; "
            "attention_mask is of pairs of tokens, [B, T, T]"
        )
    if "input_mask" not in inputs:
        inputs["input_mask"] = ops.cast(ops.not_equal(inputs["input_ids"], 0), "int32")
    if "segment_ids" not in inputs:
        inputs["segment_ids"] = ops.zeros_like(inputs["input_ids"])
    return inputs


def _arguments(cls):
    """Returns the names of the arguments of a class beside `config` and those of Keras."""
    parameters = inspect.signature(cls.__init__).parameters.values()
    own = [each.name for each in parameters if each.kind != each.VAR_KEYWORD]
    return [name for name in own if name not in ("self", "config", "name", "dtype")]
