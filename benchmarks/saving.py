"""What a checkpoint costs the training loop: the pause of `save` beside the time of writing."""

import tempfile
import time

from absl import app, flags
from timing import import_tensorflow

FLAGS = flags.FLAGS
flags.DEFINE_integer("weights", 110_000_000, "numbers in the model, each with two moments")
flags.DEFINE_integer("rounds", 5, "checkpoints")
_MATRIX = 768 * 3072


def main(_):
    tf = import_tensorflow()

    from nezha_tf.training.saving import CheckpointsBeside

    count = 3 * FLAGS.weights // _MATRIX
    state = {f"v{number}": tf.Variable(tf.zeros(_MATRIX)) for number in range(count)}

    @tf.function(jit_compile=True)
    def step():
        for variable in state.values():
            variable.assign(variable + 1)

    step()
    print("pause, ms | writing, ms | share | a step's updates alone, ms | right after, ms")
    with tempfile.TemporaryDirectory() as folder:
        kept = CheckpointsBeside(folder, state, keep_max=1)
        for number in range(FLAGS.rounds):
            alone = _milliseconds(step)
            pause = _milliseconds(kept.save, number)
            after = _milliseconds(step)
            writing = pause + after + _milliseconds(kept.settle)
            shown = (f"{value:.1f}" for value in (pause, writing))
            share = f"{pause / writing:.2%}"
            print(" | ".join([*shown, share, f"{alone:.0f}", f"{after:.0f}"]), flush=True)
        kept.close()


def _milliseconds(function, *arguments):
    started = time.perf_counter()
    function(*arguments)
    return 1000 * (time.perf_counter() - started)


if __name__ == "__main__":
    app.run(main)
