"""The table of checkpoint names: a variable's name in each layout, for all directions.

Our name is the path of a Keras variable below its model. `{i}` is the number of a layer, or of a
group of layers that share their weights (ALBERT). A row that ends in a separator is for a layer
with several variables; other rows are for one variable.
"""

import re

from nezha_tf.config import model_types
from nezha_tf.modeling.lora import is_adapter

# The name of a moving average is its weight's name, a slash and this.
AVERAGE_SUFFIX = "ExponentialMovingAverage"
_TF1_LAYER, _HUGGING_FACE_LAYER = "bert/encoder/layer_{i}", "encoder.layer.{i}"
# Where ALBERT's programs keep the weights of a group of layers.
_TF1_GROUP = "bert/encoder/transformer/group_{i}/inner_group_0"
_HUGGING_FACE_GROUP = "encoder.albert_layer_groups.{i}.albert_layers.0"
# (our name, TF1's name, Hugging Face's name without the model's prefix); None: no such variable.
# For the head of a new task, append a row.
ROWS = [
    *(
        (f"embeddings/{name}", f"bert/embeddings/{name}", f"embeddings.{name}.weight")
        for name in ("word_embeddings", "token_type_embeddings")
    ),
    (
        "positions/position_embeddings",
        "bert/embeddings/position_embeddings",
        "embeddings.position_embeddings.weight",
    ),
    # ERNIE's table of kinds of tasks, of which a reader adds row 0 to the segments.
    (None, "bert/embeddings/task_type_embeddings", "embeddings.task_type_embeddings.weight"),
    ("embeddings/LayerNorm/", "bert/embeddings/LayerNorm/", "embeddings.LayerNorm."),
    # The originals lack these, because their relative positions are untrained.
    ("positions/keys", "bert/encoder/relative_position/keys", None),
    ("positions/values", "bert/encoder/relative_position/values", None),
    # The weights of any other position encoding.
    ("positions/", "bert/encoder/positions/", None),
    *(
        (f"layer_{{i}}/{ours}", f"{_TF1_LAYER}/{tf1}", f"{_HUGGING_FACE_LAYER}.{hugging_face}")
        for ours, tf1, hugging_face in (
            ("attention/query/", "attention/self/query/", "attention.self.query."),
            ("attention/key/", "attention/self/key/", "attention.self.key."),
            ("attention/value/", "attention/self/value/", "attention.self.value."),
            ("attention/output/", "attention/output/dense/", "attention.output.dense."),
            (
                "attention_residual/LayerNorm/",
                "attention/output/LayerNorm/",
                "attention.output.LayerNorm.",
            ),
            ("feed_forward/intermediate/", "intermediate/dense/", "intermediate.dense."),
            ("feed_forward/output/", "output/dense/", "output.dense."),
            ("feed_forward_residual/LayerNorm/", "output/LayerNorm/", "output.LayerNorm."),
        )
    ),
    # A layer of its own between embeddings and layers, which have these names in ALBERT's programs.
    (
        "embeddings/embedding_hidden_mapping_in/",
        "bert/encoder/embedding_hidden_mapping_in/",
        "encoder.embedding_hidden_mapping_in.",
    ),
    *(
        (f"group_{{i}}/{ours}", f"{_TF1_GROUP}/{tf1}", f"{_HUGGING_FACE_GROUP}.{hugging_face}")
        for ours, tf1, hugging_face in (
            ("attention/query/", "attention_1/self/query/", "attention.query."),
            ("attention/key/", "attention_1/self/key/", "attention.key."),
            ("attention/value/", "attention_1/self/value/", "attention.value."),
            ("attention/output/", "attention_1/output/dense/", "attention.dense."),
            ("attention_residual/LayerNorm/", "LayerNorm/", "attention.LayerNorm."),
            ("feed_forward/intermediate/", "ffn_1/intermediate/dense/", "ffn."),
            ("feed_forward/output/", "ffn_1/intermediate/output/dense/", "ffn_output."),
            ("feed_forward_residual/LayerNorm/", "LayerNorm_1/", "full_layer_layer_norm."),
        )
    ),
    # What the originals do not have: gated feed-forward layers, and a norm after the last layer.
    ("layer_{i}/feed_forward/linear/", "bert/encoder/layer_{i}/linear/dense/", None),
    ("group_{i}/feed_forward/linear/", f"{_TF1_GROUP}/ffn_1/linear/dense/", None),
    ("final_LayerNorm/", "bert/encoder/final_LayerNorm/", None),
    ("pooler/", "bert/pooler/dense/", "pooler.dense."),
    # No other program mixes layers.
    ("layer_mix/", "layer_mix/", None),
    # The query stream of `NezhaForPermutationLM`.
    ("query_embedding", "query_stream/embedding", None),
    *(
        (
            f"masked_lm/{ours}/",
            f"cls/predictions/transform/{theirs}/",
            f"cls.predictions.transform.{theirs}.",
        )
        for ours, theirs in (("transform", "dense"), ("LayerNorm", "LayerNorm"))
    ),
    ("masked_lm/output_bias", "cls/predictions/output_bias", "cls.predictions.bias"),
    # The bias above, in files that have it only under this name.
    (None, "cls/predictions/output_bias", "cls.predictions.decoder.bias"),
    # Files repeat the word table here; if it is another table, the model is not one of ours.
    (None, "cls/predictions/decoder/kernel", "cls.predictions.decoder.weight"),
    (
        "next_sentence/output_weights",
        "cls/seq_relationship/output_weights",
        "cls.seq_relationship.weight",
    ),
    ("next_sentence/output_bias", "cls/seq_relationship/output_bias", "cls.seq_relationship.bias"),
    # The parts of ELECTRA beside the encoder.
    *(
        (f"generator/{kind}_{{i}}/{ours}", f"generator/{kind}_{{i}}/{tf1}", None)
        for kind in ("layer", "group")
        for ours, tf1 in (
            ("attention_residual/LayerNorm/", "attention/LayerNorm/"),
            ("feed_forward/intermediate/", "intermediate/"),
            ("feed_forward/linear/", "linear/"),
            ("feed_forward/output/", "output/"),
            ("feed_forward_residual/LayerNorm/", "LayerNorm/"),
        )
    ),
    ("generator/", "generator/", None),
    ("discriminator_predictions/", "discriminator_predictions/", None),
    ("classifier/output_weights", "output_weights", "classifier.weight"),
    ("classifier/output_bias", "output_bias", "classifier.bias"),
    ("span/output_weights", "cls/squad/output_weights", "qa_outputs.weight"),
    ("span/output_bias", "cls/squad/output_bias", "qa_outputs.bias"),
    ("crf/start_transitions", "crf/start_transitions", None),
    ("crf/transitions", "crf/transitions", None),
    ("crf/end_transitions", "crf/end_transitions", None),
]
# An RMSNorm stands where a LayerNorm would, and no other program has it.
ROWS[:0] = [
    (ours.replace("LayerNorm", "RMSNorm"), tf1.replace("LayerNorm", "RMSNorm"), None)
    for ours, tf1, _ in ROWS
    if ours and "LayerNorm" in ours
]
# What a model of Hugging Face calls otherwise: {model_type: [(TF1's name, its name)]}; what only
# one of its classes has, stands under the name of the class.
OTHER_NAMES = {
    "albert": [
        ("bert/pooler/dense/", "pooler."),
        ("cls/predictions/transform/dense/", "predictions.dense."),
        ("cls/predictions/transform/LayerNorm/", "predictions.LayerNorm."),
        ("cls/predictions/output_bias", "predictions.bias"),
        ("cls/predictions/output_bias", "predictions.decoder.bias"),
        ("cls/predictions/decoder/kernel", "predictions.decoder.weight"),
        ("cls/seq_relationship/output_weights", "sop_classifier.classifier.weight"),
        ("cls/seq_relationship/output_bias", "sop_classifier.classifier.bias"),
    ],
    "roformer": [("bert/encoder/embedding_hidden_mapping_in/", "embeddings_project.")],
    "electra": [
        ("bert/encoder/embedding_hidden_mapping_in/", "embeddings_project."),
        ("cls/predictions/transform/dense/", "generator_predictions.dense."),
        ("cls/predictions/transform/LayerNorm/", "generator_predictions.LayerNorm."),
        ("cls/predictions/output_bias", "generator_lm_head.bias"),
        ("cls/predictions/decoder/kernel", "generator_lm_head.weight"),
        ("discriminator_predictions/dense/", "discriminator_predictions.dense."),
        ("discriminator_predictions/dense_1/", "discriminator_predictions.dense_prediction."),
    ],
    "ElectraForSequenceClassification": [
        ("bert/pooler/dense/", "classifier.dense."),
        ("output_weights", "classifier.out_proj.weight"),
        ("output_bias", "classifier.out_proj.bias"),
    ],
    "ElectraForMultipleChoice": [("bert/pooler/dense/", "sequence_summary.summary.")],
}
# The names of layers and groups, before and after their numbers are replaced.
_OURS = re.compile(r"(?<![^/])(layer|group)_(\d+)(?![^/])")
_NUMBER_IN_TF1 = r"(?<=/layer_)\d+|(?<=/group_)\d+"
_NUMBER_IN_HUGGING_FACE = r"(?<=^encoder\.layer\.)\d+|(?<=^encoder\.albert_layer_groups\.)\d+"
# A layer's variables: Hugging Face's name to TF1's. Where two of Hugging Face's names mean one of
# TF1's, files are written with the last one.
_DENSE_PARTS = {"weight": "kernel", "bias": "bias"}
_NORM_PARTS = {"gamma": "gamma", "beta": "beta", "weight": "gamma", "bias": "beta"}


def tf1_name(path):
    """Returns the TF1 name of a Keras variable's path (`KeyError`: no row).

    The path has the names of the model and of models around it, then a path of the table.
    """
    parts = path.split("/")
    for start in range(1, len(parts)):
        below_model = "/".join(parts[start:])
        layer = _OURS.search(below_model)
        number = layer[2] if layer else ""
        below_model = _OURS.sub(r"\1_{i}", below_model, count=1)
        for ours, theirs, _ in ROWS:
            if ours and _covers(ours, below_model):
                return (theirs + below_model[len(ours) :]).replace("{i}", number)
    raise KeyError(f"no checkpoint name for the variable {path}")


def tf1_names(model):
    """Returns {TF1 name: Keras variable} for the weights of a model, in their order.

    Adapters are not among them: no other program has them, and what they change stands there.
    """
    weights = (variable for variable in model.weights if not is_adapter(variable))
    return {tf1_name(variable.path): variable for variable in weights}


def tf1_name_of(name, model_type=None):
    """Returns the TF1 name of a weight of Hugging Face's BERT, Nezha, RoFormer, ALBERT or ELECTRA.

    Weights whose TF1 names end in `/kernel` are transposed: PyTorch's matrices are [out, in]. The
    name itself is returned if the originals have no such weight.

    Args:
      name: the name in the file, with or without the model's prefix (`bert.`), and with PyTorch's
        `weight` and `bias` or the older `gamma` and `beta` of a LayerNorm.
      model_type: see `model_type_of`; some names mean something else in other models.
    """
    prefix, _, below_model = name.partition(".")
    known = model_types()
    classes = known[model_type][1].name if model_type in known else None
    others = (
        row
        for key, rows in OTHER_NAMES.items()
        if key in known or (classes and key.startswith(classes))
        for row in rows
    )
    pairs = ((tf1, theirs) for tf1, theirs in (*(row[1:] for row in ROWS), *others) if theirs)
    rows = ((theirs, tf1, _parts_of(theirs)) for tf1, theirs in pairs)
    return _renamed(below_model if prefix in known else name, rows, _NUMBER_IN_HUGGING_FACE) or name


def model_type_of(names):
    """Returns the kind of model whose prefix the names of Hugging Face's weights have, or None."""
    prefixes = {name.partition(".")[0] for name in names}
    return next(filter(prefixes.__contains__, model_types()), None)


def hugging_face_name(name, model_type=None, class_name=None):
    """Returns the name of a weight in Hugging Face's models, or None if they lack it.

    It has no prefix of the model (`bert.`), which models with heads put before the encoder's names.
    The kind of model, a key of `config.model_types()`, and its class matter where models differ
    (`OTHER_NAMES`). If TF1's name ends in `/kernel`, PyTorch's matrix is the transpose.
    """
    others = (*OTHER_NAMES.get(class_name, ()), *OTHER_NAMES.get(model_type, ()))
    pairs = ((tf1, theirs) for tf1, theirs in (*others, *(row[1:] for row in ROWS)) if theirs)
    rows = (
        (tf1, theirs, {ours: part for part, ours in _parts_of(theirs).items()})
        for tf1, theirs in pairs
    )
    return _renamed(name, rows, _NUMBER_IN_TF1)


def _renamed(name, rows, number_pattern):
    """Returns a weight's name by the first row (name, other name, {part: other part}), or None."""
    number = re.search(number_pattern, name)
    name = re.sub(number_pattern, "{i}", name)
    for start, other, parts in rows:
        part = name[len(start) :]
        if _covers(start, name) and (not part or part in parts):
            return (other + parts.get(part, "")).replace("{i}", number[0] if number else "")
    return None


def _covers(row, name):
    return name == row or (row.endswith(("/", ".")) and name.startswith(row))


def _parts_of(row):
    return _NORM_PARTS if row.endswith(("LayerNorm.", "layer_norm.")) else _DENSE_PARTS
