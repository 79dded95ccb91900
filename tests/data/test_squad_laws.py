"""Property tests of SQuAD's files: any content gives valid questions or one line of an error."""

import json

import laws
from hypothesis import given
from hypothesis import strategies as st
from mutated_json import mutations

from nezha_tf.data.lines import BadRows
from nezha_tf.data.squad import read_questions
from nezha_tf.util.errors import UserError

CONTEXT = "长江全长6300公里，是亚洲第一长河，长江。\ud83d\n"


def sound():
    answers = [{"text": "长江", "answer_start": 18}, {"text": "亚洲", "answer_start": 11}]
    entries = [
        {"id": "Q1", "question": "有多长？", "answers": answers[:1], "is_impossible": False},
        {"id": "Q2", "question": "在哪？", "answers": answers[1:], "extra": None},
        {"id": "Q3", "question": "谁？", "answers": [], "is_impossible": True},
    ]
    paragraph = {"context": CONTEXT.replace("\ud83d", ""), "qas": entries}
    return {"version": "2", "data": [{"title": "长江", "paragraphs": [paragraph]}]}


def other_forms():
    """Yields valid files in other forms, as lists of rows."""
    row = {"id": 3, "context": "长江。", "question": "谁？"}
    yield [{**row, "answers": {"text": ["长江"], "answer_start": [0]}, "is_impossible": "false"}]
    entry = {"query_id": "Q1", "query_text": "谁？", "answers": ["长江"]}
    yield [{"context_text": "长江。", "qas": [entry]}]
    document = {"paragraphs": ["长江。"], "most_related_para": 0}
    found = {"answer_docs": [0], "fake_answers": ["长江"], "answers": ["江"]}
    yield [{"question_id": 1, "question": "谁？", "documents": [document], **found}]


def assert_sound_or_refused(path, content, **options):
    """Asserts what must hold for any file."""
    path.write_bytes(content)
    try:
        questions = read_questions([str(path)], **options)
    except UserError as error:
        assert str(path) in str(error)
        assert_is_one_line(str(error))
        return
    assert questions and len({str(question.id) for question in questions}) == len(questions)
    for question in questions:
        assert str(question.id) and question.text.strip() and question.context.strip()
        for answer in question.answers:
            if answer.start is None:
                assert answer.text not in question.context
            else:
                end = answer.start + len(answer.text)
                assert question.context[answer.start : end] == answer.text
        assert not (question.is_impossible and question.answers)
        assert not question.is_impossible or options["with_impossible"]
        is_found = question.answers and question.answers[0].start is not None
        assert is_found or question.is_impossible or not options["needs_answers"]


def assert_is_one_line(message):
    assert len(message.splitlines()) == 1
    message.encode()  # as printing does


MUTATED = [sound(), *other_forms()]
OPTIONS = st.fixed_dictionaries({"with_impossible": st.booleans(), "needs_answers": st.booleans()})


@laws.examples(300)
@given(values=mutations(MUTATED, "长江", "Q1", 3), options=OPTIONS, skip=st.booleans())
def test_any_json(tmp_path, values, options, skip):
    content = json.dumps(values).encode()
    bad_rows = BadRows(skip)
    options = {**options, "bad_rows": bad_rows}
    assert_sound_or_refused(tmp_path / "questions.json", content, **options)
    if bad_rows.count:
        assert skip
        assert_is_one_line(bad_rows.first)


@laws.examples(200)
@given(data=st.data(), options=OPTIONS)
def test_any_bytes(tmp_path, data, options):
    """Also the bytes of a valid file with some changes."""
    content = bytearray(json.dumps(sound(), ensure_ascii=False).encode())
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    content = data.draw(st.just(bytes(content)) | st.binary(max_size=30))
    assert_sound_or_refused(tmp_path / "questions.json", content, **options)


@laws.examples(100)
@given(
    context=st.text("长江。", min_size=1, max_size=15).filter(str.strip),
    data=st.data(),
    start=st.integers(-3, 20),
)
def test_of_several_places_the_nearest_is_taken(tmp_path, context, data, start):
    first = data.draw(st.integers(0, len(context) - 1))
    text = context[first : data.draw(st.integers(first + 1, len(context)))]
    values = sound()
    (paragraph,) = values["data"][0]["paragraphs"]
    answers = [{"text": text, "answer_start": start}]
    paragraph |= {"context": context, "qas": [{**paragraph["qas"][0], "answers": answers}]}
    path = tmp_path / "questions.json"
    path.write_text(json.dumps(values))
    (question,) = read_questions([str(path)])
    places = [n for n in range(len(context)) if context[n : n + len(text)] == text]
    distances = {place: abs(place - start) for place in places}
    (answer,) = question.answers
    assert distances[answer.start] == min(distances.values())
    assert answer.is_moved == (answer.start != start)
