"""What a run says about its device, and what its workers say to one another."""

import pytest
import tensorflow as tf

from nezha_tf.training import devices
from nezha_tf.util.errors import UserError


@pytest.mark.parametrize(
    "has_driver, visible, is_told", ((False, None, False), (True, None, True), (True, "", False))
)
def test_a_gpu_that_tensorflow_does_not_see(has_driver, visible, is_told, tmp_path, monkeypatch):
    driver = tmp_path / "version"
    if has_driver:
        driver.touch()
    monkeypatch.setattr(devices, "NVIDIA_DRIVER", str(driver))
    monkeypatch.setattr(devices.tf.config, "get_visible_devices", lambda kind: [])
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    told = devices.description()
    assert told.startswith("the CPU") and ("pip install -e '.[gpu]'" in told) == is_told


def test_devices_that_the_strategy_would_not_use_are_refused(monkeypatch):
    shown = []
    monkeypatch.setattr(devices.tf.config, "list_physical_devices", lambda kind: ["a", "b", "c"])
    monkeypatch.setattr(devices.tf.config, "set_visible_devices", lambda *a: shown.append(a))
    for name in ("default", "one_device"):
        with pytest.raises(UserError, match="--num_gpus=2 needs --distribution_strategy=mirrored"):
            devices.make_strategy(name, num_gpus=2)
        assert devices.make_strategy(name, num_gpus=1).num_replicas_in_sync == 1
    assert shown[-1] == (["a"], "GPU")


@pytest.fixture
def answers(monkeypatch):
    """Returns a function: the number of each replica -> what `agree_on` says on two replicas."""
    sums = tf.distribute.ReductionToOneDevice()
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"], sums)

    def agree(*numbers):
        def of_replica(context):
            return tf.constant(numbers[context.replica_id_in_sync_group], tf.int64)

        spread = strategy.experimental_distribute_values_from_function(of_replica)
        monkeypatch.setattr(devices, "_per_worker", lambda *_: spread)
        return devices.agree_on(strategy, None)

    return agree


@pytest.mark.parametrize("numbers", ((0, 0), (7, 7), (0, 1), (1, 0), (-3, 3), (10**8, 10**8 + 1)))
def test_workers_agree_if_they_say_the_same(answers, numbers):
    assert answers(*numbers) == (numbers[0] == numbers[1])


def test_a_worker_that_is_gone_after_a_disagreement_is_no_error(answers, monkeypatch):
    """The other one has the answer, and ends."""
    sums, real = [], tf.distribute.Strategy.run

    def run(self, function, args):
        sums.append(args)
        if len(sums) > 1:
            raise tf.errors.UnavailableError(None, None, "gone")
        return real(self, function, args)

    monkeypatch.setattr(tf, "function", lambda **_: lambda function: function)
    monkeypatch.setattr(tf.distribute.MirroredStrategy, "run", run)
    assert not answers(0, 1)
    assert len(sums) == 2
