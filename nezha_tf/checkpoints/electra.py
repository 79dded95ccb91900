"""Reads TF1 checkpoints of ELECTRA by the names of BERT: each holds two models."""

from nezha_tf.checkpoints.views import View

_MAPPING = "bert/encoder/embedding_hidden_mapping_in/"
# By model: the beginnings of its names, and of BERT's.
_DISCRIMINATOR = {
    "electra/embeddings_project/": _MAPPING,
    "electra/": "bert/",
    "discriminator_predictions/": "discriminator_predictions/",
}
_HEAD_OF_GENERATOR = {
    "generator_predictions/output_bias": "cls/predictions/output_bias",
    "generator_predictions/": "cls/predictions/transform/",
}
_GENERATOR = {
    "generator/embeddings_project/": _MAPPING,
    "generator/": "bert/",
    **_HEAD_OF_GENERATOR,
}
# The generator has no such names if it reads the discriminator's embeddings, as in all published
# models (`untied_generator_embeddings` of ELECTRA's configure_pretraining.py).
_SHARED = {"electra/embeddings/": "bert/embeddings/"}
_OF_BOTH = (*_DISCRIMINATOR, *_GENERATOR)
_WORDS = "electra/embeddings/word_embeddings"
_QUERY = "bert/encoder/layer_0/attention/self/query/kernel"


class ElectraReader(View):
    """Reads one model of a checkpoint of ELECTRA."""

    def __init__(self, reader, table):
        """`table` has the beginnings of names, and of BERT's; the first that a name has counts."""
        names, self.others = {}, []  # the others: names that only the other model has
        for name in reader.get_variable_to_shape_map():
            start = next(filter(name.startswith, table), None)
            if start:
                names[table[start] + name.removeprefix(start)] = name
            elif name.startswith(_OF_BOTH):
                self.others.append(name)
            else:
                names[name] = name  # such as the step
        super().__init__(reader, names)
        self.width = self.get_variable_to_shape_map().get(_QUERY, [0])[-1]


def is_electra(names):
    """Whether these are the names of a TF1 checkpoint of ELECTRA."""
    return _WORDS in names


def models_of(reader):
    """Returns the `ElectraReader`s of a checkpoint's models, the discriminator first.

    A masked LM that ELECTRA's program trained without a discriminator is one model.
    """
    names = reader.get_variable_to_shape_map()
    if not any(name.startswith("generator/encoder/") for name in names):
        return [ElectraReader(reader, {**_DISCRIMINATOR, **_HEAD_OF_GENERATOR})]
    has_own = any(name.startswith("generator/embeddings/") for name in names)
    generator = _GENERATOR if has_own else {**_GENERATOR, **_SHARED}
    return [ElectraReader(reader, _DISCRIMINATOR), ElectraReader(reader, generator)]


def view(reader, config=None, heads=()):
    """Returns a reader by BERT's names of one of the models of ELECTRA's checkpoint.

    It is the model that is as wide as the `NezhaConfig` says; of two such models, the one that has
    the heads (the beginnings of their TF1 names); else the discriminator. Other checkpoints stay
    as they are.
    """
    if not is_electra(reader.get_variable_to_shape_map()):
        return reader

    def fits(model):
        has_heads = any(n.startswith(tuple(heads)) for n in model.get_variable_to_shape_map())
        return config is not None and model.width == config.hidden_size, has_heads

    return max(models_of(reader), key=fits)


def configuration(model):
    """Returns the keys of a `config.json` for an `ElectraReader`; ELECTRA's programs write none.

    All sizes are those of the weights but the number of heads: in ELECTRA's programs each head is
    of 64 (`get_generator_config` of run_pretraining.py, and all published models).
    """
    shapes = model.get_variable_to_shape_map()
    words = shapes["bert/embeddings/word_embeddings"]
    layers = {n.split("/")[2] for n in shapes if n.startswith("bert/encoder/layer_")}
    return {
        "model_type": "electra",
        "vocab_size": words[0],
        "embedding_size": words[1],
        "hidden_size": model.width,
        "num_hidden_layers": len(layers),
        "num_attention_heads": max(1, model.width // 64),
        "intermediate_size": shapes["bert/encoder/layer_0/intermediate/dense/bias"][0],
        "max_position_embeddings": shapes["bert/embeddings/position_embeddings"][0],
        "type_vocab_size": shapes["bert/embeddings/token_type_embeddings"][0],
    }
