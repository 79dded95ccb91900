"""Published models: the keys and values of their configuration files, and the names of weights.

The values are facts of the published files or, where a file cannot be had without its archive, of
the program that wrote it. The names are those of transformers 4.40.2, of the TF1 programs and of
brightmart/albert_zh, for one layer. What a row expects is what the class of transformers 4.40.2, or
else the original program, makes of the file.
"""

from typing import NamedTuple


class PublishedModel(NamedTuple):
    """A row.

    Attributes:
      values: dict, the configuration file.
      names: the names of the weights.
      expected: dict of the keys of `NezhaConfig` that are not those of a BERT-base of 21128 tokens.
      tf1: the TF1 names of the weights, sorted.
      layout: "hugging_face", "tf1", or "pytorch" (a PyTorch file with a TF1 configuration).
      unused: names that stay, because no model here has them.
    """

    values: dict
    names: list
    expected: dict
    tf1: list
    layout: str = "hugging_face"
    unused: tuple = ()


_LAYER = (
    "attention.self.query",
    "attention.self.key",
    "attention.self.value",
    "attention.output.dense",
    "attention.output.LayerNorm",
    "intermediate.dense",
    "output.dense",
    "output.LayerNorm",
)
_TABLES = ("word_embeddings", "token_type_embeddings", "position_embeddings")


def _parts(stem, old=False):
    ends = ("gamma", "beta") if old and stem.endswith("LayerNorm") else ("weight", "bias")
    return [f"{stem}.{end}" for end in ends]


def body(prefix="", positions=True, pooler=True, old=False):
    """Returns the names of a BERT of one layer in a file of PyTorch."""
    tables = _TABLES if positions else _TABLES[:2]
    stems = ["embeddings.LayerNorm", *(f"encoder.layer.0.{part}" for part in _LAYER)]
    stems += ["pooler.dense"] if pooler else []
    names = [f"embeddings.{table}.weight" for table in tables]
    names += [name for stem in stems for name in _parts(stem, old)]
    return [prefix + name for name in names]


def masked_lm(prefix="", old=False):
    """Returns the names of BERT's head of masked LM."""
    stems = ["transform.dense", "transform.LayerNorm"]
    names = ["bias", "decoder.weight", *(n for stem in stems for n in _parts(stem, old))]
    return [f"{prefix}cls.predictions.{name}" for name in names]


def next_sentence(prefix=""):
    return [f"{prefix}cls.seq_relationship.{part}" for part in ("weight", "bias")]


_TF1_ENDS = {"dense": ("kernel", "bias"), "LayerNorm": ("gamma", "beta")}


def _tf1_parts(stem):
    ends = _TF1_ENDS.get(stem.rpartition("/")[2], ("kernel", "bias"))
    return [f"{stem}/{end}" for end in ends]


def tf1_body(positions=True, pooler=True, layer="layer_0"):
    """Returns the names of a BERT of one layer in Google's program."""
    tables = _TABLES if positions else _TABLES[:2]
    layers = (f"encoder/{layer}/{part.replace('.', '/')}" for part in _LAYER)
    stems = ["embeddings/LayerNorm", *layers, *(["pooler/dense"] if pooler else [])]
    names = [f"embeddings/{table}" for table in tables]
    return [f"bert/{name}" for name in (*names, *(n for stem in stems for n in _tf1_parts(stem)))]


def tf1_albert(*groups, maps=True):
    """Returns the names of an ALBERT in Google's program."""
    names = [f"bert/embeddings/{table}" for table in _TABLES]
    stems = ["bert/embeddings/LayerNorm", "bert/pooler/dense"]
    stems += ["bert/encoder/embedding_hidden_mapping_in"] if maps else []
    for group in groups:
        stem = f"bert/encoder/transformer/group_{group}/inner_group_0"
        stems += [f"{stem}/attention_1/self/{part}" for part in ("query", "key", "value")]
        stems += [f"{stem}/attention_1/output/dense", f"{stem}/ffn_1/intermediate/dense"]
        stems += [f"{stem}/ffn_1/intermediate/output/dense"]
        names += [f"{stem}/{n}/{end}" for n in ("LayerNorm", "LayerNorm_1") for end in _NORM]
    return names + [name for stem in stems for name in _tf1_parts(stem)]


_NORM = ("gamma", "beta")
TF1_MASKED_LM = [
    "cls/predictions/output_bias",
    *_tf1_parts("cls/predictions/transform/dense"),
    *_tf1_parts("cls/predictions/transform/LayerNorm"),
]
TF1_NEXT_SENTENCE = ["cls/seq_relationship/output_weights", "cls/seq_relationship/output_bias"]


def albert(prefix, groups=1):
    """Returns the names of an ALBERT of transformers."""
    stems = ["embeddings.LayerNorm", "pooler", "encoder.embedding_hidden_mapping_in"]
    for group in range(groups):
        stem = f"encoder.albert_layer_groups.{group}.albert_layers.0"
        parts = ("query", "key", "value", "dense", "LayerNorm")
        stems += [f"{stem}.attention.{part}" for part in parts]
        stems += [f"{stem}.{part}" for part in ("ffn", "ffn_output", "full_layer_layer_norm")]
    names = [f"embeddings.{table}.weight" for table in _TABLES]
    return [prefix + name for name in (*names, *(n for stem in stems for n in _parts(stem)))]


def albert_masked_lm():
    stems = ["predictions.dense", "predictions.LayerNorm"]
    return ["predictions.bias", *(name for stem in stems for name in _parts(stem))]


# What Google's chinese_L-12_H-768_A-12 says, and most that came after it repeat.
_GOOGLE = {
    "attention_probs_dropout_prob": 0.1,
    "directionality": "bidi",
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.1,
    "hidden_size": 768,
    "initializer_range": 0.02,
    "intermediate_size": 3072,
    "max_position_embeddings": 512,
    "num_attention_heads": 12,
    "num_hidden_layers": 12,
    "pooler_fc_size": 768,
    "pooler_num_attention_heads": 12,
    "pooler_num_fc_layers": 3,
    "pooler_size_per_head": 128,
    "pooler_type": "first_token_transform",
    "type_vocab_size": 2,
    "vocab_size": 21128,
}
_PLAIN = {k: v for k, v in _GOOGLE.items() if not k.startswith("pooler") and k != "directionality"}
_BERT = {
    **_GOOGLE,
    "architectures": ["BertForMaskedLM"],
    "layer_norm_eps": 1e-12,
    "model_type": "bert",
    "output_past": True,
    "pad_token_id": 0,
}
_NEZHA = {
    **_PLAIN,
    "architectures": ["NeZhaForMaskedLM"],
    "bos_token_id": 2,
    "classifier_dropout": 0.1,
    "embedding_size": 128,
    "eos_token_id": 3,
    "inner_group_num": 1,
    "layer_norm_eps": 1e-12,
    "max_relative_position": 64,
    "model_type": "nezha",
    "num_hidden_groups": 1,
    "pad_token_id": 0,
    "torch_dtype": "float32",
    "transformers_version": "4.20.0.dev0",
    "use_cache": True,
    "use_relative_position": True,
}
_NEZHA_LARGE = {
    **_NEZHA,
    "hidden_size": 1024,
    "intermediate_size": 4096,
    "num_attention_heads": 16,
    "num_hidden_layers": 24,
}
_LARGE = {key: _NEZHA_LARGE[key] for key in _NEZHA_LARGE if _NEZHA_LARGE[key] != _NEZHA[key]}
_ERNIE = {
    "attention_probs_dropout_prob": 0.1,
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.1,
    "hidden_size": 768,
    "initializer_range": 0.02,
    "max_position_embeddings": 2048,
    "num_attention_heads": 12,
    "num_hidden_layers": 12,
    "task_type_vocab_size": 3,
    "type_vocab_size": 4,
    "use_task_id": True,
    "vocab_size": 40000,
    "layer_norm_eps": 1e-05,
    "model_type": "ernie",
    "architectures": ["ErnieForMaskedLM"],
    "intermediate_size": 3072,
}
_OF_ERNIE_3 = {
    "vocab_size": 40000,
    "max_position_embeddings": 2048,
    "type_vocab_size": 4,
    "layer_norm_eps": 1e-05,
}
_ALBERT_GOOGLE = {
    **_PLAIN,
    "embedding_size": 128,
    "num_hidden_groups": 1,
    "net_structure_type": 0,
    "gap_size": 0,
    "num_memory_blocks": 0,
    "inner_group_num": 1,
    "down_scale_factor": 1,
}
_VOIDFUL = {
    **_ALBERT_GOOGLE,
    "architectures": ["AlbertForMaskedLM"],
    "classifier_dropout_prob": 0.1,
    "hidden_act": "relu",
    "hidden_dropout_prob": 0,
    "attention_probs_dropout_prob": 0,
    "layer_norm_eps": 1e-12,
    "model_type": "albert",
    "pad_token_id": 0,
}
_NO_DROPOUT = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
_ROFORMER = {
    **_PLAIN,
    "architectures": ["RoFormerForMaskedLM"],
    "embedding_size": 768,
    "layer_norm_eps": 1e-12,
    "max_position_embeddings": 1536,
    "model_type": "roformer",
    "pad_token_id": 0,
    "rotary_value": False,
    "use_cache": True,
    "vocab_size": 50000,
}
_RELATIVE = {"position_encoding": "functional_relative"}
_TF1 = {"hidden_act": "gelu"}
_BUFFER = ["encoder.layer.0.attention.self.relative_positions_encoding.positions_encoding"]
_OF_NEZHA = sorted(tf1_body(positions=False) + TF1_MASKED_LM)
_OF_BERT = sorted(tf1_body() + TF1_MASKED_LM)
_OF_PRETRAINING = sorted(tf1_body() + TF1_MASKED_LM + TF1_NEXT_SENTENCE)
_FAST = {**_ALBERT_GOOGLE, "hidden_size": 336, "intermediate_size": 1344, "num_hidden_layers": 4}


def _nezha(values, prefix="nezha.", heads="", **expected):
    names = [*body(prefix, positions=False), *(prefix + name for name in _BUFFER)]
    return PublishedModel(values, names + masked_lm(heads), _RELATIVE | expected, _OF_NEZHA)


def _bert(changes, expected=None, prefix="bert.", heads="", old=False, pooler=True):
    names = [*body(prefix, pooler=pooler, old=old), f"{prefix}embeddings.position_ids"]
    tf1 = sorted(tf1_body(pooler=pooler) + TF1_MASKED_LM)
    return PublishedModel({**_BERT, **changes}, names + masked_lm(heads, old), expected or {}, tf1)


def _ernie(changes, expected, has_table=True, unused=()):
    table = ["ernie.embeddings.task_type_embeddings.weight"] if has_table else []
    names = body("ernie.") + table + masked_lm()
    tf1 = sorted([*_OF_BERT, *unused])
    return PublishedModel({**_ERNIE, **changes}, names, expected, tf1, unused=unused)


def _sizes(layers, hidden, heads=None):
    return {
        "num_hidden_layers": layers,
        "hidden_size": hidden,
        "num_attention_heads": heads or hidden // 64,
        "intermediate_size": 4 * hidden,
    }


MODELS = {
    "sijunhe/nezha-cn-base": _nezha(_NEZHA),
    "sijunhe/nezha-cn-large": _nezha(_NEZHA_LARGE, **_LARGE),
    "sijunhe/nezha-base-wwm": _nezha({**_NEZHA, "architectures": ["NezhaForPreTraining"]}),
    "sijunhe/nezha-large-wwm": _nezha(
        {
            k: v
            for k, v in _NEZHA_LARGE.items()
            if k not in ("num_hidden_groups", "inner_group_num")
        },
        **_LARGE,
    ),
    "a NEZHA repacked for AutoConfig": _nezha({**_NEZHA, "model_type": "bert"}, prefix="bert."),
    "lonePatient's NeZhaForMaskedLM": _nezha(_NEZHA, prefix="bert."),
    "saved from DataParallel": _nezha(_NEZHA, prefix="module.nezha.", heads="module."),
    "PaddleNLP's configuration of NeZhaModel": _nezha(
        {**_NEZHA, "paddlenlp_version": None, "pool_act": "tanh", "num_choices": 2}
    ),
    "huawei-noah/NEZHA-PyTorch nezha-cn-base": PublishedModel(
        {**_PLAIN, "max_relative_position": 64, "use_relative_position": True},
        body("bert.", positions=False) + masked_lm() + next_sentence(),
        _RELATIVE,
        sorted([*_OF_NEZHA, *TF1_NEXT_SENTENCE]),
        "pytorch",
    ),
    "huawei-noah/NEZHA-PyTorch nezha-en-base": PublishedModel(
        {
            **_PLAIN,
            "max_relative_position": 127,
            "use_relative_position": True,
            "vocab_size": 28996,
        },
        body("bert.", positions=False) + masked_lm() + next_sentence(),
        {**_RELATIVE, "max_relative_position": 127, "vocab_size": 28996},
        sorted([*_OF_NEZHA, *TF1_NEXT_SENTENCE]),
        "pytorch",
    ),
    "huawei-noah/NEZHA-TensorFlow": PublishedModel(
        {**_GOOGLE, "use_relative_position": True},
        [*_OF_NEZHA, *TF1_NEXT_SENTENCE],
        _RELATIVE | _TF1,
        sorted([*_OF_NEZHA, *TF1_NEXT_SENTENCE]),
        "tf1",
    ),
    "chinese_L-12_H-768_A-12": PublishedModel(
        _GOOGLE, _OF_PRETRAINING, _TF1, _OF_PRETRAINING, "tf1"
    ),
    # Written by bert4keras: WoBERT has 50,000 words, SimBERT a pooler, neither next sentences.
    "ZhuiyiTechnology/WoBERT": PublishedModel(
        {**_GOOGLE, "vocab_size": 50000},
        sorted(tf1_body(pooler=False) + TF1_MASKED_LM),
        {**_TF1, "vocab_size": 50000},
        sorted(tf1_body(pooler=False) + TF1_MASKED_LM),
        "tf1",
    ),
    "ZhuiyiTechnology/simbert": PublishedModel(
        {**_GOOGLE, "vocab_size": 13685}, _OF_BERT, {**_TF1, "vocab_size": 13685}, _OF_BERT, "tf1"
    ),
    "bert-base-chinese": _bert({"output_past": None}),
    "hfl/chinese-bert-wwm, with gamma and beta": _bert({}, old=True),
    "hfl/chinese-roberta-wwm-ext": _bert({"bos_token_id": 0, "eos_token_id": 2}),
    "hfl/chinese-macbert-base": _bert({"gradient_checkpointing": False}),
    "hfl/rbt3": _bert({"num_hidden_layers": 3}, {"num_hidden_layers": 3}),
    "hfl/rbtl3": _bert(_sizes(3, 1024), _sizes(3, 1024)),
    "hfl/chinese-pert-base": _bert({"transformers_version": "4.12.5", "use_cache": True}),
    "hfl/chinese-lert-base": _bert({"position_embedding_type": "absolute"}),
    "hfl/minirbt-h256": _bert(_sizes(6, 256, 8), _sizes(6, 256, 8)),
    "iflytek's MiniRBT of four layers": PublishedModel(
        {**_PLAIN, **_sizes(4, 312, 12), "intermediate_size": 1200, "model_type": "bert"},
        body("bert."),
        {**_sizes(4, 312, 12), "intermediate_size": 1200},
        sorted(tf1_body()),
    ),
    "uer/chinese_roberta_L-2_H-128": _bert(
        {**_sizes(2, 128), "gradient_checkpointing": False, "use_cache": True},
        _sizes(2, 128),
        pooler=False,
    ),
    "nghuyong/ernie-3.0-base-zh": _ernie({}, _OF_ERNIE_3),
    "the same with use_task_id edited": _ernie(
        {"use_task_id": False}, _OF_ERNIE_3, unused=("bert/embeddings/task_type_embeddings",)
    ),
    "nghuyong/ernie-1.0-base-zh": _ernie(
        {
            "hidden_act": "relu",
            "max_position_embeddings": 513,
            "type_vocab_size": 2,
            "use_task_id": False,
            "vocab_size": 18000,
        },
        {
            "hidden_act": "relu",
            "max_position_embeddings": 513,
            "layer_norm_eps": 1e-05,
            "vocab_size": 18000,
        },
        has_table=False,
    ),
    "google-research/albert albert_base_zh": PublishedModel(
        {**_ALBERT_GOOGLE, **_NO_DROPOUT},
        tf1_albert(0) + TF1_MASKED_LM,
        {**_TF1, **_NO_DROPOUT, "embedding_size": 128, "num_hidden_groups": 1},
        sorted(tf1_albert(0) + TF1_MASKED_LM),
        "tf1",
    ),
    "brightmart/albert_zh albert_tiny_google_fast": PublishedModel(
        {**_FAST, "num_hidden_groups": 12},
        tf1_albert(0, 3, 6, 9) + TF1_MASKED_LM,
        {
            **_TF1,
            **_sizes(4, 336, 12),
            "embedding_size": 128,
            "num_hidden_groups": 12,
        },
        sorted(tf1_albert(0, 3, 6, 9) + TF1_MASKED_LM),
        "tf1",
    ),
    "brightmart/albert_zh albert_tiny": PublishedModel(
        {
            **_GOOGLE,
            **_NO_DROPOUT,
            **_sizes(4, 312, 12),
            "embedding_size": 128,
            "ln_type": "postln",
        },
        [
            "bert/embeddings/word_embeddings_2",
            *tf1_body(layer="layer_shared"),
            *TF1_MASKED_LM,
            *TF1_NEXT_SENTENCE,
        ],
        {**_TF1, **_NO_DROPOUT, **_sizes(4, 312, 12), "num_hidden_groups": 1},
        sorted(tf1_albert(0, maps=False) + TF1_MASKED_LM + TF1_NEXT_SENTENCE),
        "tf1",
    ),
    "voidful/albert_chinese_base": PublishedModel(
        _VOIDFUL,
        albert("albert.") + albert_masked_lm(),
        {
            "hidden_act": "relu",
            "hidden_dropout_prob": 0,
            "attention_probs_dropout_prob": 0,
            "embedding_size": 128,
            "num_hidden_groups": 1,
        },
        sorted(tf1_albert(0) + TF1_MASKED_LM),
    ),
    "junnyu/roformer_chinese_base": PublishedModel(
        _ROFORMER,
        [
            *body("roformer.", positions=False, pooler=False),
            "roformer.encoder.embed_positions.weight",
            *masked_lm(),
        ],
        {"position_encoding": "rotary", "vocab_size": 50000, "max_position_embeddings": 1536},
        sorted(tf1_body(positions=False, pooler=False) + TF1_MASKED_LM),
    ),
    "junnyu/roformer_chinese_char_base": PublishedModel(
        {**_ROFORMER, "vocab_size": 12000, "max_position_embeddings": 512},
        body("roformer.", positions=False, pooler=False) + masked_lm(),
        {"position_encoding": "rotary", "vocab_size": 12000},
        sorted(tf1_body(positions=False, pooler=False) + TF1_MASKED_LM),
    ),
    "shibing624/text2vec-base-chinese": PublishedModel(
        {**_BERT, "architectures": ["BertModel"], "_name_or_path": "hfl/chinese-macbert-base"},
        body(),
        {},
        sorted(tf1_body()),
    ),
}
# Further prefixes of a whole model and of its heads, as wrappers make them.
PREFIXES = {
    "Lightning": ("model.bert.", "model."),
    "Lightning, of AutoModel": ("model.", "model."),
    "torch.compile": ("_orig_mod.bert.", "_orig_mod."),
    "torch.compile of DistributedDataParallel": ("module._orig_mod.bert.", "module._orig_mod."),
    "FSDP": ("_fsdp_wrapped_module.bert._fsdp_wrapped_module.", "_fsdp_wrapped_module."),
    "SentenceTransformer": ("0.auto_model.", ""),
    "a class of one's own": ("net.encoder.", "net."),
}
# Configurations that are refused: (values, what the line says).
REFUSED = {
    "dbiir/UER-py bert/tiny_config.json": (
        {
            "emb_size": 128,
            "feedforward_size": 512,
            "hidden_size": 128,
            "hidden_act": "gelu",
            "heads_num": 2,
            "layers_num": 2,
            "max_seq_length": 512,
            "dropout": 0.1,
            "data_processor": "bert",
            "embedding": ["word", "pos", "seg"],
            "encoder": "transformer",
            "mask": "fully_visible",
            "target": ["mlm", "sp"],
            "tie_weights": True,
        },
        "this is the form of UER-py.*scripts/convert_bert_from_uer_to_huggingface.py",
    ),
    "dbiir/UER-py sbert": (
        {"stream_0": {"emb_size": 8, "heads_num": 2}, "encoder": "dual", "pooling": "first"},
        "this is the form of UER-py",
    ),
    "PaddleNLP's model_config.json": (
        {"init_args": [{"vocab_size": 21128, "hidden_size": 768}], "init_class": "NeZhaModel"},
        "init_class 'NeZhaModel': this is PaddleNLP's form.*model_state.pdparams",
    ),
    "brightmart/albert_zh albert_xxlarge": (
        {**_GOOGLE, **_sizes(12, 4096), "embedding_size": 128, "ln_type": "preln"},
        "ln_type 'preln'.* normalizes before its parts.*Google's of that size",
    ),
    "a RoBERTa": ({**_BERT, "model_type": "roberta"}, "model_type 'roberta' is not one of nezha"),
}
