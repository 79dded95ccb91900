"""Shards made by Spark, on a cluster of separate processes, equal those of the tool itself."""

import importlib.util
import os
import signal
import subprocess
import sys

import pytest
from any_engine import arguments_of, contents, create, write_corpus
from conftest import REPOSITORY
from spark_cluster import Cluster
from waiting import ended, wait_until

from nezha_tf.corpus.runners import spark, work
from nezha_tf.util.errors import UserError

needs_spark = pytest.mark.skipif(
    importlib.util.find_spec("pyspark") is None,
    reason="pyspark is not installed: pip install -e '.[spark]'",
)
LOCAL = "--master=local[2] --conf spark.ui.enabled=false"
# Enough work that a job is not over before something is killed.
LONG = {"num_output_shards": 24, "dupe_factor": 20}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return write_corpus(tmp_path_factory.mktemp("corpus"), repetitions=6)


@pytest.fixture(scope="module")
def local(corpus, tmp_path_factory):
    """What the tool itself makes of `LONG`."""
    folder = tmp_path_factory.mktemp("local")
    create(corpus, folder, num_workers=2, **LONG)
    return contents(folder)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with Cluster(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


def begin(cluster, corpus, folder):
    """Starts the tool with `LONG` on the cluster."""
    options = f"--master={cluster.address} --conf spark.ui.enabled=false"
    flags = arguments_of(corpus, folder, runner="spark", spark_options=options, **LONG)
    return subprocess.Popen(
        [sys.executable, str(REPOSITORY / "tools" / "create_pretraining_data.py")]
        + [f"--{name}={value}" for name, value in flags.items()],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_for_shards(folder, count, process):
    wait_until(lambda: len(list(folder.glob("*.tfrecord"))) >= count, process)


@pytest.mark.processes
@needs_spark
@pytest.mark.timeout(400)
def test_a_cluster_gives_the_same_bytes_also_after_a_machine_and_the_driver_died(
    corpus, cluster, local, tmp_path
):
    process = begin(cluster, corpus, tmp_path)
    wait_for_shards(tmp_path, 3, process)
    process.kill()  # the driver
    ended(process)
    left = {name: data for name, data in contents(tmp_path).items() if name.endswith(".tfrecord")}
    assert 3 <= len(left) < 25
    assert all(local[name] == data for name, data in left.items())

    process = begin(cluster, corpus, tmp_path)
    wait_for_shards(tmp_path, len(left) + 4, process)
    cluster.kill_worker(0)
    result = ended(process)
    assert result.returncode == 0, result.stderr
    assert not result.stderr
    assert "there already" in result.stdout
    assert contents(tmp_path) == local


@pytest.mark.processes
@needs_spark
def test_on_this_machine_and_after_an_interrupt(corpus, local, tmp_path):
    class Here:
        address = "local[2]"

    process = begin(Here, corpus, tmp_path)
    wait_for_shards(tmp_path, 3, process)
    process.send_signal(signal.SIGINT)
    result = ended(process)
    assert (result.returncode, result.stderr.count("\n")) == (130, 1), result.stderr
    create(corpus, tmp_path, runner="spark", spark_options=LOCAL, **LONG)
    assert contents(tmp_path) == local


@pytest.mark.processes
@needs_spark
def test_mistakes_of_workers_are_one_line_and_their_defects_are_defects(
    corpus, tmp_path, monkeypatch
):
    (tmp_path / "train-00002-of-00005.tfrecord.json").mkdir()
    message = r"^worker on .*: cannot read .*train-00002-of-00005\.tfrecord\.json: Is a directory$"
    with pytest.raises(UserError, match=message):
        create(corpus, tmp_path, runner="spark", spark_options=LOCAL)
    # Workers find no module of the tests, as they would not find a package that is not installed.
    monkeypatch.setattr(work, "make_one", write_corpus)
    with pytest.raises(UserError, match="workers' Python says No module named 'any_engine'"):
        create(corpus, tmp_path / "new", runner="spark", spark_options=LOCAL)
    monkeypatch.setattr(work, "make_one", lambda shared, place: 1 // 0)
    with pytest.raises(Exception, match="by zero") as caught:
        create(corpus, tmp_path / "new", runner="spark", spark_options=LOCAL)
    assert not isinstance(caught.value, UserError)


@pytest.mark.processes
@needs_spark
@pytest.mark.parametrize(
    "options, message",
    [
        ("--masters=local", "Unrecognized option"),
        ("--conf color=red", "Spark's properties begin with spark"),
        ("local[2]", "is no option"),
        ("--name='a", "No closing quotation"),
        ("--master=nonsense", "nonsense"),
    ],
)
def test_options_that_spark_does_not_know_are_one_line(corpus, tmp_path, options, message):
    with pytest.raises(UserError, match=message) as caught:
        create(corpus, tmp_path / "new", runner="spark", spark_options=options)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "new").exists()


def test_what_is_not_installed_is_one_line(corpus, tmp_path, monkeypatch):
    monkeypatch.setattr(spark.shutil, "which", lambda name: None)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    if importlib.util.find_spec("pyspark"):
        with pytest.raises(UserError, match="needs Java 17 or later: install it"):
            create(corpus, tmp_path / "new", runner="spark")
    monkeypatch.setitem(sys.modules, "pyspark", None)
    with pytest.raises(UserError, match=r"needs pyspark .*pip install -e '\.\[spark\]'"):
        create(corpus, tmp_path / "new", runner="spark")
    assert not os.path.exists(tmp_path / "new")
