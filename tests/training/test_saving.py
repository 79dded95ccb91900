"""Checkpoints written beside the run hold the state of their step, whole or not at all."""

import threading

import numpy as np
import pytest
import tensorflow as tf
from waiting import TIME_LIMIT

from nezha_tf.checkpoints import tf1
from nezha_tf.training.saving import CheckpointsBeside
from nezha_tf.util.errors import UserError


@pytest.fixture
def held_back(monkeypatch):
    """An event that lets one writing begin; without it nothing is written."""
    begin, write = threading.Event(), tf1.write_tensors

    def waiting(*arguments):
        assert begin.wait(TIME_LIMIT)
        begin.clear()
        write(*arguments)

    monkeypatch.setattr(tf1, "write_tensors", waiting)
    yield begin
    begin.set()


def updates(jit_compile):
    """Yields functions that change a variable in the ways in which a training step does."""

    @tf.function(jit_compile=jit_compile)
    def assign(variable):
        variable.assign(variable * 2 + 1)

    @tf.function(jit_compile=jit_compile)
    def add(variable):
        variable.assign_add(tf.ones_like(variable))

    yield from (assign, add)
    if not jit_compile:
        yield lambda variable: variable.scatter_update(tf.IndexedSlices([9.0], [0]))
        yield lambda variable: variable.assign_sub(tf.ones_like(variable))


@pytest.mark.parametrize("jit_compile", [False, True], ids=["graph", "XLA"])
def test_what_is_written_is_the_state_at_the_call(tmp_path, held_back, jit_compile):
    variables = {f"v{i}": tf.Variable(tf.range(i, i + 2000.0)) for i in range(4)}
    for update in updates(jit_compile):  # Also after an update that the same function has made.
        update(variables["v3"])
    expected = {name: variable.numpy().copy() for name, variable in variables.items()}
    kept = CheckpointsBeside(str(tmp_path), variables)
    kept.save(1)
    for variable, update in zip(variables.values(), updates(jit_compile), strict=False):
        update(variable)
        update(variable)
    assert not list(tmp_path.glob("*.index"))
    held_back.set()
    kept.close()
    reader = tf.train.load_checkpoint(kept.path(1))
    for name, value in expected.items():
        np.testing.assert_array_equal(reader.get_tensor(name), value, name)


def test_a_second_save_and_a_look_wait_for_the_first(tmp_path, held_back):
    kept = CheckpointsBeside(str(tmp_path), {"a": tf.Variable(1.0)}, keep_max=1)
    kept.save(1)
    threading.Timer(0.1, held_back.set).start()
    kept.save(2)
    assert kept._listed()[0] == 1  # it is there as soon as the second one begins
    held_back.set()
    assert kept.steps() == [2]
    held_back.set()
    kept.save(3)
    assert kept.note_evaluation(3, {"loss": 1.0})
    assert kept.newest().endswith("model.ckpt-3") and kept.chosen() == 3
    kept.close()


def test_what_cannot_be_written_is_told_at_the_next_call(tmp_path, monkeypatch):
    state = {"a": tf.Variable(1.0)}
    kept = CheckpointsBeside(str(tmp_path), state)
    kept.save(1)
    kept.settle()

    def fail(prefix, tensors):
        raise UserError(f"cannot write checkpoint {prefix}: No space left on device")

    monkeypatch.setattr(tf1, "write_tensors", fail)
    message = r"model\.ckpt-2: No space left on device; older checkpoints are intact$"
    for look in (lambda: kept.save(3), kept.steps, kept.close):
        kept._writing = None
        kept.save(2)
        with pytest.raises(UserError, match=message):
            look()
    again = CheckpointsBeside(str(tmp_path), state)
    assert again.steps() == [1]
    again.close()
