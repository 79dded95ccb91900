"""Reads, writes and rejects `bert_config.json`."""

import json

import pytest
from conftest import GOLDEN

from nezha_tf import NezhaConfig
from nezha_tf.config import POSITION_ENCODINGS, note_on_defaults
from nezha_tf.util.errors import UserError


def test_files_of_the_originals():
    nezha = NezhaConfig.from_json_file(GOLDEN / "nezha_tiny" / "bert_config.json")
    bert = NezhaConfig.from_json_file(GOLDEN / "bert_tiny" / "bert_config.json")
    assert nezha.position_encoding == "functional_relative" and nezha.head_size == 8
    assert bert.position_encoding == "absolute" and bert.max_position_embeddings == 512


def test_keys_of_published_files_are_passed_over(tmp_path):
    path = tmp_path / "bert_config.json"
    values = {"vocab_size": 21128, "directionality": "bidi", "pooler_fc_size": 768}
    path.write_text(json.dumps(values))
    config = NezhaConfig.from_json_file(path)
    # As in the original, the default number of segments is 16.
    assert (config.type_vocab_size, config.position_encoding) == (16, "absolute")


def test_which_defaults_are_taken_is_told(tmp_path):
    path = tmp_path / "bert_config.json"
    path.write_text(json.dumps({"vocab_size": 9, "hidden_size": 24, "type_vocab_size": 2}))
    line = note_on_defaults(path, NezhaConfig.from_json_file(path))
    assert line.startswith(f"{path} lacks keys") and line.endswith("initializer_range 0.02")
    assert "hidden_act gelu, " in line and "hidden_size" not in line
    for name in ("nezha_tiny", "bert_tiny"):
        path = GOLDEN / name / "bert_config.json"
        assert note_on_defaults(path, NezhaConfig.from_json_file(path)) == ""


def test_a_byte_order_mark_is_no_part_of_the_file(tmp_path):
    path = tmp_path / "bert_config.json"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps({"vocab_size": 9}).encode())
    assert NezhaConfig.from_json_file(path).vocab_size == 9


def test_written_files_are_read_again(tmp_path):
    for encoding in POSITION_ENCODINGS:
        config = NezhaConfig(vocab_size=9, position_encoding=encoding)
        config.to_json_file(str(tmp_path / "config.json"))
        assert NezhaConfig.from_json_file(tmp_path / "config.json") == config


def test_the_switch_of_tf1_is_written_where_it_says_what_the_model_is():
    """It is also accepted as true for learned tables, as in our older files."""
    for encoding, said in (
        ("functional_relative", True),
        ("absolute", False),
        ("learned_relative", None),
        ("rotary", None),
    ):
        values = NezhaConfig(vocab_size=9, position_encoding=encoding).to_dict()
        assert values.get("use_relative_position") is said
    older = {"vocab_size": 9, "position_encoding": "learned_relative"}
    config = NezhaConfig.from_dict({**older, "use_relative_position": True})
    assert config == NezhaConfig.from_dict(older)


@pytest.mark.parametrize(
    "values, message",
    (
        ({}, "'vocab_size' is missing"),
        ({"hidden_size": 30, "num_attention_heads": 4}, "not a multiple"),
        ({"hiden_size": 30}, "'hiden_size'; is 'hidden_size' meant"),
        ({"hiddenSize": 30}, "'hiddenSize'; is 'hidden_size' meant"),
        ({"num_layers": 3}, "'num_layers'; is 'num_hidden_layers' meant"),
        ({"num_heads": 3}, "'num_heads'; is 'num_attention_heads' meant"),
        ({"hidden_dropout": 0.2}, "'hidden_dropout'; is 'hidden_dropout_prob' meant"),
        ({"relative_position": True}, "is 'use_relative_position' meant"),
        ({"initializer_range": float("nan")}, "initializer_range must be a finite number"),
        ({"layer_norm_eps": float("inf")}, "layer_norm_eps must be a finite number"),
        ({"hidden_dropout_prob": float("nan")}, "hidden_dropout_prob must be a finite number"),
        ({"hidden_act": "gelu_new"}, "hidden_act must be one of"),
        ({"num_hidden_layers": 0}, "num_hidden_layers must be a whole number"),
        ({"hidden_size": "768"}, "hidden_size must be a whole number"),
        ({"hidden_dropout_prob": 1.5}, "hidden_dropout_prob must be in"),
        ({"use_relative_position": False, "position_encoding": "learned_relative"}, "contradicts"),
        ({"position_encoding": "rotari"}, "position_encoding must be one of"),
        ({"embedding_size": 0}, "embedding_size must be a whole number"),
        ({"inner_group_num": 2}, "inner_group_num 2 is not supported, only 1"),
        ({"num_hidden_layers": 10**9, "hidden_size": 1, "num_attention_heads": 1}, "more than 10,"),
        ({"hidden_size": 12 * 10**11}, "more than 100,000,000,000 weights; the largest size is hi"),
        ({"vocab_size": 10**15}, "weights; the largest size is vocab_size 1000000000000000"),
        ({"embedding_size": 10**12}, "weights; the largest size is embedding_size"),
        ({"intermediate_size": 10**12}, "weights; the largest size is intermediate_size"),
        ({"max_position_embeddings": 10**12}, "weights; the largest size is max_position_emb"),
        ({"max_relative_position": 10**12}, "weights; the largest size is max_relative_position"),
        ({"type_vocab_size": 10**12}, "weights; the largest size is type_vocab_size"),
        ({"initializer_range": 1e300}, "initializer_range must be above 0 and at most 1"),
        ({"embeddings_size": 8}, "'embeddings_size'; is 'embedding_size' meant"),
    ),
)
def test_nonsense_is_refused_with_the_key(tmp_path, values, message):
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"vocab_size": 9, **values} if values else {}))
    with pytest.raises(UserError, match=message) as error:
        NezhaConfig.from_json_file(path)
    assert str(path) in str(error.value)


def test_files_of_hugging_face():
    nezha, bert = (
        NezhaConfig.from_json_file(GOLDEN / f"hugging_face_{kind}" / "config.json")
        for kind in ("nezha", "bert")
    )
    assert (nezha.position_encoding, bert.position_encoding) == ("functional_relative", "absolute")
    assert nezha.hidden_act == bert.hidden_act == "gelu_erf" and nezha.max_relative_position == 64
    short = {"model_type": "bert", "vocab_size": 9}
    # transformers' defaults differ from the originals'.
    assert NezhaConfig.from_dict(short).type_vocab_size == 2
    for theirs, ours in (("gelu_new", "gelu"), ("gelu_pytorch_tanh", "gelu"), ("relu", "relu")):
        assert NezhaConfig.from_dict({**short, "hidden_act": theirs}).hidden_act == ours


def test_keys_of_albert():
    """They are in no other model's file, and have transformers' defaults in its own file."""
    ours = {"embedding_size", "num_hidden_groups"}
    plain = NezhaConfig(vocab_size=9)
    assert not ours & set(plain.to_dict()) and not ours & set(plain.to_hugging_face())
    # RoFormer's files have one of the keys even where it says nothing new.
    roformer = {"model_type": "roformer", "vocab_size": 9, "hidden_size": 24}
    equal = NezhaConfig.from_dict({**roformer, "embedding_size": 24})
    assert equal == NezhaConfig.from_dict(roformer) and not equal.maps_embeddings
    narrow = NezhaConfig.from_dict({**roformer, "embedding_size": 8})
    assert narrow.maps_embeddings and narrow.to_hugging_face()["model_type"] == "roformer"
    albert = NezhaConfig.from_dict({"model_type": "albert", "vocab_size": 9})
    assert (albert.embedding_size, albert.num_hidden_groups, albert.hidden_size) == (128, 1, 4096)
    assert albert.position_encoding == "absolute" and albert.hidden_act == "gelu"
    written = albert.to_hugging_face()
    assert written["model_type"] == "albert" and written["hidden_act"] == "gelu_new"
    assert NezhaConfig.from_dict(written) == albert
    assert NezhaConfig.from_dict(albert.to_dict()) == albert


@pytest.mark.parametrize(
    "values, message",
    (
        ({"model_type": "roberta"}, "model_type 'roberta' is not one of nezha, bert"),
        ({"layer_norm_eps": 0}, "layer_norm_eps must be above 0"),
        ({"position_embedding_type": "relative_key"}, "position_embedding_type other than"),
        ({"tie_word_embeddings": False}, "tie_word_embeddings other than true"),
        ({"hidden_act": "silu"}, "hidden_act must be one of"),
        (
            {"model_type": "albert", "use_relative_position": True},
            "use_relative_position true contradicts model_type 'albert'; remove one of the two",
        ),
        (
            {"model_type": "nezha", "use_relative_position": False},
            "use_relative_position false contradicts model_type 'nezha'",
        ),
        ({"use_relative_position": "yes"}, "use_relative_position must be true or false"),
        ({"inner_group_num": 2, "model_type": "albert"}, "inner_group_num 2 is not supported"),
        ({"hiden_size": 8}, "unknown key 'hiden_size'; is 'hidden_size' meant"),
    ),
)
def test_what_hugging_face_has_and_we_have_not(values, message):
    with pytest.raises(UserError, match=message):
        NezhaConfig.from_dict({"model_type": "bert", "vocab_size": 9, **values})


def test_unreadable_files(tmp_path):
    with pytest.raises(UserError, match="No such file"):
        NezhaConfig.from_json_file(tmp_path / "none.json")
    (tmp_path / "bad.json").write_text("{")
    with pytest.raises(UserError, match="is not JSON"):
        NezhaConfig.from_json_file(tmp_path / "bad.json")
