"""What a run says about its device."""

import pytest

from nezha_tf.training import devices


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
