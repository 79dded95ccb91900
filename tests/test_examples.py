"""The small programs of examples/ that count: their figures of cases worked out by hand."""

import importlib.util
import json

import pytest
from conftest import REPOSITORY

from nezha_tf.data.corpus import read_lines


def program(name):
    """Returns a program of examples/ as a module."""
    spec = importlib.util.spec_from_file_location(name, REPOSITORY / "examples" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def poetry():
    return program("poetry")


QUIET_NIGHT = "床前明月光，疑是地上霜。举头望明月，低头思故乡。"
SEVEN = "朝辞白帝彩云间，千里江陵一日还。两岸猿声啼不住，轻舟已过万重山。"


@pytest.mark.parametrize(
    "text, form",
    (
        (QUIET_NIGHT, "五言绝句"),
        (QUIET_NIGHT * 2, "五言律诗"),
        (SEVEN, "七言绝句"),
        (SEVEN.replace("。", "！"), "七言绝句"),
        (SEVEN * 2, "七言律诗"),
    ),
)
def test_poems_fit_their_form_and_no_other(poetry, text, form):
    assert [name for name in poetry.FORMS if poetry.does_fit(text, name)] == [form]


@pytest.mark.parametrize(
    "text",
    (
        "",
        QUIET_NIGHT[:-1],  # the last mark is missing
        QUIET_NIGHT[1:],
        QUIET_NIGHT + "乡",
        QUIET_NIGHT.replace("光", "a"),
        QUIET_NIGHT.replace("，", ""),
        "《" + QUIET_NIGHT,
        QUIET_NIGHT[:12],
    ),
)
def test_what_fits_no_form(poetry, text):
    assert not any(poetry.does_fit(text, form) for form in poetry.FORMS)


def test_a_poem_is_a_document_and_its_beginning_a_prompt(poetry, tmp_path, capsys):
    poem = f'{{"form": "五言绝句", "title": "静夜思", "text": "{QUIET_NIGHT}"}}\n'
    (tmp_path / "poems.jsonl").write_text(poem * 2, encoding="utf-8")
    paths = [str(tmp_path / name) for name in ("poems.jsonl", "corpus.txt", "prompts.jsonl")]
    poetry.corpus(paths[0], paths[1])
    assert list(read_lines(paths[1])) == [f"五言绝句《静夜思》{QUIET_NIGHT}\n", "\n"] * 2
    poetry.prompts(paths[0], paths[2])
    found = next(iter(read_lines(paths[2])))
    assert found == f'{{"src": "五言绝句《静夜思》", "tgt": "{QUIET_NIGHT}"}}\n'


def write_json(path, **values):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(values), encoding="utf-8")


def test_runs_of_objectives_are_told_as_tables(tmp_path, capsys):
    losses = {"causal": ("next_piece", 1.5), "bidirectional": ("masked_lm", 2.5)}
    for objective, (term, loss) in losses.items():
        results = {"loss": loss, f"{term}_loss": loss, f"{term}_accuracy": 0.25}
        write_json(tmp_path / "pretraining" / objective / "eval_results.json", **results)
    for start, score in (("causal", 0.75), ("random", 0.5)):
        results = {"accuracy": score, "macro_f1": score}
        write_json(tmp_path / "sentiment" / start / "eval_results.json", **results)
    program("compare_starts").main(tmp_path)
    rows = [line for line in capsys.readouterr().out.splitlines() if line and "---" not in line]
    assert rows == [
        "| objective | prediction | loss | accuracy | majority accuracy | perplexity "
        "| bits per character |",
        "| bidirectional | masked_lm | 2.5000 | 0.2500 |  |  |  |",
        "| causal | next_piece | 1.5000 | 0.2500 |  |  |  |",
        "| sentiment, from | accuracy | macro_f1 | seeds |",
        "| random | 0.5000 | 0.5000 | 1 |",
        "| causal | 0.7500 | 0.7500 | 1 |",
    ]
    (tmp_path / "sentiment" / "random" / "eval_results.json").unlink()
    (tmp_path / "sentiment" / "random" / "model.ckpt").touch()
    with pytest.raises(SystemExit, match=r"random.*has not ended"):
        program("compare_starts").main(tmp_path)


def test_perplexities_by_the_length_of_the_memory(tmp_path, capsys):
    for run, length, value in (("with", 0, 9.0), ("with", 64, 7.0), ("without", 0, 8.0)):
        path = tmp_path / run / f"memory_{length}.json"
        write_json(path, next_piece_perplexity=value)
    program("memory_lengths").main(tmp_path)
    assert capsys.readouterr().out.splitlines()[2:] == ["| 0 | 9.00 | 8.00 |", "| 64 | 7.00 | - |"]
    assert (tmp_path / "memory.png").read_bytes().startswith(b"\x89PNG")
