"""Published models with heads, and ELECTRA: the keys of their `config.json`, and what opens.

The keys and values are facts of the published files; `folder_of` writes such a model with the
sizes of a golden model, and with the names that transformers gives to the weights of its class.
"""

import json
from typing import NamedTuple

import numpy as np
from conftest import GOLDEN
from safetensors.numpy import load_file, save_file

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
    """Writes a model of a row with the sizes and the body of transformers' golden model.

    Returns:
      {name: array} of its weights.
    """
    kind, is_narrow = row.config["model_type"], row.config.get("embedding_size") == 128
    is_narrow |= row.opens == "NezhaForMaskedLM"  # a generator is narrower than its embeddings
    name = "electra_discriminator" if kind == "electra" and not is_narrow else kind
    peer = GOLDEN / f"hugging_face_{name}"
    sizes = json.loads((peer / "config.json").read_text())
    config = {
        key: sizes.get(key, value) if type(value) is int else value
        for key, value in row.config.items()
    }
    if row.architecture:
        config["architectures"] = [kind.capitalize() + row.architecture]
    if row.labels:
        config["id2label"] = {str(number): label for number, label in enumerate(row.labels)}
        config["label2id"] = {label: number for number, label in enumerate(row.labels)}
    (folder / "config.json").write_text(json.dumps(config, ensure_ascii=False))
    tokens = "[PAD] [UNK] [CLS] [SEP] [MASK] 李 白 在 长 安 。 月"
    (folder / "vocab.txt").write_text(tokens.replace(" ", "\n"))
    has_pooler = kind == "bert" and row.opens == CLASSIFIER
    weights = {
        name: value
        for name, value in load_file(peer / "model.safetensors").items()
        if name.startswith(f"{kind}.") and (has_pooler or ".pooler." not in name)
    }
    rng, hidden = np.random.default_rng(0), config["hidden_size"]
    for name, shape in _head(kind, row, hidden, config.get("embedding_size")).items():
        weights[name] = rng.normal(size=shape).astype("float32")
    save_file(weights, folder / "model.safetensors")
    return weights


def _head(kind, row, hidden, width):
    """Returns {name: shape} of the head of transformers' class."""
    labels = len(row.labels or "ab")
    others = {}
    if row.opens == "NezhaForMaskedLM":
        layers = {"generator_predictions.dense": (width, hidden)}
        others = {f"generator_predictions.LayerNorm.{n}": (width,) for n in ("weight", "bias")}
        others["generator_lm_head.bias"] = (30,)
    elif row.opens == "NezhaDiscriminator":
        name = "discriminator_predictions.dense"
        layers = {name: (hidden, hidden), f"{name}_prediction": (1, hidden)}
    elif row.opens == READER:
        layers = {"qa_outputs": (2, hidden)}
    elif row.opens == CLASSIFIER and kind == "electra":
        layers = {"classifier.dense": (hidden, hidden), "classifier.out_proj": (labels, hidden)}
    else:
        layers = {"classifier": (labels, hidden)}
    shapes = {f"{name}.weight": shape for name, shape in layers.items()}
    return {**shapes, **{f"{name}.bias": shape[:1] for name, shape in layers.items()}, **others}
