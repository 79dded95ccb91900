"""Published models with heads, and ELECTRA: the keys of their `config.json`, and what opens.

The keys and values are facts of the published files; `folder_of` writes such a model with other
sizes, and with the names that transformers gives to the weights of its class.
"""

import json
from typing import NamedTuple

import numpy as np
from safetensors.numpy import save_file

BERT = {
    "model_type": "bert",
    "hidden_size": 768,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "intermediate_size": 3072,
    "hidden_act": "gelu",
    "layer_norm_eps": 1e-12,
    "max_position_embeddings": 512,
    "type_vocab_size": 2,
    "vocab_size": 21128,
    "attention_probs_dropout_prob": 0.1,
    "hidden_dropout_prob": 0.1,
    "initializer_range": 0.02,
}
# Keys that BERT's Chinese files have since Google's, which no program reads.
POOLER_KEYS = {
    "directionality": "bidi",
    "pooler_fc_size": 768,
    "pooler_num_attention_heads": 12,
    "pooler_num_fc_layers": 3,
    "pooler_size_per_head": 128,
    "pooler_type": "first_token_transform",
}
ELECTRA = {
    **BERT,
    "model_type": "electra",
    "embedding_size": 768,
    "pad_token_id": 0,
    "summary_activation": "gelu",
    "summary_last_dropout": 0.1,
    "summary_type": "first",
    "summary_use_proj": True,
}
LARGE = {"hidden_size": 1024, "intermediate_size": 4096, "num_attention_heads": 16}
LARGE |= {"num_hidden_layers": 24, "embedding_size": 1024}
SMALL = {"hidden_size": 256, "intermediate_size": 1024, "num_attention_heads": 4}
SMALL |= {"embedding_size": 128}
ALBERT_TINY = {
    **BERT,
    "model_type": "albert",
    "embedding_size": 128,
    "hidden_size": 312,
    "intermediate_size": 1248,
    "num_hidden_layers": 4,
    "inner_group_num": 1,
    "num_hidden_groups": 1,
    "classifier_dropout_prob": 0.1,
    "down_scale_factor": 1,
    "gap_size": 0,
    "net_structure_type": 0,
    "num_memory_blocks": 0,
}


def generator(width, changes=None):
    """Returns the keys of a generator: `get_generator_config` of ELECTRA's run_pretraining.py."""
    heads = max(1, width // 64)
    own = {"hidden_size": width, "intermediate_size": 4 * width}
    return {**ELECTRA, **(changes or {}), **own, "num_attention_heads": heads}


def bio(names, letters="BI"):
    """Returns tags of each name."""
    return [f"{letter}-{name}" for name in names.split() for letter in letters]


CLUENER = "address book company game government movie name organization position scene"
CKIP_NER = (
    "CARDINAL DATE EVENT FAC GPE LANGUAGE LAW LOC MONEY NORP ORDINAL ORG PERCENT PERSON PRODUCT "
    "QUANTITY TIME WORK_OF_ART"
)
# The first of some sixty parts of speech (docs/main/tag/pos.csv of ckip-transformers). One is
# spelt as a tag.
CKIP_POS = "A Caa Cab Cba Cbb D Da Dfa Dfb Di Dk DM I Na Nb Nc Ncd Nd VA VH DE SHI FW".split()
STARS = ["negative (stars 1, 2 and 3)", "positive (stars 4 and 5)"]
NEWS = [
    "mainland China politics",
    "Hong Kong - Macau politics",
    "International news",
    "financial news",
    "culture",
    "entertainment",
    "sports",
]


class Row(NamedTuple):
    """A published model.

    Attributes:
      name: where it lies.
      architecture: the end of the name of its class; None: its file names no class.
      config: dict of the keys of its file.
      opens: the name of our class.
      labels: list of the names in `id2label`, or None.
      refused: what the line of a program that needs tags says; "": no line.
    """

    name: str
    architecture: str | None
    config: dict
    opens: str
    labels: list | None = None
    refused: str = ""


TAGGER, CLASSIFIER = "NezhaForTokenClassification", "NezhaForSequenceClassification"
READER = "NezhaForQuestionAnswering"
ROWS = [
    Row("hfl/chinese-electra-base-discriminator", None, ELECTRA, "NezhaDiscriminator"),
    Row("hfl/chinese-electra-base-generator", None, generator(192), "NezhaForMaskedLM"),
    Row(
        "hfl/chinese-electra-large-discriminator", None, {**ELECTRA, **LARGE}, "NezhaDiscriminator"
    ),
    Row("hfl/chinese-electra-large-generator", None, generator(256, LARGE), "NezhaForMaskedLM"),
    Row(
        "hfl/chinese-electra-small-discriminator",
        "ForPreTraining",
        {**ELECTRA, **SMALL, "_num_labels": 2, "output_past": True},
        "NezhaDiscriminator",
    ),
    Row("hfl/chinese-electra-small-generator", None, generator(64, SMALL), "NezhaForMaskedLM"),
    Row(
        "hfl/chinese-electra-small-ex-discriminator",
        None,
        {**ELECTRA, **SMALL, "embedding_size": 256, "num_hidden_layers": 24},
        "NezhaDiscriminator",
    ),
    Row(
        "hfl/chinese-electra-small-ex-generator",
        None,
        generator(64, {"num_hidden_layers": 24, "embedding_size": 256}),
        "NezhaForMaskedLM",
    ),
    Row(
        "google/electra-base-discriminator",
        "ForPreTraining",
        {**ELECTRA, "vocab_size": 30522},
        "NezhaDiscriminator",
    ),
    Row(
        "google/electra-small-generator",
        "ForMaskedLM",
        {**ELECTRA, **SMALL, "vocab_size": 30522},
        "NezhaForMaskedLM",
    ),
    Row("a classifier of ELECTRA", "ForSequenceClassification", ELECTRA, CLASSIFIER, STARS),
    Row("a tagger of ELECTRA", "ForTokenClassification", ELECTRA, TAGGER, ["O", *bio("PER")]),
    Row("a reader of ELECTRA", "ForQuestionAnswering", {**ELECTRA, **SMALL}, READER),
    Row(
        "ckiplab/bert-base-chinese-ws",
        "ForTokenClassification",
        {**BERT, **POOLER_KEYS, "gradient_checkpointing": False},
        TAGGER,
        ["B", "I"],
    ),
    Row(
        "ckiplab/albert-tiny-chinese-ws", "ForTokenClassification", ALBERT_TINY, TAGGER, ["B", "I"]
    ),
    Row(
        "ckiplab/bert-base-chinese-pos",
        "ForTokenClassification",
        {**BERT, **POOLER_KEYS},
        TAGGER,
        CKIP_POS,
        "the label 'A' is no tag of entities .*; nezha_tf.load gives the scores",
    ),
    Row(
        "ckiplab/bert-base-chinese-ner",
        "ForTokenClassification",
        {**BERT, **POOLER_KEYS},
        TAGGER,
        ["O", *bio(CKIP_NER, "BIES")],
    ),
    Row(
        "uer/roberta-base-finetuned-cluener2020-chinese",
        "ForTokenClassification",
        BERT,
        TAGGER,
        ["[PAD]", "O", *bio(CLUENER)],
    ),
    Row("uer/roberta-base-chinese-extractive-qa", "ForQuestionAnswering", BERT, READER),
    Row(
        "uer/roberta-base-finetuned-jd-binary-chinese",
        "ForSequenceClassification",
        BERT,
        CLASSIFIER,
        STARS,
    ),
    Row(
        "uer/roberta-base-finetuned-chinanews-chinese",
        "ForSequenceClassification",
        BERT,
        CLASSIFIER,
        NEWS,
    ),
    Row(
        "luhua/chinese_pretrain_mrc_roberta_wwm_ext_large",
        "ForQuestionAnswering",
        {**BERT, **POOLER_KEYS, **LARGE, "embedding_size": 1024},
        READER,
    ),
    Row(
        "a tagger of hfl/rbt3 with labels of BERT-NER",
        "ForTokenClassification",
        {**BERT, **POOLER_KEYS, "num_hidden_layers": 3},
        TAGGER,
        [*bio("PER LOC"), "O", "X", "[CLS]", "[SEP]"],
    ),
    Row(
        "a tagger whose labels nobody named",
        "ForTokenClassification",
        BERT,
        TAGGER,
        None,
        "the label 'LABEL_0' is no tag of entities",
    ),
]


def folder_of(row, folder):
    """Writes the folder of a row, with small sizes and random weights.

    Returns:
      {name: array} of its weights.
    """
    config = _reduced(row.config)
    names = dict(enumerate(row.labels)) if row.labels else None
    number = len(row.labels or "ab")
    class_name = {"bert": "Bert", "albert": "Albert", "electra": "Electra"}[config["model_type"]]
    written = {**config, "vocab_size": 12}
    if row.architecture:
        written["architectures"] = [class_name + row.architecture]
    if names:
        written["id2label"] = {str(key): name for key, name in names.items()}
        written["label2id"] = {name: key for key, name in names.items()}
    (folder / "config.json").write_text(json.dumps(written, ensure_ascii=False))
    (folder / "vocab.txt").write_text(
        "\n".join("[PAD] [UNK] [CLS] [SEP] [MASK] 李 白 在 长 安 。 月".split())
    )
    rng = np.random.default_rng(0)
    weights = {
        name: rng.normal(size=shape, scale=0.3).astype("float32")
        for name, shape in _shapes(config, row, number).items()
    }
    save_file(weights, folder / "model.safetensors")
    return weights


def _reduced(config):
    """Returns the keys with sizes of a 64th, one layer and short positions."""
    heads = config["num_attention_heads"]
    hidden = max(heads, config["hidden_size"] // 64 // heads * heads)
    small = {**config, "hidden_size": hidden, "num_hidden_layers": 1, "max_position_embeddings": 16}
    small["intermediate_size"] = config["intermediate_size"] // 64
    if "embedding_size" in config:
        is_same = config["embedding_size"] == config["hidden_size"]
        small["embedding_size"] = hidden if is_same else max(1, config["embedding_size"] // 64)
    return small


def _shapes(config, row, number):
    """Returns {name: shape} of the weights of transformers' class."""
    kind, hidden = config["model_type"], config["hidden_size"]
    width = config.get("embedding_size", hidden)
    shapes = {
        "embeddings.word_embeddings.weight": (12, width),
        "embeddings.position_embeddings.weight": (16, width),
        "embeddings.token_type_embeddings.weight": (2, width),
        **_norm("embeddings.LayerNorm", width),
        **(_albert_layer if kind == "albert" else _layer)(hidden, config["intermediate_size"]),
    }
    if kind == "electra" and width != hidden:
        shapes |= _dense("embeddings_project", hidden, width)
    if kind == "albert":
        shapes |= _dense("encoder.embedding_hidden_mapping_in", hidden, width)
    if kind == "bert" and row.architecture == "ForSequenceClassification":
        shapes |= _dense("pooler.dense", hidden, hidden)
    shapes = {f"{kind}.{name}": shape for name, shape in shapes.items()}
    return {**shapes, **_head(kind, row, hidden, width, number)}


def _head(kind, row, hidden, width, number):
    if row.opens == "NezhaDiscriminator":
        first = _dense("discriminator_predictions.dense", hidden, hidden)
        return {**first, **_dense("discriminator_predictions.dense_prediction", 1, hidden)}
    if row.opens == "NezhaForMaskedLM":
        head = _dense("generator_predictions.dense", width, hidden)
        head |= _norm("generator_predictions.LayerNorm", width)
        return {**head, "generator_lm_head.bias": (12,)}
    if row.opens == READER:
        return _dense("qa_outputs", 2, hidden)
    if row.opens == CLASSIFIER and kind == "electra":
        first = _dense("classifier.dense", hidden, hidden)
        return {**first, **_dense("classifier.out_proj", number, hidden)}
    return _dense("classifier", number, hidden)


def _dense(name, rows, columns):
    return {f"{name}.weight": (rows, columns), f"{name}.bias": (rows,)}


def _norm(name, width):
    return {f"{name}.weight": (width,), f"{name}.bias": (width,)}


def _layer(hidden, inner):
    layer = "encoder.layer.0"
    shapes = {}
    for name in ("self.query", "self.key", "self.value", "output.dense"):
        shapes |= _dense(f"{layer}.attention.{name}", hidden, hidden)
    shapes |= _dense(f"{layer}.intermediate.dense", inner, hidden)
    shapes |= _dense(f"{layer}.output.dense", hidden, inner)
    for name in ("attention.output.LayerNorm", "output.LayerNorm"):
        shapes |= _norm(f"{layer}.{name}", hidden)
    return shapes


def _albert_layer(hidden, inner):
    layer = "encoder.albert_layer_groups.0.albert_layers.0"
    shapes = {}
    for name in ("query", "key", "value", "dense"):
        shapes |= _dense(f"{layer}.attention.{name}", hidden, hidden)
    shapes |= _dense(f"{layer}.ffn", inner, hidden) | _dense(f"{layer}.ffn_output", hidden, inner)
    for name in ("attention.LayerNorm", "full_layer_layer_norm"):
        shapes |= _norm(f"{layer}.{name}", hidden)
    return shapes
