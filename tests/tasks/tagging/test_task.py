"""Named entities from the command: a toy task that is learnt, and mistakes in its flags."""

import dataclasses
import json
import random

import pytest
from commands import QUICK_CONFIG, settings_of
from helpers import assert_is_a_model

from nezha_tf.modeling.finetuning import NezhaForCrfTagging, NezhaForTokenClassification
from nezha_tf.tasks.tagging.settings import TaggingSettings
from nezha_tf.tasks.tagging.task import NamedEntities
from nezha_tf.training import recipe
from nezha_tf.training.run import run
from nezha_tf.util.errors import UserError

CONFIG = {**QUICK_CONFIG, "vocab_size": 26}
SURNAMES, GIVEN, PLACES, OTHERS = "王李", "甲乙丙", "京沪汉津", "一二三四五六七八"
TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *SURNAMES, *GIVEN, *PLACES, *OTHERS]


def sentence(rng, length):
    """Returns (text, entities): a surname with one or two names is a person, a place is a place."""
    text, entities = "", []
    for _ in range(length):
        kind, start = rng.randrange(6), len(text)
        if kind == 0:
            text += rng.choice(SURNAMES) + "".join(rng.choices(GIVEN, k=rng.choice((1, 2))))
            entities.append((start, len(text), "PER"))
            text += rng.choice(OTHERS)
        elif kind == 1:
            text += rng.choice(PLACES) + rng.choice(("市", ""))
            entities.append((start, start + 1, "LOC"))
        else:
            text += rng.choice(OTHERS)
    return text, entities


def tagged(text, entities):
    tags = ["O"] * len(text)
    for start, end, label in entities:
        tags[start:end] = [f"B-{label}"] + [f"I-{label}"] * (end - start - 1)
    return "".join(f"{char} {tag}\n" for char, tag in zip(text, tags, strict=True)) + "\n"


def as_json(text, entities):
    names = ("start", "end", "label")
    entities = [dict(zip(names, entity, strict=True)) for entity in entities]
    return json.dumps({"text": text, "entities": entities}, ensure_ascii=False) + "\n"


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("entities")
    (folder / "vocab.txt").write_text("\n".join(TOKENS))
    (folder / "config.json").write_text(json.dumps(CONFIG))
    rng = random.Random(0)
    train, dev = ([sentence(rng, 12) for _ in range(count)] for count in (300, 38))
    dev += [sentence(rng, 60) for _ in range(2)]
    rng.shuffle(dev)
    (folder / "train.txt").write_text("".join(tagged(*row) for row in train))
    (folder / "dev.jsonl").write_text("".join(as_json(*row) for row in dev))
    (folder / "raw.txt").write_text("".join(f"{text}\n" for text, _ in dev))
    return folder


FLAGS = (
    *("--train_file=train.txt", "--eval_file=dev.jsonl", "--predict_file=raw.txt"),
    *("--vocab_file=vocab.txt", "--bert_config_file=config.json", "--max_seq_length=32"),
    *("--num_train_epochs=4", "--train_batch_size=16", "--nojit_compile"),
)


def settings_for(folder, *flags):
    settings = settings_of(TaggingSettings, *FLAGS, f"--output_dir={folder}", *flags)
    return dataclasses.replace(settings, learning_rate=1e-2)


@pytest.fixture(autouse=True)
def inside(data, monkeypatch):
    monkeypatch.chdir(data)


@pytest.mark.parametrize("changes", (("--crf", "--scheme=BIOES"), ("--predictions_format=tsv",)))
def test_entities_are_learnt(data, tmp_path, changes, capsys):
    settings = settings_for(tmp_path, "--do_train", "--do_eval", "--do_predict", *changes)
    run(settings, NamedEntities)
    output = capsys.readouterr().out
    results = json.loads((tmp_path / "eval_results.json").read_text())
    assert results["f1"] > 0.9 and results["loss"] < 0.5
    right = [json.loads(line) for line in (data / "dev.jsonl").read_text().splitlines()]
    count = sum(len(row["entities"]) for row in right)
    assert "train.txt: 300 sentences with" in output
    assert f"dev.jsonl: 40 sentences with {count:,} entities (LOC " in output
    long = sum(len(row["text"]) > 30 for row in right)
    assert long >= 2 and f"; {long} in several windows" in output

    rows = [line.split("\t") for line in (tmp_path / "ner_report.tsv").read_text().splitlines()]
    assert [row[0] for row in rows] == ["label", "LOC", "PER", "all"]
    assert float(rows[-1][3]) == pytest.approx(results["f1"], abs=1e-4)
    assert int(rows[-1][4]) == int(rows[1][4]) + int(rows[2][4]) == count
    tags = json.loads((tmp_path / "task.json").read_text())["labels"]
    kind = NezhaForCrfTagging if settings.crf else NezhaForTokenClassification
    written = {"task": "tagging", "labels": tags, "window_stride": 15}
    assert_is_a_model(tmp_path, kind, results["global_step"], data / "vocab.txt", **written)
    if not settings.crf:
        assert tags == ["O", "B-LOC", "I-LOC", "B-PER", "I-PER"]
        blocks = (tmp_path / "predictions.tsv").read_text().rstrip("\n").split("\n\n")
        pairs = [[line.split("\t") for line in block.split("\n")] for block in blocks]
        assert ["".join(char for char, _ in rows) for rows in pairs] == [r["text"] for r in right]
        number = sum(tag.startswith("B-") for rows in pairs for _, tag in rows)
        assert number == pytest.approx(count, rel=0.2)
        return
    assert len(tags) == 9 and "S-LOC" in tags
    found = [json.loads(line) for line in (tmp_path / "predictions.jsonl").open()]
    assert [row["text"] for row in found] == [row["text"] for row in right]
    hits = 0
    for mine, theirs in zip(found, right, strict=True):
        assert all(e["text"] == mine["text"][e["start"] : e["end"]] for e in mine["entities"])
        assert all(0 < e.pop("probability") <= 1 and e.pop("text") for e in mine["entities"])
        hits += sum(entity in theirs["entities"] for entity in mine["entities"])
    # The predictions are those of the best checkpoint, whose results the evaluation reports.
    assert hits / count == pytest.approx(results["recall"])

    # The tags are now in the folder, and are read from there.
    settings = dataclasses.replace(settings, do_train=False, do_eval=False)
    assert NamedEntities(settings).task_file_settings()["labels"] == tags
    with pytest.raises(UserError, match=r"--scheme=BIO: the tags of the run in .* are BIOES; lea"):
        NamedEntities(dataclasses.replace(settings, scheme="BIO"))
    (tmp_path / "other.txt").write_text("一 O\n京 B-GPE\n")
    settings = dataclasses.replace(settings, do_eval=True, eval_file=str(tmp_path / "other.txt"))
    with pytest.raises(UserError, match=r"other\.txt, line 2: the label 'GPE' is not one of"):
        NamedEntities(settings)


def test_mistakes_are_one_line(tmp_path):
    settings = settings_for(tmp_path, "--do_train")
    (tmp_path / "none.txt").write_text("一 O\n")
    for changes, message in (
        ({"train_file": None}, "--train_file is needed"),
        ({"train_file": str(tmp_path / "none.txt")}, "none.txt has no entities"),
        ({"window_stride": 31}, "--window_stride=31 leaves gaps between windows of 30 tokens"),
        ({"crf": True, "label_smoothing": 0.1}, "does not work with --crf"),
        ({"do_train": False, "do_predict": True}, "there is no"),
    ):
        with pytest.raises(UserError) as error:
            NamedEntities(dataclasses.replace(settings, **changes))
        assert message in str(error.value) and len(str(error.value).splitlines()) == 1
    # The folder of a run with other tags.
    (tmp_path / "labels.txt").write_text("O\nB-GPE\nI-GPE\nB-LOC\nI-LOC\n")
    with pytest.raises(UserError, match=r"tags of --train_file are O B-LOC I-LOC B-PER I-PER, but"):
        NamedEntities(settings)


def test_what_is_not_as_the_files_have_it_is_said(tmp_path):
    (tmp_path / "odd.txt").write_text("王 I-PER\n甲 I-PER\n\n京 LOC\n\n\u200b B-LOC\n一 O\n")
    arguments = (f"--train_file={tmp_path / 'odd.txt'}", "--skip_bad_rows", "--do_train")
    task = NamedEntities(settings_for(tmp_path, *arguments))
    said = "\n".join(task.notes)
    for words in (
        "2 sentences with 2 entities (LOC 1, PER 1)",
        "bad rows skipped: 1 (the first: ",
        "1 entities break the rules of their scheme",
        "1 entities have no token of their own, so they cannot be found (for example LOC",
    ):
        assert words in said, said


@pytest.mark.parametrize(
    "files, scheme",
    (
        ("dev.jsonl", "BIO"),
        ("dev.jsonl,short.txt", "BIOS"),
        ("train.txt,short.txt,whole.txt", "BIOES"),
        ("dev.jsonl,resume.char.bmes", "BMES"),
    ),
)
def test_the_scheme_is_that_of_the_files(data, tmp_path, monkeypatch, files, scheme):
    """The one with the most kinds of tags; JSON has none."""
    (tmp_path / "short.txt").write_text("京 S-LOC\n王 B-PER\n甲 I-PER\n一 O\n")
    (tmp_path / "whole.txt").write_text("王 B-PER\n甲 E-PER\n一 O\n")
    (tmp_path / "resume.char.bmes").write_text("王 B-PER\n甲 M-PER\n乙 E-PER\n京 S-LOC\n")
    for name in ("train.txt", "dev.jsonl", "vocab.txt", "config.json"):
        (tmp_path / name).symlink_to(data / name)
    monkeypatch.chdir(tmp_path)
    task = NamedEntities(settings_for("out", f"--train_file={files}", "--do_train"))
    assert task.task_file_settings()["scheme"] == scheme


def test_transitions_move_at_their_own_rate(tmp_path):
    task = NamedEntities(settings_for(tmp_path, "--crf", "--warmup_proportion=0", "--do_train"))
    model = task.make_model("float32")
    optimizer = recipe.make(task.settings, model, task.rate_factors).optimizer
    before = [variable.numpy() for variable in model.trainable_variables]
    optimizer.apply([v * 0 + 1.0 for v in before], model.trainable_variables)
    for variable, old in zip(model.trainable_variables, before, strict=True):
        step = abs(variable.numpy() - old).max()
        # The second moment starts at a thousandth of the square: sqrt(0.001); m starts at a tenth.
        expected = 1e-2 * 0.1 / 0.001**0.5 * (100 if "/crf/" in variable.path else 1)
        assert step == pytest.approx(expected, rel=0.05), variable.path


def test_exports_are_read_and_written_again(tmp_path):
    """A folder of brat's files and other exports, from the flags to the files of predictions."""
    text, (end, start) = "王甲一\n京市", (2, 4)
    for folder, words in (("brat", text), ("brat/inner", "一二")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.txt").write_text(words)
        (tmp_path / folder / "a.ann").write_text("")
    ann = f"T1\tPER 0 {end}\t王甲\nT2\tLOC {start} 5\t京\n"
    (tmp_path / "brat" / "a.ann").write_text(ann + "#1\tNote T1\t?\n")
    row = {"id": 3, "text": text, "label": [[0, end, "PER"], [start, 5, "LOC"]]}
    (tmp_path / "doccano.jsonl").write_text(json.dumps(row, ensure_ascii=False) + "\n")
    (tmp_path / "raw.txt").write_text("一二三\n")
    names = ("brat", "doccano.jsonl", "raw.txt")
    files = ",".join(str(tmp_path / name) for name in names)
    flags = (f"--train_file={tmp_path / 'brat'}", f"--predict_file={files}")
    settings = settings_for(tmp_path, "--do_train", "--do_predict", *flags)
    task = NamedEntities(settings)
    entities = [sentence.entities for sentence in task.examples["train"].sentences]
    assert entities == [[(0, 2, "PER"), (4, 5, "LOC")], []]
    assert any("brat: notes of brat, passed over: 1" in note for note in task.notes)
    ids = task.examples["predict"].arrays["label_ids"]
    outputs = {"tag_ids": ids, "probabilities": [i * 0 + 1.0 for i in ids]}
    task.write_predictions(outputs)
    assert task.measure("predict", outputs) == {}
    found = {path.name: path.read_text() for path in (tmp_path / "predictions").iterdir()}
    doccano = (tmp_path / "doccano.jsonl").read_text()
    assert found == {"a.ann": ann, "a_2.ann": "", "doccano.jsonl": doccano}
    assert len((tmp_path / "predictions.jsonl").read_text().splitlines()) == 4

    (tmp_path / "brat" / "a.ann").write_text("T1\tPER 0 9\t王甲\n")
    bad = dataclasses.replace(settings, do_predict=False)
    with pytest.raises(UserError, match=r"a.ann, line 1: an entity from 0 to 9"):
        NamedEntities(bad)
    skipping = dataclasses.replace(bad, skip_bad_rows=True)
    with pytest.raises(UserError, match=r"--train_file=.*brat has no entities; bad rows skipped: "):
        NamedEntities(skipping)
    (tmp_path / "brat" / "inner" / "a.ann").unlink()
    evaluated = {"eval_file": str(tmp_path / "brat"), "train_file": str(tmp_path / "doccano.jsonl")}
    with pytest.raises(UserError, match=r"--eval_file=.*brat has no valid sentence; bad rows skip"):
        NamedEntities(dataclasses.replace(skipping, do_eval=True, **evaluated))
