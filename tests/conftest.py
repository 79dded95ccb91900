"""Where the golden figures are, and a quiet tensorflow."""

import os
import pathlib

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["KERAS_BACKEND"] = "tensorflow"

import numpy as np
import pytest

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent
GOLDEN = REPOSITORY / "tests" / "golden"
RESOURCES = REPOSITORY / "nezha_tf" / "resources"
SHARED = REPOSITORY.parent / "shared"


@pytest.fixture(scope="session")
def golden():
    """Returns a function that opens an .npz of the originals' figures as a dict."""

    def load(name):
        with np.load(GOLDEN / f"{name}.npz") as file:
            return dict(file)

    return load


@pytest.fixture(scope="session")
def shared_golden():
    """The folder of golden figures that are not part of the repository."""
    folder = SHARED / "golden"
    if not folder.is_dir():
        pytest.skip(f"{folder} is not there: the original vocabulary and texts are not ours")
    return folder
