"""Published folders are opened in one line; faults of folders are reported in one line."""

import json
import shutil

import numpy as np
import pytest
import tensorflow as tf
from checkpoint_models import logits_and_figures
from conftest import GOLDEN
from helpers import golden_batch
from safetensors.numpy import load_file, save_file

import nezha_tf
from nezha_tf import NezhaEncoder, NezhaForMaskedLM, NezhaForPreTraining, checkpoints
from nezha_tf.checkpoints.convert import SourceModel
from nezha_tf.checkpoints.folder import open_folder
from nezha_tf.checkpoints.name_table import tf1_names
from nezha_tf.checkpoints.places import weights_of
from nezha_tf.checkpoints.tf1 import write_tensors
from nezha_tf.modeling.finetuning import (
    NezhaForMultipleChoice,
    NezhaForQuestionAnswering,
    NezhaForSequenceClassification,
    NezhaForTokenClassification,
)
from nezha_tf.tasks.pretraining.settings import PretrainingSettings
from nezha_tf.tasks.pretraining.task import Pretraining
from nezha_tf.text.vocabulary import SPECIAL_TOKENS
from nezha_tf.training import model_card, start
from nezha_tf.util.errors import UserError

SETTINGS = {
    "task": "pretraining",
    "do_lower_case": False,
    "max_seq_length": 32,
    "uses_averages": False,
    "objectives": "bidirectional",
}


def write_vocabulary(folder, count):
    tokens = [*SPECIAL_TOKENS, "ab", "AB"]
    tokens += [chr(0x4E00 + number) for number in range(count - len(tokens))]
    (folder / "vocab.txt").write_text("\n".join(tokens) + "\n", encoding="utf-8")


@pytest.fixture
def published(tmp_path):
    """A folder in the form in which Google publishes models."""
    source = GOLDEN / "nezha_tiny"
    shutil.copy(source / "bert_config.json", tmp_path)
    for path in source.glob("model.ckpt.*"):
        shutil.copy(path, tmp_path / path.name.replace("model.ckpt", "bert_model.ckpt"))
    write_vocabulary(tmp_path, 211)
    return tmp_path


def test_a_published_folder_is_a_tokenizer_and_a_model(published, golden):
    tokenizer, model = nezha_tf.load(published)
    assert isinstance(model, NezhaForPreTraining)
    assert tokenizer.convert_tokens_to_ids(tokenizer.tokenize("AB一")) == [5, 7]
    figures = golden("nezha_tiny/forward")
    outputs = model(golden_batch(figures), all_outputs=True)
    for name in ("pooled_output", "sequence_output"):
        np.testing.assert_allclose(outputs[name], figures[f"out.{name}"], atol=2e-5)
    opened = open_folder(published)
    assert opened.task == {"task": None} and opened.do_lower_case
    cased = open_folder(published, do_lower_case=False).tokenizer
    assert cased.convert_tokens_to_ids(cased.tokenize("AB一")) == [6, 7]


def test_a_folder_of_hugging_face_is_one_too(tmp_path):
    folder = tmp_path / "model"
    shutil.copytree(GOLDEN / "hugging_face_nezha", folder)
    write_vocabulary(folder, 20)
    (folder / "tokenizer_config.json").write_text('{"do_lower_case": false}')
    tokenizer, model = nezha_tf.load(folder)
    assert isinstance(model, NezhaForPreTraining) and not tokenizer.do_lower_case


CLASSES = {"architectures": ["BertForSequenceClassification"]}
TAGS = {"architectures": ["BertForTokenClassification"]}
NAMED = {"id2label": {"1": "B-甲", "0": "O", "2": "I-甲"}}


MULTI = {"problem_type": "multi_label_classification"}
CHOICE = {"architectures": ["BertForMultipleChoice"]}
FINE_TUNED = (
    (CLASSES | NAMED, 3, {"label_type": "single", "labels": ["O", "B-甲", "I-甲"]}),
    (MULTI, 2, {"label_type": "multi", "labels": ["LABEL_0", "LABEL_1"], "is_pair": False}),
    (CLASSES, 1, {"label_type": "regression", "labels": []}),
    (TAGS | NAMED, 3, {"task": "tagging", "labels": ["O", "B-甲", "I-甲"], "scheme": "BIO"}),
    ({}, None, {"task": "reading_comprehension"}),
    (CHOICE, 1, {"task": "multiple_choice", "has_blanks": False}),
)
OF_TASK = {
    "classification": NezhaForSequenceClassification,
    "tagging": NezhaForTokenClassification,
    "reading_comprehension": NezhaForQuestionAnswering,
    "multiple_choice": NezhaForMultipleChoice,
}


@pytest.mark.parametrize(("changes", "num_labels", "settings"), FINE_TUNED)
def test_a_fine_tuned_model_of_hugging_face_is_of_its_task(tmp_path, changes, num_labels, settings):
    """Its logits are the head's matrix times the output of transformers' encoder."""
    source = GOLDEN / "hugging_face_bert"
    config = json.loads((source / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, **changes}))
    (tmp_path / "tokenizer_config.json").write_text('{"do_lower_case": false}')
    name, size = ("qa_outputs", 2) if num_labels is None else ("classifier", num_labels)
    draw = np.random.default_rng(3)
    weight = draw.normal(size=(size, config["hidden_size"])).astype(np.float32)
    bias = draw.normal(size=size).astype(np.float32)
    tensors = load_file(source / "model.safetensors")
    tensors |= {f"{name}.weight": weight, f"{name}.bias": bias}
    save_file(tensors, tmp_path / "model.safetensors")
    opened = open_folder(tmp_path)
    assert settings.items() <= opened.task.items() and not opened.do_lower_case
    for names in ({"0": "O"}, {"0": "a", "1": "a", "2": "b"}, {"0": 1, "1": 2, "2": 3}, [1, 2, 3]):
        (tmp_path / "config.json").write_text(json.dumps({**config, **changes, "id2label": names}))
        if settings.get("labels"):
            with pytest.raises(UserError, match=r"config\.json: (id2label|labels) must"):
                open_folder(tmp_path)
    if num_labels == 2:  # the same model as for one label of many
        return
    model, kind = opened.make_model(), OF_TASK[opened.task["task"]]
    assert type(model) is kind
    logits, figures = logits_and_figures(model, source)
    is_of_text = kind in (NezhaForSequenceClassification, NezhaForMultipleChoice)
    expected = figures["pooled_output" if is_of_text else "sequence_output"] @ weight.T + bias
    is_choice = kind is NezhaForMultipleChoice
    np.testing.assert_allclose(logits, expected[:, 0] if is_choice else expected, atol=1e-4)


@pytest.mark.parametrize(
    ("lacking", "kind"),
    (
        (("cls/seq_relationship/", "bert/pooler/"), NezhaForMaskedLM),
        (("cls/predictions/output_bias",), NezhaEncoder),
    ),
)
def test_without_all_heads_it_is_the_model_of_those_it_has(published, lacking, kind):
    reader = tf.train.load_checkpoint(str(published / "bert_model.ckpt"))
    names = [name for name in reader.get_variable_to_shape_map() if not name.startswith(lacking)]
    write_tensors(published / "bert_model.ckpt", {name: reader.get_tensor(name) for name in names})
    _, model = nezha_tf.load(published)
    assert type(model) is kind
    for name, variable in tf1_names(model).items():
        if not name.startswith(lacking):
            np.testing.assert_array_equal(variable.numpy(), reader.get_tensor(name))


def test_weights_of_a_head_that_no_task_has_are_told(tmp_path, capsys):
    folder, name = tmp_path / "model", "RoFormerForSequenceClassification"
    shutil.copytree(GOLDEN / "hugging_face_roformer", folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "architectures": [name]}))
    tensors = load_file(folder / "model.safetensors")
    body = {n: value for n, value in tensors.items() if not n.startswith("cls.")}
    head = {"classifier.out_proj.bias": np.ones(2, "f4")}
    save_file({**body, **head}, folder / "model.safetensors")
    assert type(open_folder(folder).make_model()) is NezhaEncoder
    [line] = capsys.readouterr().err.splitlines()
    assert f"model.safetensors, a {name}, is opened as NezhaEncoder; there, but not in" in line
    assert line.endswith(": classifier.out_proj.bias")
    save_file(body, folder / "model.safetensors")
    open_folder(folder).make_model()
    assert capsys.readouterr().err == ""


def test_what_may_be_read_otherwise_than_in_training_is_told(published, capsys):
    """The vocabulary has the token AB."""

    def told(**options):
        assert open_folder(published, **options).tokenizer
        return capsys.readouterr().err.splitlines()

    [line] = told()
    path = published / "tokenizer_config.json"
    assert f"such as AB in {published / 'vocab.txt'};" in line and str(path) in line
    assert "--nodo_lower_case" in line
    assert told(do_lower_case=True) == told(do_lower_case=False) == []
    for lower, other, parts in (
        (True, {"strip_accents": None, "tokenize_chinese_chars": True}, []),
        (False, {"strip_accents": False}, []),
        (True, {"strip_accents": False}, ["strip_accents false"]),
        (False, {"strip_accents": True}, ["strip_accents true"]),
        (True, {"tokenize_chinese_chars": False}, ["tokenize_chinese_chars false"]),
    ):
        values = {"do_lower_case": lower, **other}
        path.write_text(json.dumps(values))
        lines = told()
        assert len(lines) == len(parts), (values, lines)
        for shown, part in zip(lines, parts, strict=True):
            assert f"{path} says {part}, but " in shown
    path.unlink()
    # Such tokens are in Google's lower-cased vocabularies.
    for tokens in ("<S>\n<T>", "[EOS]\nb"):
        text = (published / "vocab.txt").read_text(encoding="utf-8")
        (published / "vocab.txt").write_text(text.replace("ab\nAB", tokens), encoding="utf-8")
        assert told() == []
        (published / "vocab.txt").write_text(text, encoding="utf-8")


def test_defaults_of_keys_that_the_file_lacks_are_told_once(published, capsys):
    """Of those that only training reads, a model that is used needs none."""
    path = published / "bert_config.json"
    values = json.loads(path.read_text())
    for key in ("type_vocab_size", "hidden_dropout_prob"):
        del values[key]
    path.write_text(json.dumps(values))
    line = f"{path} lacks keys; their defaults are used: type_vocab_size 16"
    open_folder(published)
    assert capsys.readouterr().err.splitlines() == [line]
    assert [note for note in SourceModel(str(published)).notes if "lacks" in note] == [line]
    settings = PretrainingSettings(
        bert_config_file=str(path), vocab_file=str(published / "vocab.txt"), max_seq_length=16
    )
    notes = [note for note in Pretraining(settings).notes if "lacks" in note]
    assert notes == [line.replace("used: ", "used: hidden_dropout_prob 0.1, ")]


@pytest.mark.parametrize("written", (None, "/home/somebody/bert/bert_model.ckpt"))
def test_a_published_folder_is_a_start_as_it_is_a_model(published, capfd, written):
    """Google's zips have no file `checkpoint`; others have one with the paths of their makers."""
    if written:
        text = f'model_checkpoint_path: "{written}"\nall_model_checkpoint_paths: "{written}"\n'
        (published / "checkpoint").write_text(text)
    checkpoint, averages = weights_of(str(published))
    assert checkpoint == str(published / "bert_model.ckpt") == open_folder(published).checkpoint
    assert not averages
    model = NezhaForPreTraining(open_folder(published).config)
    settings = PretrainingSettings(do_lower_case=False)
    [line] = start.load_initial(model, str(published), (), settings)
    assert line == f"weights from {checkpoint}"
    assert "match" not in capfd.readouterr().err  # TensorFlow's "Couldn't match files"
    (published / "bert_model.ckpt.index").unlink()
    with pytest.raises(UserError, match="no weights in"):
        weights_of(str(published))


def test_the_checkpoint_is_the_best_one_or_the_newest(published):
    model = NezhaForPreTraining(open_folder(published).config)
    for step in (2, 10, 9):
        checkpoints.save_tf1_checkpoint(model, published / f"model.ckpt-{step}")
    assert open_folder(published).checkpoint == str(published / "model.ckpt-10")
    best = published / "best_checkpoint.json"
    for text, step in (
        ('{"global_step": 2, "f1": 0.5}', 2),
        ('{"global_step": 3, "f1": 0.5}', 10),  # this key is not kept
    ):
        best.write_text(text)
        assert open_folder(published).checkpoint == str(published / f"model.ckpt-{step}")
    best.write_text("[]")
    with pytest.raises(UserError, match=r"best_checkpoint.json is not a JSON object; restore or"):
        open_folder(published)


def test_what_is_wrong_with_a_folder_is_one_line(published, tmp_path_factory):
    def breaks(message, change):
        folder = tmp_path_factory.mktemp("broken")
        shutil.copytree(published, folder, dirs_exist_ok=True)
        change(folder)
        with pytest.raises(UserError) as error:
            nezha_tf.load(folder)
        assert message in str(error.value) and str(folder) in str(error.value)
        assert len(str(error.value).splitlines()) == 1

    breaks("it is not there", lambda folder: shutil.rmtree(folder))
    breaks("no vocab.txt in", lambda folder: (folder / "vocab.txt").unlink())
    breaks("has 212 tokens and the model 211", lambda folder: write_vocabulary(folder, 212))
    breaks("no bert_config.json or", lambda folder: (folder / "bert_config.json").unlink())
    breaks("no weights in", lambda folder: (folder / "bert_model.ckpt.index").unlink())
    data = "bert_model.ckpt.data-00000-of-00001"
    breaks("is damaged at", lambda folder: (folder / data).write_bytes(b""))
    other = "nezha_model.ckpt.index"
    breaks(other, lambda folder: shutil.copy(folder / "bert_model.ckpt.index", folder / other))
    odd = '{"do_lower_case": "no"}'
    breaks("must be true or f", lambda f: (f / "tokenizer_config.json").write_text(odd))
    with pytest.raises(UserError, match=r"no checkpoint at .*vocab\.txt"):
        nezha_tf.load(published / "vocab.txt")


@pytest.mark.parametrize(
    ("text", "message"),
    (
        ("{", "is not JSON"),
        ("[]", "is not a JSON object"),
        ({"task": "parsing"}, "task must be one of pretraining, "),
        ({"task": ["seq2seq"]}, "task must be one of pretraining, "),
        (
            {"max_seq_length": 32.0},
            "max_seq_length must be a whole number of at least 1 and at most 1048576, not 32.0",
        ),
        ({"max_seq_length": True}, "max_seq_length must be"),
        ({"do_lower_case": None}, "do_lower_case must be true or false, not null"),
        ({"task": "tagging"}, "lacks 'labels'"),
        (
            {
                "task": "classification",
                "label_type": "single",
                "is_pair": False,
                "labels": ["a"] * 2,
            },
            'labels must be a list of different texts, not ["a", "a"]',
        ),
    ),
)
def test_a_damaged_task_file_is_one_line(published, text, message):
    path = published / "task.json"
    path.write_text(text if isinstance(text, str) else json.dumps({**SETTINGS, **text}))
    with pytest.raises(UserError) as error:
        open_folder(published)
    assert message in str(error.value) and str(path) in str(error.value)
    assert len(str(error.value).splitlines()) == 1


HEAD = "---\nlanguage: zh\n---\n"


def test_a_card_takes_the_place_of_a_card_alone(tmp_path):
    """The user's own file stays, one with a head too; older cards had none."""
    new = f"{HEAD}{model_card.MARK}\n# new\n"
    edited = "---\r\nlanguage: en\r\n---\r\n\r\n" + f"{model_card.MARK}\r\n# old\r\n"
    cards = {"run": new, "older": f"{model_card.MARK}\n# old\n", "edited": edited}
    own = {"own": b"# Mine \xff\n", "of_a_hub": f"{HEAD}# Mine\n{model_card.MARK}\n".encode()}
    contents = {**{name: card.encode() for name, card in cards.items()}, **own, "empty": None}
    for name, content in contents.items():
        (tmp_path / name).mkdir()
        if content:
            (tmp_path / name / "README.md").write_bytes(content)
    for name in ("older", "edited", "empty"):
        path = tmp_path / name / "README.md"
        assert str(path) in model_card.copy(tmp_path / "run", tmp_path / name)
        assert path.read_text() == new
    for name, content in own.items():
        assert "stays as it is" in model_card.copy(tmp_path / "run", tmp_path / name)
        assert (tmp_path / name / "README.md").read_bytes() == content
        assert "no model card in" in model_card.copy(tmp_path / name, tmp_path / "empty")


def test_what_the_user_wrote_into_a_head_stays(tmp_path):
    """Of what a run does not know: licence and data sets."""
    lines = 'license: other\nlicense_link: "https://a.b/c#d"\ndatasets:\n- a/b\n- c\n'
    old = f"---\nlanguage: en\n{lines}tags: [x]\n---\n{model_card.MARK}\n# old\n"
    for name, text in (("run", f"{HEAD}{model_card.MARK}\n# new\n"), ("old", old)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "README.md").write_text(text)
    model_card.copy(tmp_path / "run", tmp_path / "old")
    card = (tmp_path / "old" / "README.md").read_text()
    assert card == f"---\n{lines}language: zh\n---\n{model_card.MARK}\n# new\n"
    older = f"{model_card.MARK}\n# of an older run\n"
    (tmp_path / "run" / "README.md").write_text(older)
    model_card.copy(tmp_path / "run", tmp_path / "old")
    assert (tmp_path / "old" / "README.md").read_text() == older


def test_large_inputs_of_a_card_are_one_row(tmp_path, monkeypatch):
    for number in range(3):
        (tmp_path / f"{number}.tfrecord").write_bytes(b"0123456789")
    settings = PretrainingSettings(
        input_file=f"{tmp_path}/*.tfrecord", eval_file=f"{tmp_path}/2.tfrecord"
    )
    monkeypatch.setattr(model_card, "MOST_HASHED", 20)
    small, large = model_card.input_files(settings)
    # sha256sum
    digest = "84d89877f0d4041efb6bf91a16f0248f2fd573e6af05c19f96bedb9f882f7882"
    assert small == ("eval_file", str(tmp_path / "2.tfrecord"), 10, digest)
    assert large == ("input_file", f"{tmp_path}/*.tfrecord (3 files)", 30, "")


def test_a_public_name_is_one_thing():
    """Also where importing a package of the same name has put it into `nezha_tf` already."""
    for name in nezha_tf.__all__:
        assert nezha_tf.__getattr__(name) is getattr(nezha_tf, name), name
