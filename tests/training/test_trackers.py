"""Runs recorded by MLflow and by Weights & Biases, read back from what they store."""

import sys

import pytest
import toy_task
from toy_finetuning import settings_in
from toy_task import ToyTask

from nezha_tf.checkpoints.run_folder import read_metrics
from nezha_tf.tasks.finetuning import sweep
from nezha_tf.training import trackers
from nezha_tf.util.errors import Terminated, UserError


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("toy")
    toy_task.write_files(folder)
    return folder


def run(name, data, out, **changes):
    changes = {"do_predict": False, "log_steps": 2, "num_train_epochs": 1.0, **changes}
    record = (f"nezha_tf.training.trackers:{name}",)
    sweep.run(settings_in(data, out, record=record, **changes), ToyTask)


@pytest.fixture
def client(tmp_path, monkeypatch):
    """A client of a store of MLflow in files, for which the runs are set up."""
    mlflow = pytest.importorskip("mlflow", reason="pip install -e '.[mlflow]'")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", (tmp_path / "mlruns").as_uri())
    return mlflow.MlflowClient()


def metric(client, run, name):
    """Returns [(step, value)] of a metric."""
    return [(m.step, m.value) for m in client.get_metric_history(run.info.run_id, name)]


def entries(folder, name):
    return [(entry["step"], entry[name]) for entry in read_metrics(str(folder)) if name in entry]


def test_mlflow_has_a_run_that_goes_on(data, client, tmp_path):
    out = tmp_path / "out"
    with pytest.raises(UserError, match="diverged"):
        run("MLflow", data, out, divergence_factor=1e-9, divergence_patience=1)
    (found,) = client.search_runs(["0"])
    assert found.info.status == "FAILED" and found.info.run_name == str(out)
    run("MLflow", data, out)
    (found,) = client.search_runs(["0"])
    assert found.info.status == "FINISHED"
    assert (out / "mlflow_run.txt").read_text() == f"{found.info.run_id}\n"
    params = found.data.params
    assert (params["learning_rate"], params["do_eval"]) == ("0.01", "true")
    assert "divergence_factor from step 0" in found.data.tags
    run("MLflow", data, out, num_train_epochs=2.0)
    (found,) = client.search_runs(["0"])
    assert found.info.status == "FINISHED" and found.data.params == params
    assert found.data.tags["num_train_epochs from step 3"] == "2.0"
    assert params["num_train_epochs"] == "1.0"
    # The first step to be logged came twice.
    assert metric(client, found, "loss")[1:] == entries(out, "loss")
    assert metric(client, found, "eval_accuracy") == entries(out, "eval_accuracy")
    assert (
        metric(client, found, "results/eval accuracy")[-1][1]
        == entries(out, "eval_accuracy")[-1][1]
    )
    assert "results/train loss" not in found.data.metrics


def test_mlflow_has_a_run_for_each_member_of_a_sweep(data, client, tmp_path):
    out = tmp_path / "out"
    run("MLflow", data, out, learning_rate=("0.01", "0.02"))
    found = client.search_runs(["0"])
    assert {(run.info.run_name, run.data.params["learning_rate"]) for run in found} == {
        (str(out / f"lr_{rate}" / "seed_12345"), rate) for rate in ("0.01", "0.02")
    }
    assert {run.info.status for run in found} == {"FINISHED"}


@pytest.mark.parametrize(
    "error, status",
    (
        (Terminated(), "KILLED"),
        (KeyboardInterrupt(), "KILLED"),
        (ValueError(), "FAILED"),
        (None, "FINISHED"),
    ),
)
def test_mlflow_is_told_how_a_run_ends(client, tmp_path, error, status):
    record = trackers.MLflow()
    record.start(str(tmp_path), {"pattern": "", "labels": ("好", "a,b")}, 0)
    record.scalars(2, {"f1/人名(other)": 1})
    record.end({"train loss": 1.0, "predict f1": 0.5}, error)
    (found,) = client.search_runs(["0"])
    assert found.info.status == status
    assert found.data.params == {"pattern": "", "labels": '好,"a,b"'}
    assert found.data.metrics == {"f1/人名_other_": 1.0, "results/predict f1": 0.5}


def test_mlflow_nests_in_a_run_of_the_caller(client, tmp_path):
    import mlflow

    with mlflow.start_run(run_name="mine") as mine:
        record = trackers.MLflow()
        record.start(str(tmp_path), {}, 0)
        record.end({}, None)
        assert mlflow.active_run().info.run_id == mine.info.run_id
    parents = {
        run.info.run_name: run.data.tags.get("mlflow.parentRunId")
        for run in client.search_runs(["0"])
    }
    assert parents == {"mine": None, str(tmp_path): mine.info.run_id}


def test_a_run_that_the_store_does_not_have_is_told(data, client, tmp_path, capsys):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mlflow_run.txt").write_text("0123456789abcdef0123456789abcdef\n")
    run("MLflow", data, tmp_path / "out")
    (line,) = (line for line in capsys.readouterr().out.splitlines() if "warning: --re" in line)
    assert "failed in start" in line and "0123456789abcdef" in line
    assert entries(tmp_path / "out", "eval_accuracy")


def test_weights_and_biases_have_a_run_that_goes_on(data, tmp_path, monkeypatch):
    pytest.importorskip("wandb", reason="pip install -e '.[wandb]'")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    out = tmp_path / "out"
    run("WandB", data, out)
    run("WandB", data, out, num_train_epochs=2.0)
    own = (out / "wandb_run.txt").read_text().strip()
    stored = sorted(out.glob(f"wandb/offline-run-*/run-{own}.wandb"))
    assert len(stored) == 2
    contents = [path.read_bytes() for path in stored]
    for content in contents:
        for word in ("learning_rate", "eval_accuracy", "results/eval accuracy", str(out)):
            assert word.encode() in content
    # The values are JSON in the records.
    for step, value in entries(out, "eval_accuracy"):
        assert repr(value).encode() in contents[step > 3]


@pytest.mark.parametrize("name, module", (("MLflow", "mlflow"), ("WandB", "wandb")))
def test_a_library_that_is_missing_is_one_line(data, tmp_path, monkeypatch, name, module):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(UserError, match=rf"this record needs .*pip install -e '\.\[{module}\]'"):
        run(name, data, tmp_path / "out")
    assert not (tmp_path / "out").exists()
