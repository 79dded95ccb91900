"""Fixtures of the tests of conversions."""

import pytest


@pytest.fixture
def no_peer(monkeypatch, request):
    """Hugging Face's code is run only in tests with `with_peer`: it takes seconds to start."""
    if "with_peer" not in request.fixturenames:
        name = "nezha_tf.checkpoints.transformers_peer._LIBRARIES"
        monkeypatch.setattr(name, ("no_such_library",))


@pytest.fixture
def with_peer():
    """Marks a test that runs Hugging Face's code."""
