"""Each data set in the format in which it is published."""

import json

import pytest

from nezha_tf.tasks.classification.data import read_part
from nezha_tf.tasks.classification.data_sets import DATA_SETS, data_set_of
from nezha_tf.tasks.classification.labels import LABEL_TYPES
from nezha_tf.tasks.classification.settings import ClassificationSettings as Settings
from nezha_tf.tasks.finetuning.data_sets import files_of
from nezha_tf.util.errors import UserError

XNLI_HEADER = "language\tgold_label\tsentence1_binary_parse\tsentence1\tsentence2\tpromptID"


def objects(*rows):
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def pair(first, second, **more):
    return {"sentence1": first, "sentence2": second, **more}


def texts_of(found):
    return [(text.text, text.text_pair, text.label) for text in found.texts]


def read(folder, name, part, content, skip_bad_rows=False, data_set=None, file="auto"):
    if content is not None:
        (folder / file).parent.mkdir(exist_ok=True)
        (folder / file).write_text(content, encoding="utf-8")
    data_set = data_set or DATA_SETS[name]
    paths = files_of(data_set, part, Settings(data_dir=str(folder)))
    assert paths == [str(folder / file)]
    return read_part(data_set, part, paths, skip_bad_rows)


@pytest.mark.parametrize(
    "name, part, file, content, expected",
    (
        ("chnsenti", "train", "train.tsv", "label\ttext_a\n1\t好，好\n0\t差\n", "好，好  1|差  0"),
        ("chnsenti", "eval", "dev.tsv", "qid\tlabel\ttext_a\n0\t1\t好\n", "好  1"),
        # Huawei's.
        ("chnsenti", "train", "train.tsv", '1\t"好，好\n\n0\t差\n', '"好，好  1|差  0'),
        ("chnsenti", "eval", "dev.tsv", "text_a\tlabel\n好\t1\n", "好  1"),
        ("chnsenti", "predict", "test.tsv", "qid\ttext_a\n0\t好\n1\t差", "好  |差  "),
        ("lcqmc", "train", "train.tsv", "text_a\ttext_b\tlabel\n甲\t乙\t1\n", "甲 乙 1"),
        ("lcqmc", "eval", "dev.txt", '甲"\t乙\t0\n丙\t丁\t1\n', '甲" 乙 0|丙 丁 1'),
        ("lcqmc", "predict", "test.txt", "甲\t乙\n", "甲 乙 "),
        (
            "xnli",
            "train",
            "multinli/multinli.train.zh.tsv",
            "甲\t乙\tcontradictory\n丙\t丁\tneutral\n",
            "甲 乙 contradiction|丙 丁 neutral",
        ),
        (
            "xnli",
            "eval",
            "xnli.dev.tsv",
            f"{XNLI_HEADER}\nar\tneutral\t\tx\ty\t1\nzh\tentailment\t\t甲\t乙\t1\n",
            "甲 乙 entailment",
        ),
        (
            "ocnli",
            "train",
            "train.50k.json",
            objects(pair("甲", "乙", label="neutral", id=1), pair("丙", "丁", label="-")),
            "甲 乙 neutral",
        ),
        ("ocnli", "eval", "dev.jsonl", objects(pair("甲", "乙", label="neutral")), "甲 乙 neutral"),
        ("ocnli", "predict", "test_public.json", objects(pair("甲", "乙", id=0)), "甲 乙 "),
        # Examples to predict are kept and have no label.
        (
            "ocnli",
            "predict",
            "test.json",
            objects(pair("甲", "乙", id=0), pair("丙", "丁", label="-")),
            "甲 乙 |丙 丁 ",
        ),
    ),
)
def test_a_data_set_as_it_is_spread(tmp_path, name, part, file, content, expected):
    found = read(tmp_path, name, part, content, file=file)
    written = [" ".join(text or "" for text in row) for row in texts_of(found)]
    assert "|".join(written) == expected
    note = found.note("texts", len(found.texts), 0)
    assert ("agreed label: 1" in note) == ('"-"' in content)


def test_the_first_file_that_is_there_goes(tmp_path):
    for name in ("train.jsonl", "train_few_all.json"):
        (tmp_path / name).write_text(objects(pair("甲", "乙", label="neutral")))
    content = objects(pair("丙", "丁", label="neutral"))
    found = read(tmp_path, "ocnli", "train", content, file="train.json")
    assert texts_of(found) == [("丙", "丁", "neutral")]
    data_set = DATA_SETS["ocnli"]
    settings = Settings(data_dir=str(tmp_path))
    with pytest.raises(UserError, match=r"has no dev\.json or dev\.jsonl or .*; or pass --eval_"):
        files_of(data_set, "eval", settings)
    # A user's own file with the same columns.
    settings = Settings(eval_file=str(tmp_path / "train.jsonl"))
    paths = files_of(data_set, "eval", settings)
    assert texts_of(read_part(data_set, "eval", paths, False)) == [("甲", "乙", "neutral")]
    with pytest.raises(UserError, match="--data_dir is needed"):
        files_of(data_set, "eval", Settings())
    with pytest.raises(UserError, match="--train_file is needed"):
        custom = data_set_of(Settings(task_name="custom"))
        files_of(custom, "train", Settings(data_dir=str(tmp_path)))


def test_columns_of_ones_own(tmp_path):
    names = {"text_column": "q", "text_pair_column": "a", "label_column": "y"}
    names["task_name"] = "custom"
    (tmp_path / "a.csv").write_text('n,y,a,q\n1,是,"乙,\n乙",甲\n')
    data_set = data_set_of(Settings(**names))
    found = read_part(data_set, "train", [str(tmp_path / "a.csv")], False)
    assert texts_of(found) == [("甲", "乙,\n乙", "是")]
    (tmp_path / "b.tsv").write_text("是\t乙\t甲\n")
    data_set = data_set_of(Settings(**names, columns=("y", "a", "q")))
    found = read_part(data_set, "train", [str(tmp_path / "b.tsv")], False)
    assert texts_of(found) == [("甲", "乙", "是")]
    with pytest.raises(UserError, match="--columns=y,q has no 'a'; name it with --text_pair_col"):
        data_set_of(Settings(**names, columns=("y", "q")))
    with pytest.raises(UserError, match="--task_name is needed"):
        data_set_of(Settings())


def test_an_empty_cell_is_no_class_where_there_may_be_several(tmp_path):
    several = data_set_of(Settings(task_name="custom", label_type="multi"))
    (tmp_path / "a.tsv").write_text("text\tlabel\n甲\t\n乙\ta,b\n")
    paths = [str(tmp_path / "a.tsv")]
    found = read_part(several, "train", paths, False)
    assert texts_of(found) == [("甲", None, ""), ("乙", None, "a,b")]
    labels = LABEL_TYPES["multi"](["a", "b"], ",")
    assert [labels.encode(text.label) for text in found.texts] == [[0, 0], [1, 1]]
    # Of what is to be predicted, the classes need not be known.
    assert read_part(several, "predict", paths, False).texts[0].label is None
    with pytest.raises(UserError, match="line 2: label is empty"):
        read_part(data_set_of(Settings(task_name="custom")), "train", paths, False)
    # A label that is not there is not an empty one.
    for name, content, message in (
        ("a.json", '{"text": "甲"}', '"label" is missing'),
        ("b.json", '{"text": "甲", "label": null}', "label is empty"),
        ("a.txt", "text\tlabel\n甲", "1 columns"),
        ("b.txt", "text\tother\n甲\t乙", "there is no column 'label'"),
        ("c.txt", "text\tlabel\n\ta", "text is empty"),
    ):
        (tmp_path / name).write_text(content)
        with pytest.raises(UserError, match=message):
            read_part(several, "train", [str(tmp_path / name)], False)


def test_the_real_ones(shared_data):
    settings = Settings(task_name="custom", columns=("text", "label"))
    path = str(shared_data / "sentiment" / "dev.tsv")
    found = read_part(data_set_of(settings), "eval", [path], False)
    assert len(found.texts) == 2111 and {text.label for text in found.texts} == {"0", "1"}
    for name, folder, part, count in (
        ("ocnli", "ocnli", "eval", 1400),
        ("tnews", "fewclue/tnews", "train", 1185),
        ("iflytek", "fewclue/iflytek", "eval", 1373),
        ("wsc", "fewclue/cluewsc", "train", 160),
        ("csl", "fewclue/csl", "eval", 160),
        ("bustm", "fewclue/bustm", "train", 160),
    ):
        paths = files_of(DATA_SETS[name], part, Settings(data_dir=str(shared_data / folder)))
        found = read_part(DATA_SETS[name], part, paths, False)
        assert len(found.texts) + found.unlabelled == count
        assert {text.label for text in found.texts} <= {*DATA_SETS[name].labels}


def spans(first, start, second, at):
    return {"span1_text": first, "span1_index": start, "span2_text": second, "span2_index": at}


@pytest.mark.parametrize(
    "name, row, expected",
    (
        ("tnews", {"sentence": "甲", "label": 115, "label_desc": "农"}, ("甲", None, "115")),
        ("iflytek", {"sentence": "甲", "label": "118"}, ("甲", None, "118")),
        ("cmnli", pair("甲", "乙", label="neutral"), ("甲", "乙", "neutral")),
        ("bustm", pair("甲", "乙", label="1"), ("甲", "乙", "1")),
        # Places count the white space in front of a text.
        (
            "wsc",
            {"text": " 他说甲好", "target": spans("甲", 3, "他", 1), "label": "true"},
            (" [他]说_甲_好", None, "true"),
        ),
        (
            "wsc",
            {"text": "甲说他好", "target": spans("甲", 0, "他", 2), "label": False},
            ("_甲_说[他]好", None, "false"),
        ),
        ("csl", {"abst": "文", "keyword": ["甲", "乙"], "label": "1"}, ("甲 乙", "文", "1")),
    ),
)
def test_a_task_of_clue(tmp_path, name, row, expected):
    """Also under FewCLUE's names; a test set has ids and no labels."""
    found = read(tmp_path, name, "train", objects(row), file="train.json")
    assert texts_of(found) == [expected] and found.texts[0].id is None
    assert expected[2] in DATA_SETS[name].labels
    (tmp_path / "few").mkdir()
    found = read(tmp_path / "few", name, "eval", objects(row), file="dev_few_all.json")
    assert texts_of(found) == [expected]
    test = {**{key: value for key, value in row.items() if key != "label"}, "id": 3}
    found = read(tmp_path, name, "predict", objects(test), file="test1.0.json")
    assert texts_of(found) == [(*expected[:2], None)] and found.texts[0].id == "3"
    assert DATA_SETS[name].is_pair == (expected[1] is not None)


def test_the_classes_of_clue():
    labels = DATA_SETS["tnews"].labels
    assert len(labels) == 15 and not {"105", "111"} & {*labels} and labels[-1] == "116"
    assert DATA_SETS["iflytek"].labels == tuple(str(number) for number in range(119))


@pytest.mark.parametrize(
    "name, row, message",
    (
        (
            "wsc",
            {"text": "甲说他好", "target": spans("甲", 1, "他", 2)},
            "span1_text '甲' is not at",
        ),
        ("wsc", {"text": "甲说他好", "target": spans("甲", 0, "他", -2)}, "span2_text '他' is not"),
        ("wsc", {"text": "甲说他好", "target": spans("甲说", 0, "说", 1)}, "the spans .* overlap"),
        ("wsc", {"text": "甲", "target": {"span1_text": "甲"}}, "lacks span1_text .* or span1_i"),
        ("csl", {"abst": "文", "keyword": "甲"}, '"keyword" is not a list of texts'),
    ),
)
def test_a_row_that_does_not_fit_its_task(tmp_path, name, row, message):
    content = objects({**row, "label": "true"})
    with pytest.raises(UserError, match=rf"train\.json, line 1: .*{message}"):
        read(tmp_path, name, "train", content, file="train.json")
