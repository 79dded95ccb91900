"""Models of vectors in sentence-transformers' layout: its vectors are those of `TextEncoder`."""

import json
import shutil

import keras
import numpy as np
import pytest
from checkpoint_models import convert
from conftest import REPOSITORY
from sentence_transformers_peer import needs_sentence_transformers, vectors_of

from nezha_tf import NezhaConfig, NezhaEncoder, TextEncoder, checkpoints
from nezha_tf.checkpoints.folder import open_folder
from nezha_tf.tasks.sentence_vectors.extract import extract_features
from nezha_tf.tasks.sentence_vectors.extract_settings import ExtractSettings
from nezha_tf.text.vocabulary import Vocabulary
from nezha_tf.util.errors import UserError

VOCABULARY = REPOSITORY / "nezha_tf" / "resources" / "vocab.txt"
LENGTH = 24
# The third is cut.
TEXTS = [
    "今天天气很好，我们去公园。",
    "龘",
    "深度学习是机器学习的一个分支，" * 9,
    "Hello World 你好，2024年！",
    " 空格  与全角　空格 ",
]
TASK = {
    "task": "sentence_vectors",
    "do_lower_case": True,
    "max_seq_length": LENGTH,
    "uses_averages": False,
}


def write_run(folder, pooling, position_encoding):
    """Writes a random model as run_sentence_vectors.py leaves it."""
    config = NezhaConfig(
        vocab_size=len(Vocabulary.from_file(VOCABULARY)),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=48,
        type_vocab_size=2,
        max_position_embeddings=64,
        initializer_range=0.5,
        position_encoding=position_encoding,
    )
    keras.utils.set_random_seed(1)
    model = NezhaEncoder(config)
    folder.mkdir()
    checkpoints.save_tf1_checkpoint(model, folder / "model.ckpt-7")
    config.to_json_file(folder / "bert_config.json")
    shutil.copy(VOCABULARY, folder / "vocab.txt")
    (folder / "task.json").write_text(json.dumps({**TASK, "pooling": pooling}))
    return folder


@pytest.fixture(scope="module", params=("mean", "cls"))
def pooling(request):
    return request.param


@pytest.fixture(scope="module", params=("absolute", "functional_relative"))
def converted(request, pooling, tmp_path_factory):
    """Returns (the folder of a run, what it was converted to)."""
    folder = tmp_path_factory.mktemp("models")
    write_run(folder / "run", pooling, request.param)
    convert(folder / "run", folder / "st", "hugging_face")
    return folder / "run", folder / "st"


def read(folder, *names):
    return json.loads(folder.joinpath(*names).read_text(encoding="utf-8"))


def test_the_modules_make_the_vectors_of_the_model(converted):
    """Each file as the library's documentation of the module says, here in NumPy."""
    run, folder = converted
    opened = open_folder(folder)
    model = NezhaEncoder(opened.config)
    opened.load_into(model, ("bert/pooler/",))
    lengths = read(folder, "sentence_bert_config.json")
    assert lengths["do_lower_case"] is False  # its tokenizer does it
    modules = read(folder, "modules.json")
    assert [(row["idx"], row["name"]) for row in modules] == [
        (index, str(index)) for index in range(len(modules))
    ]
    first, *others = modules
    assert first["path"] == "" and first["type"] == "sentence_transformers.models.Transformer"
    for text, expected in zip(TEXTS, TextEncoder(run).encode(TEXTS), strict=True):
        tokens = opened.tokenizer.tokenize(text)[: lengths["max_seq_length"] - 2]
        ids = np.array(opened.tokenizer.convert_tokens_to_ids(["[CLS]", *tokens, "[SEP]"]))
        vectors, count = np.array(model(ids[None])["sequence_output"][0]), len(ids)
        for row in others:
            values, name = read(folder, row["path"], "config.json"), row["type"].rpartition(".")[2]
            if name == "WordWeights":
                weights, default = values["word_weights"], values["unknown_word_weight"]
                weights = [weights.get(values["vocab"][token], default) for token in ids]
                vectors, count = vectors * np.array(weights)[:, None], sum(weights)
            else:
                assert name == "Pooling" and values["word_embedding_dimension"] == 32
                (mode,) = (key for key, value in values.items() if value is True)
                means = {"cls_token": vectors[0], "mean_tokens": vectors.sum(0) / count}
                vectors = means[mode.removeprefix("pooling_mode_")]
        np.testing.assert_allclose(vectors, expected, atol=1e-5)


def test_the_new_folder_makes_the_same_vectors(converted):
    before, after = (TextEncoder(folder).encode(TEXTS) for folder in converted)
    np.testing.assert_allclose(after, before, atol=1e-6)


@pytest.mark.processes
@needs_sentence_transformers
def test_the_library_makes_the_same_vectors(converted):
    run, folder = converted
    expected = TextEncoder(run).encode(TEXTS)
    np.testing.assert_allclose(vectors_of(folder, TEXTS), expected, atol=1e-5)


@pytest.mark.processes
@needs_sentence_transformers
@pytest.mark.parametrize("mode, normalize", (("mean", True), ("max", False)))
def test_what_the_library_saved_makes_its_vectors_here(tmp_path, mode, normalize):
    """And again after a conversion."""
    write_run(tmp_path / "run", "cls", "absolute")
    convert(tmp_path / "run", tmp_path / "hf", "hugging_face")
    saved = {"pooling": mode, "normalize": normalize, "max_seq_length": LENGTH}
    expected = vectors_of(tmp_path / "hf", TEXTS, to=str(tmp_path / "theirs"), **saved)
    np.testing.assert_allclose(TextEncoder(tmp_path / "theirs").encode(TEXTS), expected, atol=1e-5)
    convert(tmp_path / "theirs", tmp_path / "again", "hugging_face")
    np.testing.assert_allclose(vectors_of(tmp_path / "again", TEXTS), expected, atol=1e-5)


@pytest.fixture
def published(tmp_path):
    """A folder of transformers; returns a function that writes the library's files beside it."""
    write_run(tmp_path / "run", "cls", "absolute")
    (tmp_path / "run" / "task.json").unlink()
    folder = tmp_path / "run"
    (folder / "1_Pooling").mkdir()

    def write(pooling=None, modules=None, lengths=None):
        files = {
            "1_Pooling/config.json": pooling,
            "modules.json": modules,
            "sentence_bert_config.json": lengths,
        }
        for name, value in files.items():
            if value is not None:
                (folder / name).write_text(json.dumps(value))
        return folder

    return write


def modules_of(*names, room="sentence_transformers.models"):
    return [{"idx": i, "type": f"{room}.{name}"} for i, name in enumerate(names)]


@pytest.mark.parametrize(
    "pooling",
    (
        {"pooling_mode_cls_token": False, "pooling_mode_mean_tokens": True},
        {"embedding_dimension": 32, "pooling_mode": "mean", "include_prompt": True},  # version 6
        {"pooling_mode": ["mean"]},
    ),
)
def test_vectors_by_its_files(published, tmp_path, pooling):
    """All tokens are counted, and the vectors divided by their lengths, in the tool as well."""
    room = "sentence_transformers.base.modules"
    modules = modules_of("transformer.Transformer", "x.Pooling", "normalize.Normalize", room=room)
    folder = published(pooling, modules, {"max_seq_length": LENGTH})
    encoder = TextEncoder(folder)
    ids = [encoder.tokenizer.tokenize(text)[: LENGTH - 2] for text in TEXTS]
    ids = [encoder.tokenizer.convert_tokens_to_ids(["[CLS]", *row, "[SEP]"]) for row in ids]
    model = encoder.model
    means = [np.array(model(np.array([row]))["sequence_output"][0]).mean(0) for row in ids]
    means = np.stack([mean / np.linalg.norm(mean) for mean in means])
    np.testing.assert_allclose(encoder.encode(TEXTS), means, atol=1e-5)
    (tmp_path / "texts.txt").write_text("".join(f"{text.strip()}\n" for text in TEXTS))
    out = str(tmp_path / "out.npy")
    given = {"input_file": str(tmp_path / "texts.txt"), "output_file": out}
    extract_features(ExtractSettings(model_folder=str(folder), **given))
    np.testing.assert_allclose(np.load(out), means, atol=1e-5)
    extract_features(ExtractSettings(model_folder=str(folder), **given, normalize=False))
    assert (np.linalg.norm(np.load(out), axis=1) > 1.5).all()


@pytest.mark.parametrize(
    "length, of_tokenizer, found",
    ((9, 8, 9), (None, 8, 8), (None, int(1e30), 64), (None, 1e30, 64), (None, None, 64)),
)
def test_texts_are_cut_where_the_library_cuts_them(published, length, of_tokenizer, found):
    """Without a length of its own, where its tokenizer or the positions end."""
    folder = published({"pooling_mode_cls_token": True}, lengths={"max_seq_length": length})
    if of_tokenizer:
        values = {"model_max_length": of_tokenizer}
        (folder / "tokenizer_config.json").write_text(json.dumps(values))
    assert open_folder(folder).task["max_seq_length"] == found


def test_what_is_not_computed_here_is_told(published, capsys):
    modules = modules_of("Transformer", "Pooling", "Dense")
    folder = published({"pooling_mode_lasttoken": True}, modules)
    assert open_folder(folder).task == {"task": None}
    said = capsys.readouterr().err
    assert "Dense is not computed here" in said and "Pooling with lasttoken is not" in said


@pytest.mark.parametrize(
    "files, told",
    (
        ({"modules": {"a": 1}}, "modules.json is no list of modules"),
        ({"modules": [{"idx": 0}]}, "modules.json is no list of modules"),
        ({"modules": [{"type": 3}]}, "modules.json is no list of modules"),
        ({"lengths": {"max_seq_length": "long"}}, "max_seq_length must be a whole number"),
        ({"lengths": {"max_seq_length": 2}}, "at least 3 .*, not 2"),
    ),
)
def test_damaged_files_are_one_line(published, files, told):
    folder = published(**{"pooling": {"pooling_mode_cls_token": True}, **files})
    with pytest.raises(UserError, match=told) as error:
        open_folder(folder)
    assert "\n" not in str(error.value)
