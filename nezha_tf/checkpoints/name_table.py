"""THE table of checkpoint names: what a variable is called in each layout.

Ours is the path of a Keras variable below its model. `{i}` stands for the number of a layer.
"""

# (ours, TF1)
_ROWS = (
    ("embeddings/word_embeddings", "bert/embeddings/word_embeddings"),
    ("embeddings/token_type_embeddings", "bert/embeddings/token_type_embeddings"),
    ("embeddings/position_embeddings", "bert/embeddings/position_embeddings"),
    ("embeddings/LayerNorm/", "bert/embeddings/LayerNorm/"),
    # Not in the originals, whose relative positions are untrained.
    ("relative_position/keys", "bert/encoder/relative_position/keys"),
    ("relative_position/values", "bert/encoder/relative_position/values"),
    ("layer_{i}/attention/query/", "bert/encoder/layer_{i}/attention/self/query/"),
    ("layer_{i}/attention/key/", "bert/encoder/layer_{i}/attention/self/key/"),
    ("layer_{i}/attention/value/", "bert/encoder/layer_{i}/attention/self/value/"),
    ("layer_{i}/attention/output/", "bert/encoder/layer_{i}/attention/output/dense/"),
    ("layer_{i}/attention/LayerNorm/", "bert/encoder/layer_{i}/attention/output/LayerNorm/"),
    ("layer_{i}/intermediate/", "bert/encoder/layer_{i}/intermediate/dense/"),
    ("layer_{i}/output/", "bert/encoder/layer_{i}/output/dense/"),
    ("layer_{i}/LayerNorm/", "bert/encoder/layer_{i}/output/LayerNorm/"),
    ("pooler/", "bert/pooler/dense/"),
    ("masked_lm/transform/", "cls/predictions/transform/dense/"),
    ("masked_lm/LayerNorm/", "cls/predictions/transform/LayerNorm/"),
    ("masked_lm/output_bias", "cls/predictions/output_bias"),
    ("next_sentence/output_weights", "cls/seq_relationship/output_weights"),
    ("next_sentence/output_bias", "cls/seq_relationship/output_bias"),
    ("classifier/output_weights", "output_weights"),
    ("classifier/output_bias", "output_bias"),
    ("span/output_weights", "cls/squad/output_weights"),
    ("span/output_bias", "cls/squad/output_bias"),
    ("crf/start_transitions", "crf/start_transitions"),
    ("crf/transitions", "crf/transitions"),
    ("crf/end_transitions", "crf/end_transitions"),
)
# Hugging Face spells TF1's names in PyTorch's way (`tf1_name_of`), but for these.
_HUGGING_FACE_HEADS = {
    "cls.predictions.bias": "cls/predictions/output_bias",
    # The same tensor, where a file holds it under this name alone.
    "cls.predictions.decoder.bias": "cls/predictions/output_bias",
    "cls.seq_relationship.weight": "cls/seq_relationship/output_weights",
    "cls.seq_relationship.bias": "cls/seq_relationship/output_bias",
    "classifier.weight": "output_weights",
    "classifier.bias": "output_bias",
    "qa_outputs.weight": "cls/squad/output_weights",
    "qa_outputs.bias": "cls/squad/output_bias",
}


def tf1_name(path):
    """Returns the TF1 name of a Keras variable's path.

    Args:
      path: as in `variable.path`: the name of the model, of what it is built in, too, and then
        a path of the table.

    Raises:
      KeyError: the table has no row for it.
    """
    parts = path.split("/")
    for start in range(1, len(parts)):
        number = parts[start].removeprefix("layer_") if parts[start].startswith("layer_") else ""
        below_model = "/".join(["layer_{i}" if number else parts[start], *parts[start + 1 :]])
        for ours, theirs in _ROWS:
            if ours == below_model or (ours.endswith("/") and below_model.startswith(ours)):
                return (theirs + below_model[len(ours) :]).replace("{i}", number)
    raise KeyError(f"no checkpoint name for the variable {path}")


def tf1_names(model):
    """Returns {TF1 name: Keras variable} for the weights of a model, in their order."""
    return {tf1_name(variable.path): variable for variable in model.weights}


def tf1_name_of(name):
    """Returns the TF1 name of a weight of Hugging Face's BERT or Nezha.

    Those that end in `/kernel` are transposed: PyTorch's matrices are [out, in].

    Args:
      name: as in its file, with or without `bert.` or `nezha.` before the encoder's, and with
        PyTorch's `weight` and `bias` or the older `gamma` and `beta` of a LayerNorm.

    Returns:
      The TF1 name, or the name as it is where it is of no part that the originals have.
    """
    below_model = name.removeprefix("bert.").removeprefix("nezha.")
    if below_model in _HUGGING_FACE_HEADS:
        return _HUGGING_FACE_HEADS[below_model]
    path, _, part = below_model.rpartition(".")
    root = path.partition(".")[0]
    if root not in ("embeddings", "encoder", "pooler", "cls"):
        return name
    path = ("" if root == "cls" else "bert/") + path.replace(".", "/").replace("layer/", "layer_")
    if path.endswith("_embeddings") and part == "weight":
        return path
    is_norm = path.endswith("LayerNorm")
    parts = {"weight": "gamma", "bias": "beta"} if is_norm else {"weight": "kernel"}
    return f"{path}/{parts.get(part, part)}"
