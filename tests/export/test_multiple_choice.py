"""Exports of multiple choice, in a process without our code, against the Python path."""

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_text  # noqa: F401  (its operations are in the graph)
from demo_folders import assert_says_alike
from export_folders import INVALID, LONG_TEXT, ODD_TEXTS, ask, make_export, real_texts, run_readme

from nezha_tf.data.array_reader import ArrayReader
from nezha_tf.data.bad_rows import BadRows
from nezha_tf.data.choices import ONE_BLANK, Question
from nezha_tf.model_folder.folder import open_folder
from nezha_tf.objectives.multiple_choice import MultipleChoiceLoss
from nezha_tf.tasks.finetuning.evaluation import predict
from nezha_tf.tasks.multiple_choice.examples import Packer
from nezha_tf.text.graph_tokenizer import GraphTokenizer

LENGTH = 24
KINDS = {"questions": False, "blanks": True}
TEXTS = [text for text in (*real_texts()[:12], *ODD_TEXTS, LONG_TEXT) if text.strip()]


def settings_of(name):
    return {"task": "multiple_choice", "max_seq_length": LENGTH, "has_blanks": KINDS[name]}


@pytest.fixture(scope="module")
def exports(tmp_path_factory):
    root = tmp_path_factory.mktemp("choices")
    return {name: make_export(root / name, settings_of(name)) for name in KINDS}


def questions_of(name):
    """Questions with 2 to 4 choices, some of them long, about each text."""
    found = []
    for index, text in enumerate(TEXTS):
        others = [TEXTS[(index + k) % len(TEXTS)][: 3 * k + index] or "好" for k in range(1, 6)]
        choices = tuple(f"好{k}{other}" for k, other in enumerate(others[: 2 + index % 3]))
        place = min(len(text), 5 * index)
        context = f"{text[:place]}{ONE_BLANK}{text[place:]}" if KINDS[name] else text
        question, blank = (None, ONE_BLANK) if KINDS[name] else (others[4] + "吗", None)
        found.append(Question(str(index), context, question, choices, None, blank, None, ""))
    return found


def inputs_of(questions):
    width = max(len(q.choices) for q in questions)
    inputs = {
        "context": [q.context for q in questions],
        "choices": [[*q.choices, *[""] * (width - len(q.choices))] for q in questions],
    }
    if questions[0].text is not None:
        inputs["question"] = [q.text for q in questions]
    return inputs


@pytest.mark.parametrize("name", KINDS)
def test_outputs_equal_the_python_path(exports, name):
    questions = questions_of(name)
    folder = open_folder(exports[name].with_name(name))
    vocabulary = folder.tokenizer.vocabulary
    packer = Packer(GraphTokenizer(vocabulary, True), vocabulary, LENGTH, KINDS[name])
    examples = packer(questions, ["texts"], BadRows(skip=True))
    # Only questions whose text has no piece are left out.
    assert len(examples.questions) >= len(questions) - 2
    reader = ArrayReader(examples.arrays, LENGTH)
    python = predict(folder.make_model(), MultipleChoiceLoss(), reader, 32, False)
    found = ask(exports[name], **inputs_of(examples.questions))
    probabilities = np.stack(python["probabilities"])
    np.testing.assert_allclose(found["probabilities"], probabilities, atol=1e-5)
    best = probabilities.argmax(axis=-1)
    assert found["index"].tolist() == best.tolist() and len(set(best)) > 1
    chosen = [q.choices[i] for q, i in zip(examples.questions, best, strict=True)]
    assert found["choice"].tolist() == chosen
    np.testing.assert_allclose(found["probability"], probabilities.max(axis=-1), atol=1e-5)

    # One by one, and without the places of choices that are not there.
    for index in range(0, len(examples.questions), 5):
        question = examples.questions[index]
        alone = ask(exports[name], **inputs_of([question]))["probabilities"][0]
        np.testing.assert_allclose(alone, probabilities[index][: len(alone)], atol=1e-5)


def test_no_text_and_no_utf_8(exports):
    loaded = tf.saved_model.load(str(exports["questions"]))
    none = {name: tf.zeros([0], tf.string) for name in ("context", "question")}
    none["choices"] = tf.zeros([0, 2], tf.string)
    for values in loaded.signatures["serving_default"](**none).values():
        assert len(values) == 0
    texts = [INVALID, INVALID.decode("utf-8", "ignore")]
    choices = [["好", INVALID.decode("utf-8", "ignore")]] * 2
    found = ask(exports["questions"], context=texts, question=["吗"] * 2, choices=choices)
    np.testing.assert_allclose(*found["probabilities"], atol=1e-6)


@pytest.mark.parametrize("name", KINDS)
def test_the_folder_explains_itself(exports, name):
    assert run_readme(exports[name])["choice"].shape == (1,)


@pytest.mark.parametrize("name", KINDS)
def test_the_demo_says_what_it_says_of_the_folder(exports, name):
    context = "他在北京。" + (ONE_BLANK if KINDS[name] else "")
    texts = (context, "他在哪里？", ["北京", "上海", "南京"])
    assert_says_alike(exports[name].with_name(name), exports[name], *texts)
