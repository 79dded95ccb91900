"""What functional relative positions cost on CPU, beside absolute ones, in our own model."""

import multiprocessing
import pathlib

from absl import app, flags
from contenders import Size, make_our_step
from timing import milliseconds, ratio, run_in_turns

FLAGS = flags.FLAGS
flags.DEFINE_multi_string(
    "size",
    ["4,256,4,1024,128,16,20", "4,256,4,1024,512,4,76"],
    "layers,hidden,heads,intermediate,length,batch,predictions; may be repeated",
)
flags.DEFINE_integer("rounds", 10, "turns that each side gets")
flags.DEFINE_integer("steps", 5, "steps in a turn")
flags.DEFINE_bool("jit_compile", True, "compile the step by XLA")

ENCODINGS = ("functional_relative", "absolute")


def main(_):
    names = [f"{name} {unit}" for unit in ("ms", "MB") for name in ENCODINGS]
    print(" | ".join(["size", *names, "ratio of time", "ratio of memory"]), flush=True)
    for text in FLAGS.size:
        size = Size(*map(int, text.split(",")))
        makers = {name: (make_our_step, size, name, FLAGS.jit_compile) for name in ENCODINGS}
        times = run_in_turns(makers, FLAGS.rounds, FLAGS.steps)
        memory = [_in_fresh_process(peak_memory, *maker) for maker in makers.values()]
        shown = [text, *(milliseconds(times[name]) for name in ENCODINGS)]
        shown += [f"{value:.0f}" for value in memory]
        shown += [ratio(*(times[name] for name in ENCODINGS)), f"{memory[0] / memory[1]:.2f}"]
        print(" | ".join(shown), flush=True)


def peak_memory(make, *arguments):
    """Returns the peak of memory in MB while steps run, over what TensorFlow alone takes.

    That is the most resident memory of three steps (weights, moments and XLA's buffers count;
    what the compiler needed and gave back does not), less what was resident once TensorFlow was
    imported and had run an operation.
    """
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(2)
    tf.config.threading.set_inter_op_parallelism_threads(2)
    tf.zeros(1)
    before = _memory("VmRSS")
    step = make(*arguments)
    step()
    step()
    # "5" sets the kernel's record of the peak back to what is resident now.
    pathlib.Path("/proc/self/clear_refs").write_text("5")
    for _ in range(3):
        step()
    return _memory("VmHWM") - before


def _memory(field):
    for line in pathlib.Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) / 1024
    raise OSError(f"/proc/self/status has no {field}")


def _in_fresh_process(function, *arguments):
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(function, arguments)


if __name__ == "__main__":
    app.run(main)
