"""Paths, shared fixtures, and a TensorFlow that starts quietly."""

import functools
import gc
import json
import os
import pathlib
import shutil
import signal

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["KERAS_BACKEND"] = "tensorflow"
# XLA takes longer to optimize its code than the tests take to run it, and its newer way to write
# the code of fused operations takes twice as long as the older one.
os.environ.setdefault(
    "XLA_FLAGS", "--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false"
)
# Each core has a worker of its own, and the tests' tensors are small.
os.environ.setdefault("TF_NUM_INTRAOP_THREADS", "1")

# Programs in a terminal speak English, whatever the language of who runs the tests.
os.environ["LANGUAGE"] = "en"

import laws
import numpy as np
import pytest
import quick_tensorflow

from nezha_tf import cli

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent
GOLDEN = REPOSITORY / "tests" / "golden"
RESOURCES = REPOSITORY / "nezha_tf" / "resources"
SHARED = REPOSITORY.parent / "shared"

# A process that a shell starts in the background ignores interrupts. Programs that the tests start
# would inherit this, but some tests interrupt them.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
# nohup does the same with hangups, which a handler that does nothing ignores for this process only.
# (Python advises against `preexec_fn` in a process with threads: the new one can hang.)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, lambda *_: None)


# The highest memory use of a worker, with the programs that it starts.
WORKER_BYTES = 3 * 2**30


def pytest_collectstart():
    """Starts TensorFlow where tests are collected, which the process is not that xdist runs in."""
    start_tensorflow()


@functools.cache
def start_tensorflow():
    tf = cli.import_tensorflow()
    # Several replicas on one CPU; TensorFlow accepts this only before its first use.
    tf.config.set_logical_device_configuration(
        tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 3
    )
    quick_tensorflow.make_quick()
    from nezha_tf.training import precision, throughput

    # It takes 0.3 s, and each run of a test would measure it.
    precision.product_rate = throughput.product_rate = functools.cache(throughput.product_rate)


def pytest_configure(config):
    laws.load_profile(is_long=is_long(config))


def is_long(config):
    return config.option.markexpr == laws.LONG


def pytest_xdist_auto_num_workers(config):
    """Returns one worker for each core, or fewer if there is not enough memory."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return max(1, min(len(os.sched_getaffinity(0)), memory // WORKER_BYTES))


@pytest.hookimpl(tryfirst=True)  # before `-m` selects tests
def pytest_collection_modifyitems(config, items):
    for item in items:
        if getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
            item.add_marker(laws.LONG)
            if is_long(config):  # a long search has no time limit
                item.add_marker(pytest.mark.timeout(0))
    # The longest tests first, so that no worker runs one of them alone at the end.
    items.sort(key=lambda item: item.path.parent.name != "training")


def pytest_collection_finish(session):
    # Otherwise full collections visit all objects that TensorFlow and the tests have imported.
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 20, 100)


def pytest_sessionfinish(session):
    gc.freeze()  # pytest collects garbage several times at the end.


@pytest.fixture(autouse=True)
def names_from_the_start():
    """Makes the models of each test have the same names.

    TensorFlow makes a kernel for each new name of a variable and keeps it. This takes five times
    as long as making a variable whose name it knows.
    """
    from keras.src.utils import naming

    naming.reset_uids()


@pytest.fixture(scope="session")
def golden():
    """Returns a function that opens an .npz file of the originals' results as a dict."""

    def load(name):
        with np.load(GOLDEN / f"{name}.npz") as file:
            return dict(file)

    return load


@pytest.fixture(scope="session")
def shared_golden():
    """The folder of golden files that are not part of the repository."""
    folder = SHARED / "golden"
    if not folder.is_dir():
        pytest.skip(
            f"{folder} is missing: the original vocabulary and texts are not in the repository"
        )
    return folder


@pytest.fixture(scope="session")
def shared_data():
    """The folder of public data sets that are not part of the repository."""
    folder = SHARED / "data"
    if not folder.is_dir():
        pytest.skip(f"{folder} is missing: the data sets are not in the repository")
    return folder


@pytest.fixture(scope="session")
def vocabulary():
    """The bundled `Vocabulary`."""
    from nezha_tf import Vocabulary

    return Vocabulary.from_file(RESOURCES / "vocab.txt")


@pytest.fixture(scope="session")
def prepared(tmp_path_factory):
    """A folder with a tiny configuration and examples made from the bundled sample."""
    import commands

    folder = tmp_path_factory.mktemp("prepared")
    (folder / "config.json").write_text(json.dumps(commands.CONFIG))
    result = commands.create_data(folder, "--eval_output_file=eval.tfrecord")
    assert result.returncode == 0 and result.stderr == "", result.stderr
    for row in ("instances", "masked characters", "randomly replaced characters", "padding"):
        assert row in result.stdout
    return folder


@pytest.fixture(scope="session")
def two_steps(prepared):
    """The folder of a run of 2 steps on these examples; tests copy it before they use it."""
    import commands

    arguments = ("--num_train_steps=2", "--output_dir=two_steps")
    result = commands.run_pretraining(prepared, *arguments)
    assert result.returncode == 0, result.stderr
    return prepared / "two_steps"


@pytest.fixture
def folder(prepared, tmp_path):
    """A copy of `prepared` for one test."""
    for name in ("config.json", "train.tfrecord", "eval.tfrecord"):
        shutil.copy(prepared / name, tmp_path / name)
    return tmp_path
