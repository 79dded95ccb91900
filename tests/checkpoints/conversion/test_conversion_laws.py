"""Laws of names and layouts, of any small model: one name each, the same bits there and back."""

import dataclasses
import json

import keras
import laws
import numpy as np
import pytest
from checkpoint_models import (
    CLASSIFICATION,
    TAGGING,
    assert_equal,
    config_of,
    convert,
    weights_in,
    weights_like,
    write_model,
)
from hugging_face_peer import spelt
from hypothesis import given
from hypothesis import strategies as st
from published_models import TF1_MASKED_LM, TF1_NEXT_SENTENCE, tf1_body

from nezha_tf import NezhaConfig, checkpoints
from nezha_tf.checkpoints.kinds import kinds
from nezha_tf.checkpoints.name_table import hugging_face_name, tf1_name_of, tf1_names
from nezha_tf.config import POSITION_ENCODINGS
from nezha_tf.util.errors import UserError

TASKS = {"classification": CLASSIFICATION, "tagging": TAGGING}
TASKS["crf_tagging"] = {**TAGGING, "crf": True}


@st.composite
def models(draw):
    """Returns (a generator of its weights, kind, configuration, labels)."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    config = config_of(
        rng,
        num_hidden_layers=draw(st.integers(1, 3)),
        position_encoding=draw(st.sampled_from(list(POSITION_ENCODINGS))),
        type_vocab_size=draw(st.integers(1, 6)),
    )
    kind = draw(st.sampled_from(list(kinds())))
    if kind == "replaced_tokens":  # has a generator of a quarter of the size
        sizes = {"num_attention_heads": 4, "hidden_size": 16, "intermediate_size": 12}
        config = dataclasses.replace(config, **sizes)
    return rng, kind, config


def names_of_bert(kind, config):
    """Returns the names that the originals' programs give the weights of a model."""
    is_absolute, layers = config.position_encoding == "absolute", range(config.num_hidden_layers)
    names = {n for i in layers for n in tf1_body(is_absolute, pooler=False, layer=f"layer_{i}")}
    if kind in ("pretraining", "masked_lm", "permutation", "replaced_tokens"):
        names |= set(TF1_MASKED_LM)
    if kind in ("pretraining", "permutation", "replaced_tokens"):
        names |= set(TF1_NEXT_SENTENCE)
    head = ("output_weights", "output_bias")
    names |= {f"cls/squad/{name}" for name in head if kind == "reading_comprehension"}
    return sorted(names | set(head if kind in (*TASKS, "multiple_choice") else ()))


OURS_ALONE = (
    "bert/encoder/relative_position/",
    "crf/",
    "query_stream/",
    "generator/",
    "discriminator_predictions/",
)


@laws.examples(5)
@given(models())
def test_weights_have_the_names_of_bert_and_are_loaded_as_they_were_saved(tmp_path, values):
    rng, kind, config = values
    model = kinds()[kind].model(config, 3)
    names = tf1_names(model)
    assert len(names) == len({id(variable) for variable in model.weights}) == len(model.weights)
    known = [name for name in names if not name.startswith((*OURS_ALONE, "bert/pooler/"))]
    assert sorted(known) == names_of_bert(kind, config)
    for name in names:
        theirs = hugging_face_name(name)
        if name.startswith(OURS_ALONE):
            assert theirs is None
            continue
        if not name.startswith(("output_", "cls/squad/")):
            assert spelt(name, old=False) in (theirs, f"bert.{theirs}")
        for prefix in ("", "bert.", "nezha.", "roformer."):
            assert tf1_name_of(prefix + theirs) == name
    # Any bits: small numbers, negative zero, infinity, none.
    for variable in model.weights:
        bits = rng.integers(0, 2**32, variable.shape, np.uint32)
        variable.assign(bits.view(np.float32))
    path = tmp_path / "model.ckpt-1"
    checkpoints.save_tf1_checkpoint(model, path)
    keras.utils.set_random_seed(1)
    other = kinds()[kind].model(config, 3)
    assert checkpoints.load_tf1_checkpoint(other, path) == ([], [], "")
    for variable, again in zip(model.weights, other.weights, strict=True):
        found, wanted = (v.numpy().view(np.uint32) for v in (again, variable))
        np.testing.assert_array_equal(found, wanted, variable.path)
    # What is to be used must be finite.
    if all(np.isfinite(variable.numpy()).all() for variable in model.weights):
        assert checkpoints.load(other, path) == ([], [], "")
    else:
        with pytest.raises(UserError, match="holds NaN or infinity"):
            checkpoints.load(other, path)


@pytest.mark.parametrize("layout", ("tf1", "hugging_face"))
@laws.examples(2)
@given(values=models())
def test_models_come_back_bit_by_bit(tmp_path_factory, layout, values):
    """From the layouts that have their like; the others refuse them and leave nothing."""
    rng, kind, config = values
    folder = tmp_path_factory.mktemp("models")
    weights = weights_like(rng, kind, config)
    write_model(folder / "run", config, weights, TASKS.get(kind))
    # TF1's programs have no rotary positions, and RoFormer in transformers no pooler.
    without = ("learned_relative", "rotary")
    ours_alone = ("crf_tagging", "permutation", "replaced_tokens")
    if config.position_encoding in without or kind in ours_alone:
        with pytest.raises(UserError, match="counterpart in"):
            convert(folder / "run", folder / "there", layout)
        assert not (folder / "there").exists()
        layout = "nezha_tf"
    convert(folder / "run", folder / "there", layout)
    convert(folder / "there", folder / "back", "nezha_tf")
    assert_equal(weights_in(folder / "back" / "model.ckpt-0"), weights)
    assert NezhaConfig.from_json_file(folder / "back" / "bert_config.json") == config
    if kind in TASKS:
        assert json.loads((folder / "back" / "task.json").read_text()) == TASKS[kind]
