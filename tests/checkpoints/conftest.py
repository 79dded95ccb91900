"""Fixtures of the tests of checkpoints."""

import pytest


@pytest.fixture(autouse=True)
def no_peer(monkeypatch, request):
    """Hugging Face's code takes seconds to start: of conversions, only the peer's tests run it."""
    if request.path.name != "test_conversion_peer.py":
        monkeypatch.setattr("nezha_tf.checkpoints.comparison._LIBRARIES", ("no_such_library",))
