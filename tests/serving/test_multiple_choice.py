"""Serving of multiple choice against what the programs predict."""

import json

import numpy as np
import pytest
import tensorflow as tf
from export_folders import INVALID, LONG_TEXT, ODD_TEXTS, Served, ask, real_texts

from nezha_tf.data.choices import ONE_BLANK, ChoiceColumns, ChoiceQuestion, read_chid, read_own
from nezha_tf.data.in_memory import ArrayReader
from nezha_tf.data.lines import BadRows
from nezha_tf.serving.text_reader import TextReader
from nezha_tf.tasks.finetuning.evaluation import predict
from nezha_tf.tasks.multiple_choice.loss import MultipleChoiceLoss
from nezha_tf.tasks.multiple_choice.packing import BlankPacking, QuestionPacking, pack

LENGTH = 24
KINDS = {"questions": False, "blanks": True}
TEXTS = [text for text in (*real_texts()[:12], *ODD_TEXTS, LONG_TEXT) if text.strip()]


def settings_of(name):
    return {"task": "multiple_choice", "max_seq_length": LENGTH, "has_blanks": KINDS[name]}


@pytest.fixture(scope="module")
def exports(tmp_path_factory):
    root = tmp_path_factory.mktemp("choices")
    return {name: Served(root / name, settings_of(name)) for name in KINDS}


def questions_of(name):
    """Questions with 2 to 4 choices, some of them long, about each text."""
    found = []
    for index, text in enumerate(TEXTS):
        others = [TEXTS[(index + k) % len(TEXTS)][: 3 * k + index] or "好" for k in range(1, 6)]
        choices = tuple(f"好{k}{other}" for k, other in enumerate(others[: 2 + index % 3]))
        place = min(len(text), 5 * index)
        context = f"{text[:place]}{ONE_BLANK}{text[place:]}" if KINDS[name] else text
        question, blank = (None, ONE_BLANK) if KINDS[name] else (others[4] + "吗", None)
        found.append(ChoiceQuestion(str(index), context, choices, None, "", question, blank))
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


def predicted(folder, questions):
    """Returns the `Examples` of questions, and the probabilities that the program predicts."""
    kind = BlankPacking if folder.task["has_blanks"] else QuestionPacking
    packing, reader = kind(folder.tokenizer.vocabulary, LENGTH), TextReader(folder.tokenizer)
    examples, _ = pack(questions, packing, reader, ["texts"], BadRows(skip=True))
    arrays = ArrayReader(examples.arrays, LENGTH)
    python = predict(folder.make_model(), MultipleChoiceLoss(), arrays, 32, False)
    return examples, np.stack(python["probabilities"])


@pytest.mark.parametrize("name", KINDS)
def test_outputs_equal_the_program(exports, name):
    questions = questions_of(name)
    examples, probabilities = predicted(exports[name].folder, questions)
    # Only questions whose text has no token are left out.
    assert len(examples.rows) >= len(questions) - 2
    found = ask(exports[name], **inputs_of(examples.rows))
    np.testing.assert_allclose(found["probabilities"], probabilities, atol=1e-5)
    best = probabilities.argmax(axis=-1)
    assert found["index"].tolist() == best.tolist() and len(set(best)) > 1
    chosen = [q.choices[i] for q, i in zip(examples.rows, best, strict=True)]
    assert found["choice"].tolist() == chosen
    np.testing.assert_allclose(found["probability"], probabilities.max(axis=-1), atol=1e-5)

    # One by one, and without the places of choices that are not there.
    for index in range(0, len(examples.rows), 5):
        question = examples.rows[index]
        alone = ask(exports[name], **inputs_of([question]))["probabilities"][0]
        np.testing.assert_allclose(alone, probabilities[index][: len(alone)], atol=1e-5)


IDIOMS = ["绵绵不断", "画蛇添足", "一日千里"]
# Another blank on each side and on both, with a number and without, also beyond the window.
OTHERS = [
    "雨{}，下个不停。",
    "他说：“雨{}”——下个‘不停’…―—",
    "雨#idiom000002#，他{}。",
    "#idiom12##idiom#今天{}天气不错，#idiom000003#，#idiom#也好#idiom4#",
    "今天天气不错，我们出去走走吧，#idiom000001#真好{}",
    "雨{}，他#idiom#，今天天气不错，我们出去走走吧，再#idiom7#说",
]


def read(name, mark, path):
    """Returns the questions that the program reads of texts with a blank `mark`."""
    texts = [text.format(mark) for text in OTHERS]
    if name == "chid":
        rows = [{"content": [text], "candidates": IDIOMS} for text in texts]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return [q for q in read_chid(str(path), False) if q.blank == mark]
    texts = [text for text in texts if text.count(ONE_BLANK) == 1]
    rows = [{"context": text, "choices": IDIOMS} for text in texts]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    columns = ChoiceColumns("context", None, "choices", "answer", "text")
    return read_own(str(path), columns, needs_answers=False)


@pytest.mark.parametrize("name, mark", (("chid", "#idiom99#"), ("blanks", ONE_BLANK)))
def test_other_blanks_and_punctuation_are_read_as_in_training(exports, tmp_path, name, mark):
    export = exports.get(name)
    if export is None:
        settings = settings_of("blanks") | {"ascii_punctuation": True}
        export = Served(tmp_path / name, settings)
    folder = export.folder
    examples, probabilities = predicted(folder, read(name, mark, tmp_path / "rows.json"))
    assert np.ptp(probabilities, axis=0).min() > 1e-3
    # The text of a ChID's row, in which the export and the page call the blank #idiom#.
    texts = [text for text in OTHERS if name == "chid" or ONE_BLANK not in text]
    for text, expected in zip(texts, probabilities, strict=True):
        # What stands before it may not have this mark.
        text = text.replace(ONE_BLANK, "#idiom5#").format(ONE_BLANK)
        answered = ask(export, context=[text], choices=[IDIOMS])["probabilities"][0]
        np.testing.assert_allclose(answered, expected, atol=1e-5, err_msg=text)
    # FewCLUE's rows have several blanks of one mark, of which the first is asked for.
    text = "雨#idiom#，他#idiom#。"
    twice = examples.rows[0]._replace(context=text, blank=ONE_BLANK)
    expected = predicted(folder, [twice])[1][0]
    answered = ask(export, context=[text], choices=[IDIOMS])["probabilities"][0]
    np.testing.assert_allclose(answered, expected, atol=1e-5)


def test_no_text_and_no_utf_8(exports):
    none = {name: tf.zeros([0], tf.string) for name in ("context", "question")}
    none["choices"] = tf.zeros([0, 2], tf.string)
    for values in exports["questions"]["serving_default"](**none).values():
        assert len(values) == 0
    texts = [INVALID, INVALID.decode("utf-8", "ignore")]
    choices = [["好", INVALID.decode("utf-8", "ignore")]] * 2
    found = ask(exports["questions"], context=texts, question=["吗"] * 2, choices=choices)
    np.testing.assert_allclose(*found["probabilities"], atol=1e-6)


@pytest.mark.parametrize("name", KINDS)
def test_rows_without_choices_are_refused(exports, name):
    signatures = exports[name]

    def refused(message, signature, **inputs):
        with pytest.raises(tf.errors.InvalidArgumentError, match=message):
            signatures[signature](**inputs)

    def texts_with(rows, choices):
        texts = tf.fill([rows], f"他{ONE_BLANK}")
        own = {} if KINDS[name] else {"question": texts}
        return {"context": texts, "choices": choices, **own}

    for count in (1, 3):
        choices = tf.constant([["好", "坏"]] * count)
        refused("must have as many rows", "serving_default", **texts_with(2, choices))
    for rows in (0, 2):
        none = texts_with(rows, tf.zeros([rows, 0], tf.string))
        refused("there must be a choice", "serving_default", **none)
        ids = tf.zeros([rows, 0, 4], tf.int32)
        names = ("input_ids", "input_mask", "segment_ids")
        refused("there must be a choice", "from_ids", **dict.fromkeys(names, ids))


def test_what_the_programs_refuse_is_answered(exports):
    """A text without a blank is read as if it stood behind the text; a row may have no choice."""
    choices = [IDIOMS, IDIOMS, [""] * 3]
    texts = ["今天下雨。", f"今天下雨。{ONE_BLANK}", f"雨{ONE_BLANK}"]
    found = ask(exports["blanks"], context=texts, choices=choices)
    np.testing.assert_allclose(*found["probabilities"][:2], atol=1e-6)
    np.testing.assert_allclose(found["probabilities"][2], 1 / 3, atol=1e-6)
    assert found["choice"][2] in ("", b"")
