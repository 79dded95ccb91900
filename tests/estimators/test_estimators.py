"""The classes for texts in memory: the programs' numbers, folders of either, clear errors."""

import dataclasses
import json
import shutil

import keras
import numpy as np
import pytest

import nezha_tf
from nezha_tf import NezhaConfig, NezhaForPreTraining
from nezha_tf.estimators.understanding import TextClassifier
from nezha_tf.tasks.classification.settings import ClassificationSettings
from nezha_tf.tasks.programs import classify
from nezha_tf.util.errors import UserError

TEXTS = ["房间很干净", "服务太差", "早餐好吃", "隔音不好"] * 2
LABELS = ["好", "差"] * 4
QUICK = {"max_seq_length": 12, "train_batch_size": 4, "num_train_epochs": 1.0, "verbose": False}
QUICK |= {"learning_rate": 1e-3, "jit_compile": False}


@pytest.fixture(scope="module")
def preset(tmp_path_factory):
    """The folder of a small model with random weights."""
    folder = tmp_path_factory.mktemp("models") / "small"
    folder.mkdir()
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "ok", "，"]
    texts = [*TEXTS, "李白杜甫在长安成都谁今天下雨晴雪风气如何甲乙丙丁吗也"]
    tokens += sorted(set("".join(texts)))
    (folder / "vocab.txt").write_text("\n".join(tokens) + "\n")
    config = NezhaConfig(
        vocab_size=len(tokens),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        type_vocab_size=6,
    )
    config.to_json_file(folder / "bert_config.json")
    keras.utils.set_random_seed(1)
    model = NezhaForPreTraining(config)
    nezha_tf.checkpoints.save_tf1_checkpoint(model, folder / "model.ckpt")
    return folder


@pytest.fixture(scope="module")
def classifier(preset):
    made = nezha_tf.TextClassifier.from_preset(preset, labels=["好", "差"])
    return made.fit(TEXTS, LABELS, validation_data=(TEXTS[:4], LABELS[:4]), **QUICK)


def test_a_classifier_has_the_numbers_of_the_program(classifier, preset, tmp_path):
    """The program reads the same texts from a table."""
    lines = [f"{label}\t{text}" for text, label in zip(TEXTS, LABELS, strict=True)]
    for name, count in (("train", 8), ("eval", 4)):
        (tmp_path / f"{name}.tsv").write_text("\n".join(["label\ttext", *lines[:count]]) + "\n")
    flags = {**QUICK, "learning_rate": ("1e-3",)}
    del flags["verbose"]
    classify(
        ClassificationSettings(
            task_name="custom",
            train_file=str(tmp_path / "train.tsv"),
            eval_file=str(tmp_path / "eval.tsv"),
            labels=("好", "差"),
            init_checkpoint=str(preset),
            output_dir=str(tmp_path / "run"),
            do_train=True,
            do_eval=True,
            **flags,
        )
    )
    of_program = nezha_tf.TextClassifier.from_preset(tmp_path / "run")
    assert of_program.labels == classifier.labels == ["好", "差"]
    for one, other in zip(of_program.model.weights, classifier.model.weights, strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(of_program.predict_proba(TEXTS), classifier.predict_proba(TEXTS))


def test_probabilities_are_those_of_the_logits_of_the_model(classifier, tmp_path):
    """In any order and any batches; and what is saved and opened again answers the same."""
    tokenizer = classifier.tokenizer
    texts = ["房间很干净，早餐也好吃", "差", "服务 OK 吗"]
    logits = []
    for text in texts:
        tokens = ["[CLS]", *tokenizer.tokenize(text)[:10], "[SEP]"]
        logits.append(classifier.model(np.array([tokenizer.convert_tokens_to_ids(tokens)]))[0])
    found = classifier.predict_proba(texts, batch_size=2)
    np.testing.assert_allclose(found, keras.ops.softmax(np.array(logits)), atol=1e-6)
    assert classifier.predict(texts) == [["好", "差"][row.argmax()] for row in found]
    assert classifier.predict([]) == []
    classifier.save(tmp_path / "kept")
    opened = nezha_tf.TextClassifier.from_preset(tmp_path / "kept")
    np.testing.assert_array_equal(opened.predict_proba(texts), classifier.predict_proba(texts))
    with pytest.raises(UserError, match="exists already"):
        classifier.save(tmp_path / "kept")


def test_pairs_several_labels_and_numbers(preset):
    pairs = nezha_tf.TextClassifier(preset).fit(TEXTS, LABELS, TEXTS[::-1], **QUICK)
    assert set(pairs.predict(TEXTS, TEXTS)) <= {"好", "差"}
    with pytest.raises(UserError, match="trained for pairs: give text_pairs"):
        pairs.predict(TEXTS)
    several = nezha_tf.TextClassifier(preset, ["净", "吃"], label_type="multi")
    several.fit(TEXTS, [["净"], [], ["吃"], ["净", "吃"]] * 2, **QUICK)
    assert all(set(found) <= {"净", "吃"} for found in several.predict(TEXTS))
    numbers = nezha_tf.TextClassifier(preset, label_type="regression")
    numbers.fit(TEXTS, [1, 0.5] * 4, **QUICK)
    assert all(isinstance(value, float) for value in numbers.predict(TEXTS))
    with pytest.raises(UserError, match="no probabilities"):
        numbers.predict_proba(TEXTS)


@pytest.mark.parametrize(
    "labels, label_type, message",
    [
        (["好", float("nan")], "single", r"labels\[1\] is nan: give a str"),
        (["好", None], "single", r"labels\[1\] is None"),
        ([1, "差"], "regression", r"labels\[1\] is '差': give a number"),
        (["好", "差"], "multi", r"labels\[0\] is '好': .* give lists"),
        ([], "single", "text 2, label 0"),
    ],
)
def test_labels_that_are_none_are_named(labels, label_type, message):
    with pytest.raises(UserError, match=message):
        nezha_tf.TextClassifier("mini").fit(TEXTS[:2], labels, label_type=label_type, verbose=False)


def test_a_tagger_learns_and_finds_characters(preset):
    texts = ["李白在长安", "杜甫在成都"] * 4
    tagger = nezha_tf.TokenTagger.from_preset(preset)
    settings = {**QUICK, "num_train_epochs": 15.0, "learning_rate": 1e-2}
    tagger.fit(texts, [[(0, 2, "人"), (3, 5, "地")]] * 8, **settings)
    assert tagger.predict([texts[1], texts[0]]) == [[(0, 2, "人"), (3, 5, "地")]] * 2
    assert set(tagger.labels) == {"O", "B-人", "I-人", "B-地", "I-地"}
    for entities in ([(0, 2)], 5):
        with pytest.raises(UserError, match=r"entities\[0\] has .*: give \(start, end, label\)"):
            tagger.fit(texts[:1], [entities], **settings)


def test_answers_stand_in_their_passages(preset):
    passages = ["李白在长安", "杜甫在成都"] * 2
    answerer = nezha_tf.QuestionAnswerer(preset, max_query_length=6, doc_stride=8)
    answerer.fit(["谁在"] * 4, passages, ["李白", "杜甫"] * 2, **{**QUICK, "max_seq_length": 20})
    for answer, passage in zip(answerer.predict(["谁在"] * 4, passages), passages, strict=True):
        assert answer and answer in passage
    with pytest.raises(UserError, match=r"answers\[0\], '王维', does not stand in its passage"):
        answerer.fit(["谁"], ["李白在长安"], ["王维"])


def test_choices_may_differ_in_number(preset):
    chooser = nezha_tf.MultipleChoice(preset)
    given = (["今天下雨"] * 2, ["天气如何"] * 2, [["晴", "雨"], ["雪", "雨", "风"]])
    chooser.fit(*given, ["雨", "雨"], **{**QUICK, "train_batch_size": 2})
    for found, choices in zip(chooser.predict(*given), given[2], strict=True):
        assert found in choices
    with pytest.raises(UserError, match=r"answers\[1\], '雷', is none of its choices"):
        chooser.fit(*given, ["雨", "雷"])


def test_vectors_are_those_of_the_encoder():
    encoder, (tokenizer, model) = nezha_tf.TextEncoder.from_preset("mini"), nezha_tf.load("mini")
    text = "今天很冷"
    tokens = ["[CLS]", *tokenizer.tokenize(text), "[SEP]"]
    ids = np.array([tokenizer.convert_tokens_to_ids(tokens)])
    states = np.array(model.encoder(ids)["sequence_output"][0])
    mean = states[1:-1].mean(axis=0)
    several = encoder.encode(["不同长度的一个句子", text])
    np.testing.assert_allclose(several[1], mean, atol=1e-5)
    np.testing.assert_allclose(encoder.encode(text, pooling="cls"), states[0], atol=1e-5)
    unit = encoder.encode(text, normalize=True)
    np.testing.assert_allclose(unit, mean / np.linalg.norm(mean), atol=1e-5)
    assert encoder.encode([]).shape == (0, len(mean))
    encoder.encode(text + text)
    traces = [step.experimental_get_tracing_count() for step in encoder._steps.values()]
    assert traces == [1, 1, 1]
    with pytest.raises(UserError, match="pooling='sum': give one of mean, cls, max, mean_all"):
        encoder.encode(text, pooling="sum")


def test_vectors_of_a_model_with_fewer_positions_than_the_default(preset, tmp_path):
    folder = shutil.copytree(preset, tmp_path / "short")
    config = NezhaConfig.from_json_file(folder / "bert_config.json")
    config = dataclasses.replace(config, position_encoding="absolute", max_position_embeddings=8)
    config.to_json_file(folder / "bert_config.json")
    model = NezhaForPreTraining(config)
    nezha_tf.checkpoints.save_tf1_checkpoint(model, folder / "model.ckpt")
    encoder = nezha_tf.TextEncoder(folder)
    short, cut, longer = encoder.encode(["李白", "李白在长安今", "李白在长安今天风雨"])
    ids = [[2, *encoder.tokenizer.convert_tokens_to_ids(list("李白")), 3]]
    states = np.array(model.encoder(np.array(ids))["sequence_output"][0])
    np.testing.assert_allclose(short, states[1:-1].mean(axis=0), atol=1e-5)
    np.testing.assert_allclose(longer, cut, atol=1e-6)
    with pytest.raises(UserError, match=r"max_seq_length=9 .* 8"):
        encoder.encode("李白", max_seq_length=9)


def test_blanks_are_filled_with_the_likeliest_tokens():
    filler, (tokenizer, model) = nezha_tf.MaskFiller.from_preset("mini"), nezha_tf.load("mini")
    tokens = ["[CLS]", "今", "天", "[MASK]", "气", "[SEP]"]
    logits = model(np.array([tokenizer.convert_tokens_to_ids(tokens)]))["masked_lm_logits"][0, 3]
    best = np.argsort(np.array(logits))[::-1][:3]
    shares = keras.ops.softmax(logits)
    (found,) = filler.fill("今天[MASK]气", top_k=3)
    assert [token for token, _ in found] == tokenizer.convert_ids_to_tokens(best.tolist())
    np.testing.assert_allclose([share for _, share in found], np.array(shares)[best], rtol=1e-3)
    assert [len(blanks) for blanks in filler.fill(["[MASK]", "[MASK][MASK]"])] == [1, 2]
    with pytest.raises(UserError, match=r"no \[MASK\] in texts\[1\]"):
        filler.fill(["[MASK]", "没有"])


def test_texts_are_continued_as_the_options_say():
    generator = nezha_tf.TextGenerator.from_preset("mini")
    text = generator.generate("今天天气", method="greedy", max_length=6)
    assert isinstance(text, str) and 0 < len(text) <= 6
    options = {"method": "sample", "top_p": 0.9, "max_length": 6, "num_return_sequences": 2}
    drawn = generator.generate(["春眠", "床前"], seed=3, **options)
    assert [len(each) for each in drawn] == [2, 2]
    assert drawn == generator.generate(["春眠", "床前"], seed=3, **options)
    assert drawn != generator.generate(["春眠", "床前"], seed=4, **options)
    with pytest.raises(UserError, match="'beams'; the options of a search are method, max_length"):
        generator.generate("今天", beams=3)


def test_a_generator_learns_targets(preset):
    generator = nezha_tf.TextGenerator(preset, max_source_length=8, max_target_length=4)
    generator.fit(
        ["甲乙", "丙丁"], ["乙", "丁"], verbose=False, num_train_steps=2, train_batch_size=2
    )
    assert len(generator.generate(["甲乙", "丙丁"])) == 2


MISTAKES = {
    "texts that are no str": (lambda c: c.predict([1]), r"texts\[0\] is int, not str"),
    "lengths": (lambda c: c.fit(TEXTS, LABELS[:3]), "as many of each, .*text 8, label 3"),
    "a label": (lambda c: c.fit(TEXTS, ["坏"] * 8), r"labels\[0\] is '坏'; the labels are 好, 差"),
    "a setting": (
        lambda c: c.fit(TEXTS, LABELS, num_train_epoch=2),
        "num_train_epoch is no setting of TextClassifier; did you mean num_train_epochs",
    ),
    "a setting that is ours": (
        lambda c: c.fit(TEXTS, LABELS, do_train=False),
        "do_train is no setting",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_one_line(classifier, name):
    mistake, message = MISTAKES[name]
    with pytest.raises(UserError, match=message) as raised:
        mistake(classifier)
    assert "\n" not in str(raised.value)


def test_a_preset_must_fit(classifier, preset, tmp_path):
    with pytest.raises(UserError, match="no model in nowhere"):
        TextClassifier.from_preset("nowhere")
    with pytest.raises(UserError, match="was not trained for this task: call fit"):
        TextClassifier(preset).predict(TEXTS)
    (tmp_path / "bare").mkdir()
    for name in ("bert_config.json", "model.ckpt.index", "model.ckpt.data-00000-of-00001"):
        shutil.copy(preset / name, tmp_path / "bare")
    with pytest.raises(UserError, match=r"no vocab\.txt in"):
        TextClassifier.from_preset(tmp_path / "bare")
    classifier.save(tmp_path / "run")
    with pytest.raises(UserError, match="was trained for the labels 好, 差, not for 是, 否"):
        TextClassifier.from_preset(tmp_path / "run", labels=["是", "否"])
    task = json.loads((tmp_path / "run" / "task.json").read_text())
    assert task["labels"] == ["好", "差"]
