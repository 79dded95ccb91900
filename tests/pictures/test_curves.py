"""Curves: what is drawn is what was recorded, and a mistake is one line and no file."""

import json
import sys

import pytest
from commands import assert_one_line, run

from nezha_tf.checkpoints.run_folder import read_metrics
from nezha_tf.pictures import curves as plot
from nezha_tf.pictures.settings import PlotSettings
from nezha_tf.util.errors import UserError


def record(folder, factor=1.0, parts=("embeddings", "layer_0", "heads"), **more):
    """Writes a record of eight entries, two of them with held-out values; returns the folder."""
    folder.mkdir()
    lines = []
    for step in range(10, 90, 10):
        entry = {"step": step, "masked_lm_loss": factor * 100 / step, "learning_rate": step / 1e4}
        entry |= {f"trust_ratio/{part}": step * (i + 1.0) for i, part in enumerate(parts)}
        lines.append({**entry, **more})
        if step in (40, 80):
            lines.append({"step": step, "eval_masked_lm_loss": factor * 120 / step})
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (folder / "metrics.jsonl").write_text(text)
    return folder


def drawn(folders, metrics, **options):
    """Draws runs named by their folders; returns the panels by title."""
    runs = [plot.RunCurves(folder.name, read_metrics(folder)) for folder in folders]
    figure = plot.draw(runs, metrics, **options)
    return figure, {panel.get_title(): panel for panel in figure.axes}


def lines_of(panel):
    return {line.get_label(): list(zip(*line.get_data(), strict=True)) for line in panel.lines}


def test_lines_hold_what_the_runs_recorded(tmp_path):
    folders = [record(tmp_path / "a"), record(tmp_path / "b", factor=2.0, loss_scale=8.0)]
    figure, panels = drawn(folders, ["masked_lm_loss", "learning_rate", "loss_scale"])
    steps = range(10, 90, 10)
    assert lines_of(panels["masked-LM loss"]) == {
        "a masked_lm_loss": [(step, 100 / step) for step in steps],
        "a eval_masked_lm_loss": [(40, 3.0), (80, 1.5)],
        "b masked_lm_loss": [(step, 200 / step) for step in steps],
        "b eval_masked_lm_loss": [(40, 6.0), (80, 3.0)],
    }
    assert lines_of(panels["learning rate"])["b learning_rate"][2] == (30, 30 / 1e4)
    # A run without the metric is not in its panel.
    assert lines_of(panels["loss scale"]) == {"b loss_scale": [(step, 8.0) for step in steps]}
    [legend] = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["a", "b", "training", "held out"]
    # A run has one colour, and held-out values have marks.
    looks = {
        line.get_label(): (line.get_color(), line.get_marker())
        for title in ("masked-LM loss", "learning rate")
        for line in panels[title].lines
    }
    assert len({color for color, _ in looks.values()}) == 2
    for label, (color, marker) in looks.items():
        assert color == looks[f"{label[0]} masked_lm_loss"][0]
        assert marker == ("o" if "eval_" in label else "None"), label


def test_trust_ratios_by_part_for_one_run_and_as_means_for_several(tmp_path):
    folders = [record(tmp_path / "a"), record(tmp_path / "b", parts=("layer_0",))]
    _, panels = drawn(folders[:1], ["trust_ratio"])
    lines = lines_of(panels["LAMB trust ratio"])
    assert list(lines) == ["embeddings", "layer_0", "heads"]
    assert lines["heads"][0] == (10, 30.0) and lines["layer_0"][7] == (80, 160.0)
    _, panels = drawn(folders, ["trust_ratio"])
    lines = lines_of(panels["LAMB trust ratio, mean of all parts"])
    assert lines["a trust_ratio"][0] == (10, 20.0)
    assert lines["b trust_ratio"][7] == (80, 80.0)
    # A legend of many parts stays small.
    parts = ["embeddings", *(f"layer_{index}" for index in range(24)), "pooler", "heads"]
    _, panels = drawn([record(tmp_path / "c", parts=parts)], ["trust_ratio"])
    panel = panels["LAMB trust ratio"]
    assert len(panel.lines) == 27
    named = [text.get_text() for text in panel.get_legend().get_texts()]
    assert len(named) == 6 and named[0] == "embeddings" and named[-1] == "heads"


def test_smoothing_averages_training_values_and_nothing_else(tmp_path):
    folder = record(tmp_path / "a")
    _, panels = drawn([folder], ["masked_lm_loss", "learning_rate"], smoothing=3)
    lines = lines_of(panels["masked-LM loss"])
    smoothed = dict(lines["a masked_lm_loss"])
    assert smoothed[20] == pytest.approx((100 / 10 + 100 / 20 + 100 / 30) / 3)
    assert (smoothed[10], smoothed[80]) == (100 / 10, 100 / 80)
    assert dict(lines["a masked_lm_loss, raw"])[20] == 100 / 20
    assert lines["a eval_masked_lm_loss"] == [(40, 3.0), (80, 1.5)]
    assert list(lines_of(panels["learning rate"])) == ["a learning_rate"]


@pytest.mark.parametrize(
    "count, grid", [(1, (1, 1)), (3, (1, 3)), (4, (2, 2)), (7, (2, 4)), (9, (3, 3)), (25, (7, 4))]
)
def test_the_grid_fits_the_number_of_panels(count, grid):
    assert plot._grid(count) == grid


def test_labels_are_shown_as_they_are(tmp_path):
    """matplotlib would leave out the first, and take the second for a formula."""
    folders = [record(tmp_path / "a"), record(tmp_path / "b")]
    runs = [
        plot.RunCurves(label, read_metrics(folder))
        for label, folder in zip(("_a", "$x^$"), folders, strict=True)
    ]
    figure = plot.draw(runs, ["masked_lm_loss"])
    figure.draw_without_rendering()
    [legend] = figure.legends
    assert [text.get_text() for text in legend.get_texts()][:2] == ["_a", "$x^$"]


def test_one_picture_is_written(tmp_path):
    folder = record(tmp_path / "run", masked_lm_accuracy=float("nan"), gradient_norm=float("inf"))
    before = set(tmp_path.rglob("*"))
    assert plot.plot_curves(str(folder)) == str(folder / "curves.png")
    path = str(tmp_path / "new" / "two.png")
    plot_runs(runs=(str(folder), str(folder)), output_file=path, labels=("a", "b"))
    written = set(tmp_path.rglob("*")) - before
    assert written == {folder / "curves.png", tmp_path / "new", tmp_path / "new" / "two.png"}
    for path in (folder / "curves.png", tmp_path / "new" / "two.png"):
        assert path.read_bytes().startswith(b"\x89PNG")


def plot_runs(**values):
    return plot.plot_runs(PlotSettings(**values))


def test_nothing_is_left_half_written(tmp_path, monkeypatch):
    from matplotlib.figure import Figure

    def fail(self, file, **_):
        file.write(b"\x89PNG")
        raise OSError(28, "No space left on device")

    folder = record(tmp_path / "run")
    (folder / "curves.png").write_bytes(b"the old one")
    before = set(tmp_path.rglob("*"))
    monkeypatch.setattr(Figure, "savefig", fail)
    with pytest.raises(OSError, match="No space left"):
        plot.plot_curves(str(folder))
    assert set(tmp_path.rglob("*")) == before
    assert (folder / "curves.png").read_bytes() == b"the old one"


def test_mistakes_are_told(tmp_path, monkeypatch):
    folder, empty = str(record(tmp_path / "run")), tmp_path / "empty"
    empty.mkdir()
    picture = str(tmp_path / "curves.png")
    for changes, parts in (
        ({"runs": (folder, str(empty))}, [str(empty), "metrics.jsonl", "--output_dir"]),
        ({"labels": ("a", "b")}, ["--labels has 2", "--runs has 1"]),
        ({"metrics": ("los",)}, ["'los'", "learning_rate, masked_lm_loss, trust_ratio"]),
        ({"output_file": picture.replace("png", "pdf")}, ["--output_file", "curves.pdf", "PNG"]),
        ({"runs": None}, ["--runs is needed"]),
        ({"output_file": None}, ["--output_file is needed"]),
    ):
        with pytest.raises(UserError) as error:
            plot_runs(**{"runs": (folder,), "output_file": picture, **changes})
        assert all(part in str(error.value) for part in parts), error.value
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(UserError, match=r"pip install -e '\.\[plot\]'"):
        plot_runs(runs=(folder,), output_file=picture)
    assert not list(tmp_path.glob("curves*"))


@pytest.mark.processes
def test_the_command_draws_runs_and_tells_mistakes_in_one_line(tmp_path):
    record(tmp_path / "a")
    record(tmp_path / "b", factor=2.0)
    tool, only = "tools/plot_metrics.py", "--metrics=masked_lm_loss"
    result = run(tool, "--runs=a,b", "--output_file=curves.png", only, folder=tmp_path)
    assert result.returncode == 0 and result.stderr == "", result.stderr
    assert result.stdout == "curves in curves.png\n"
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")
    result = run(tool, "--runs=a,none", "--output_file=more.png", folder=tmp_path)
    assert_one_line(result, "none has no metrics.jsonl")
    assert not (tmp_path / "more.png").exists()


def test_metrics_of_any_objective_are_drawn_and_those_of_a_part_by_name(tmp_path):
    more = {"next_token_loss": 3.0, "next_token_loss/causal": 2.0, "next_sentence_loss": 0.6}
    runs = [plot.RunCurves("a", read_metrics(record(tmp_path / "a", **more)))]
    usual = plot._chosen((), runs)
    assert usual == ["next_token_loss", "masked_lm_loss", "learning_rate", "trust_ratio"]
    assert plot._chosen(("next_token_loss/causal",), runs) == ["next_token_loss/causal"]
    named = ("eval_masked_lm_loss", "learning_rate", "masked_lm_loss")  # as in the record
    assert plot._chosen(named, runs) == ["masked_lm_loss", "learning_rate"]
    _, panels = drawn([tmp_path / "a"], ["next_token_loss/causal"])
    [lines] = lines_of(panels["next token loss, causal"]).values()
    assert lines == [(step, 2.0) for step in range(10, 90, 10)]
    with pytest.raises(UserError, match=r"trust_ratio/heads.*choose from.*next_token_loss/causal"):
        plot._chosen(("trust_ratio/heads",), runs)
