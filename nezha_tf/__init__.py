"""NEZHA and BERT pretraining in TensorFlow 2 and Keras, with the numbers of the TF1 originals.

The names below are the stable public interface. Each is imported on first use, so that modules
that need only Keras (`modeling`, `objectives`, `optimization`) can be imported without TensorFlow.
"""

import importlib

__version__ = "0.3.0.dev0"

_PUBLIC = {
    "NezhaConfig": "nezha_tf.config",
    "NezhaEncoder": "nezha_tf.modeling.encoder",
    "NezhaForMaskedLM": "nezha_tf.modeling.pretraining",
    "NezhaForPreTraining": "nezha_tf.modeling.pretraining",
    "Lamb": "nezha_tf.optimization.lamb",
    "AdamWeightDecay": "nezha_tf.optimization.adamw",
    "warmup_linear_decay": "nezha_tf.optimization.schedules",
    "FullTokenizer": "nezha_tf.text.tokenization",
    "GraphTokenizer": "nezha_tf.text.graph_tokenizer",
    "Vocabulary": "nezha_tf.text.vocabulary",
    "load": "nezha_tf.checkpoints.folder",
    "TargetFormat": "nezha_tf.generation.target_format",
    "GenerationOptions": "nezha_tf.generation.options",
    "Generator": "nezha_tf.generation.generator",
}
_PUBLIC_MODULES = {
    "attention_mask": "nezha_tf.modeling.attention_mask",
    "checkpoints": "nezha_tf.checkpoints",
    "model_folder": "nezha_tf.checkpoints.folder",
}

__all__ = sorted([*_PUBLIC, *_PUBLIC_MODULES])


def __getattr__(name):
    if name in _PUBLIC:
        return getattr(importlib.import_module(_PUBLIC[name]), name)
    if name in _PUBLIC_MODULES:
        return importlib.import_module(_PUBLIC_MODULES[name])
    raise AttributeError(f"module 'nezha_tf' has no attribute {name!r}")


def __dir__():
    return __all__
