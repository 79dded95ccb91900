"""What the training loop adds to the compiled step: reading, counting, recording."""

import os
import pathlib
import tempfile

from absl import app, flags
from contenders import VOCAB_SIZE, Size, our_train_step, random_batch
from timing import milliseconds, ratio, run_in_turns

FLAGS = flags.FLAGS
flags.DEFINE_string(
    "size",
    "4,256,4,1024,128,16,20",
    "layers,hidden,heads,intermediate,length,batch,predictions",
)
flags.DEFINE_integer("rounds", 10, "turns that each side gets")
flags.DEFINE_integer("steps", 10, "steps in a turn; one entry of the record is written in each")
flags.DEFINE_bool("jit_compile", True, "compile the step by XLA")


def main(_):
    size = Size(*map(int, FLAGS.size.split(",")))
    with tempfile.TemporaryDirectory() as folder:
        makers = {
            "in the loop": (make_loop, size, FLAGS.jit_compile, FLAGS.steps, folder),
            "bare step": (make_bare_steps, size, FLAGS.jit_compile, FLAGS.steps),
        }
        times = run_in_turns(makers, FLAGS.rounds, 1)
    print(
        " | ".join(["size", *(f"{name}, ms for {FLAGS.steps} steps" for name in makers), "ratio"])
    )
    shown = [FLAGS.size, *(milliseconds(times[name]) for name in makers)]
    print(" | ".join([*shown, ratio(*times.values())]))


def make_bare_steps(size, jit_compile, steps):
    """Returns a callable that makes steps on a batch in memory, and waits for the last only."""
    step, *_ = our_train_step(size, "functional_relative", jit_compile)
    import tensorflow as tf

    batch = {name: tf.constant(values) for name, values in random_batch(size).items()}

    def make_steps():
        for _ in range(steps):
            report = step.on_batch(batch)
        return float(report.gradient_norm)

    return make_steps


def make_loop(size, jit_compile, steps, folder):
    """Returns a callable that makes as many steps in `Loop`, on TFRecords, with their record."""
    step, config, optimizer, _ = our_train_step(size, "functional_relative", jit_compile)
    import tensorflow as tf

    from nezha_tf.checkpoints.run_checkpoints import RunCheckpoints
    from nezha_tf.data.reader import ExampleReader
    from nezha_tf.data.schema import Lengths, Limits
    from nezha_tf.modeling.flops import training_flops
    from nezha_tf.training.batch_sizes import BatchSizes
    from nezha_tf.training.log import DivergenceWatch, Journal, MetricsFile, Monitor, Screen
    from nezha_tf.training.loop import Feed, Loop, Plan, StopRequest
    from nezha_tf.training.records import Records
    from nezha_tf.training.summaries import Summaries
    from nezha_tf.training.throughput import Throughput

    lengths = Lengths(size.length, size.predictions)
    path = _write_records(size, pathlib.Path(folder) / "train.tfrecord")
    reader = ExampleReader([path], lengths, Limits(VOCAB_SIZE, config.type_vocab_size))
    run = os.path.join(folder, "run")
    os.makedirs(run)
    batches = _Once(Feed(tf.distribute.get_strategy(), reader, BatchSizes(size.batch), seed=1))
    # No checkpoint falls due but at the end of the plan, which is past all steps made here.
    plan = Plan(10**9, 10**9, log_steps=steps, steps_per_loop=10)
    screen, records = Screen(0, plan.num_train_steps), Records([MetricsFile(), Summaries([])])
    records.start(run, {}, 0)
    flops = training_flops(config, size.length, size.predictions)

    def make_steps():
        first = step.step
        until = plan._replace(num_train_steps=first + steps)
        loop = Loop(
            step,
            batches,
            until,
            _NoCheckpoints(run, {}),
            Journal(
                screen,
                records,
                Monitor(step, optimizer, None, reader),
                Throughput(flops / size.length),
                DivergenceWatch(0, 1),
            ),
            StopRequest(),
        )
        return loop.run(first)

    class _NoCheckpoints(RunCheckpoints):
        def save(self, step):
            """The end of a turn is no end of a run."""

    return make_steps


class _Once:
    """A feed whose iterator lasts over the turns, as it does in a run."""

    def __init__(self, feed):
        self.sizes, self._batches = feed.sizes, feed.batches(0)

    def batches(self, batches_read):
        return self._batches


def _write_records(size, path):
    """Writes a few hundred examples in the feature schema; returns the path."""
    import tensorflow as tf

    with tf.io.TFRecordWriter(str(path)) as writer:
        for _ in range(512 // size.batch):
            batch = random_batch(size)
            for index in range(size.batch):
                example = tf.train.Example()
                for name, values in batch.items():
                    feature = example.features.feature[name]
                    is_float = values.dtype.kind == "f"
                    target = feature.float_list if is_float else feature.int64_list
                    target.value.extend(values[index].tolist())
                writer.write(example.SerializeToString())
    return str(path)


if __name__ == "__main__":
    app.run(main)
