"""Peak memory of a contender."""

import pathlib

from timing import import_tensorflow


def peak_memory(make, *arguments):
    """Returns the peak of memory in MB while steps run, over what TensorFlow alone takes.

    That is the most resident memory of three steps (weights, moments and XLA's buffers count;
    what the compiler freed does not, as in the training loop), less what was resident once
    TensorFlow was imported and had run an operation.
    """
    tf = import_tensorflow()
    tf.zeros(1)
    from nezha_tf.training.devices import give_back_memory

    before = resident("VmRSS")
    step = make(*arguments)
    step()
    step()
    give_back_memory()
    # "5" sets the kernel's record of the peak back to what is resident now.
    pathlib.Path("/proc/self/clear_refs").write_text("5")
    for _ in range(3):
        step()
    return resident("VmHWM") - before


def resident(field):
    """Returns VmRSS (what is resident) or VmHWM (the most that was) of this process, in MB."""
    for line in pathlib.Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) / 1024
    raise OSError(f"/proc/self/status has no {field}")
