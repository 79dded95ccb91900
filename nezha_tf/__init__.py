"""NEZHA and BERT pretraining in TensorFlow 2 and Keras, with the numbers of the TF1 originals.

The names below are the stable public interface. Each is imported on first use, so that modules
that need only Keras (`modeling`, `objectives`, `optimization`) can be imported without TensorFlow.
"""

import importlib
import typing

__version__ = "0.3.0.dev0"  # also that of the installed package: setup.cfg reads it here

_PUBLIC = {
    "NezhaConfig": "nezha_tf.config",
    "NezhaEncoder": "nezha_tf.modeling.encoder",
    "NezhaForMaskedLM": "nezha_tf.modeling.pretraining",
    "NezhaForPreTraining": "nezha_tf.modeling.pretraining",
    "enable_lora": "nezha_tf.modeling.lora",
    "Lamb": "nezha_tf.optimization.lamb",
    "AdamWeightDecay": "nezha_tf.optimization.adamw",
    "warmup_linear_decay": "nezha_tf.optimization.schedules",
    "FullTokenizer": "nezha_tf.text.tokenization",
    "GraphTokenizer": "nezha_tf.text.graph_tokenizer",
    "Tokenizer": "nezha_tf.serving.tokenizer",
    "TokenizerLayer": "nezha_tf.serving.tokenizer_layer",
    "Vocabulary": "nezha_tf.text.vocabulary",
    "load": "nezha_tf.checkpoints.folder",
    "TextClassifier": "nezha_tf.estimators.understanding",
    "TokenTagger": "nezha_tf.estimators.understanding",
    "QuestionAnswerer": "nezha_tf.estimators.understanding",
    "MultipleChoice": "nezha_tf.estimators.understanding",
    "TextGenerator": "nezha_tf.estimators.writing",
    "MaskFiller": "nezha_tf.estimators.writing",
    "TextEncoder": "nezha_tf.estimators.writing",
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


# A type checker does not see what `__getattr__` imports; and if it saw the function, it would take
# any name for one that may be there.
if typing.TYPE_CHECKING:
    from nezha_tf import checkpoints as checkpoints
    from nezha_tf.checkpoints import folder as _folder
    from nezha_tf.checkpoints.folder import load as load
    from nezha_tf.config import NezhaConfig as NezhaConfig
    from nezha_tf.estimators.understanding import MultipleChoice as MultipleChoice
    from nezha_tf.estimators.understanding import QuestionAnswerer as QuestionAnswerer
    from nezha_tf.estimators.understanding import TextClassifier as TextClassifier
    from nezha_tf.estimators.understanding import TokenTagger as TokenTagger
    from nezha_tf.estimators.writing import MaskFiller as MaskFiller
    from nezha_tf.estimators.writing import TextEncoder as TextEncoder
    from nezha_tf.estimators.writing import TextGenerator as TextGenerator
    from nezha_tf.generation.generator import Generator as Generator
    from nezha_tf.generation.options import GenerationOptions as GenerationOptions
    from nezha_tf.generation.target_format import TargetFormat as TargetFormat
    from nezha_tf.modeling import attention_mask as attention_mask
    from nezha_tf.modeling.encoder import NezhaEncoder as NezhaEncoder
    from nezha_tf.modeling.lora import enable_lora as enable_lora
    from nezha_tf.modeling.pretraining import NezhaForMaskedLM as NezhaForMaskedLM
    from nezha_tf.modeling.pretraining import NezhaForPreTraining as NezhaForPreTraining
    from nezha_tf.optimization.adamw import AdamWeightDecay as AdamWeightDecay
    from nezha_tf.optimization.lamb import Lamb as Lamb
    from nezha_tf.optimization.schedules import warmup_linear_decay as warmup_linear_decay
    from nezha_tf.serving.tokenizer import Tokenizer as Tokenizer
    from nezha_tf.serving.tokenizer_layer import TokenizerLayer as TokenizerLayer
    from nezha_tf.text.graph_tokenizer import GraphTokenizer as GraphTokenizer
    from nezha_tf.text.tokenization import FullTokenizer as FullTokenizer
    from nezha_tf.text.vocabulary import Vocabulary as Vocabulary

    model_folder = _folder
else:

    def __getattr__(name):
        if name in _PUBLIC:
            return getattr(importlib.import_module(_PUBLIC[name]), name)
        if name in _PUBLIC_MODULES:
            return importlib.import_module(_PUBLIC_MODULES[name])
        raise AttributeError(f"module 'nezha_tf' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
