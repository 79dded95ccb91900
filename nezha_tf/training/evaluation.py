"""Evaluates losses and metrics on held-out examples."""

import contextlib
import functools
import json
import os

import tensorflow as tf

from nezha_tf.data.record_stream import traced_as_is
from nezha_tf.modeling.encoder import with_memory
from nezha_tf.objectives.losses import WeightedMean
from nezha_tf.training.devices import compiled
from nezha_tf.training.log import Averages
from nezha_tf.util import files


class Evaluation:
    """Evaluates a model on held-out examples."""

    def __init__(
        self,
        strategy,
        model,
        objective,
        reader,
        batch_size,
        max_batches,
        folder,
        jit_compile=False,
        memory=None,
    ):
        """Args:
        strategy: the `tf.distribute.Strategy` of the model.
        model: a Keras model.
        objective: see `TrainStep`.
        reader: `ExampleReader` of the held-out examples, or an object with its interface.
        batch_size: examples in a global batch, a multiple of the number of replicas.
        max_batches: most batches in an evaluation.
        folder: the folder for the results.
        jit_compile, memory: see `make_eval_step`.
        """
        self._strategy = strategy
        self.eval_step = make_eval_step(strategy, model, objective, jit_compile, memory)
        self._reader = reader
        self._folder = folder
        self._batch_size = batch_size
        self._batches = functools.partial(reader.evaluation_batches, batch_size, max_batches)

    @property
    def is_traced(self):
        """Whether an evaluation has been made; tracing and compiling make the first one slow."""
        return self._step().experimental_get_tracing_count() > 0

    def _step(self):
        return self.eval_step

    def take_over(self, other):
        """Replaces the model by that of another evaluation, whose compiled step is used again.

        Args:
          other: an `Evaluation` of the same class with the same arguments, except for the model and
            the folder.
        """
        self.eval_step = other.eval_step

    def __call__(self, moving_average=None):
        """Returns a dict of name to float; with a moving average, its weights are evaluated."""
        averaged = moving_average.in_place() if moving_average else contextlib.nullcontext()
        with averaged:
            return evaluate(self.eval_step, self._reader.guarded(self._over_replicas))

    def _over_replicas(self, skip_batches):
        """Returns the batches, each split over the workers and their replicas."""
        replicas = self._strategy.num_replicas_in_sync
        size = self._batch_size // replicas

        def dataset(context):
            local = replicas // context.num_input_pipelines
            first = context.input_pipeline_id * local * size
            part = slice(first, first + local * size)

            batches = self._batches(skip_batches=skip_batches)

            @traced_as_is
            def cut(batch):
                return {name: v[part] for name, v in _padded(batch, self._batch_size).items()}

            return batches.map(cut).rebatch(size, drop_remainder=True)

        return self._strategy.distribute_datasets_from_function(dataset)

    def batches(self):
        """Yields the batches of an evaluation without splitting them over replicas."""
        return self._reader.guarded(self._batches)

    def write(self, step, results):
        """Writes `eval_results.txt` and `.json`.

        Args:
          step: the step of the weights.
          results: the result of a call.

        Returns:
          The contents of the files, a dict of name to number.
        """
        results = {"global_step": step, **results}
        lines = "".join(f"{name} = {value}\n" for name, value in sorted(results.items()))
        text = json.dumps(results, indent=2, sort_keys=True) + "\n"
        for name, content in (("eval_results.txt", lines), ("eval_results.json", text)):
            files.write_text(os.path.join(self._folder, name), content)
        return results


def _padded(batch, batch_size):
    """Fills up the last batch with examples of padding only, which have no weight."""
    padded = {}
    for name, values in batch.items():
        missing = batch_size - tf.shape(values)[0]
        values = tf.pad(values, [(0, missing)] + [(0, 0)] * (len(values.shape) - 1))
        padded[name] = tf.ensure_shape(values, (batch_size, *values.shape[1:]))
    return padded


def make_eval_step(strategy, model, objective, jit_compile=False, memory=None):
    """Returns a compiled function of a (distributed) batch that returns losses and metrics.

    Its result is a dict of name to `WeightedMean` over the global batch.

    Args:
      strategy: the `tf.distribute.Strategy` in whose scope the model was made.
      model: a Keras model.
      objective: see `TrainStep`.
      jit_compile: whether XLA compiles each replica's part.
      memory: the `Memory` of the model, or None.
    """

    def figures(batch):
        inputs = objective.inputs(batch)
        outputs = model(inputs, training=False, all_outputs=True)
        ratios = {**objective.losses(outputs, batch), **objective.metrics(outputs, batch)}
        return ratios, {} if memory is None else with_memory(inputs, outputs)

    figures = compiled(figures, jit_compile, model, strategy)

    def replica_step(batch):
        if memory is None:
            return figures(batch)[0]
        ratios, remembered = figures(memory.with_batch(batch))
        memory.keep(remembered)
        return ratios

    @tf.function(autograph=False)
    def step(batch):
        ratios = strategy.run(replica_step, args=(batch,))
        return {name: reduced(strategy, ratio) for name, ratio in ratios.items()}

    return step


def reduced(strategy, ratio):
    """Returns the `WeightedMean` of all replicas from that of each."""
    total, weight = (
        strategy.reduce(tf.distribute.ReduceOp.SUM, value, axis=None)
        for value in (ratio.sum, ratio.weight)
    )
    epsilon, scale = (
        strategy.experimental_local_results(value)[0] for value in (ratio.epsilon, ratio.scale)
    )
    return WeightedMean(total, weight, epsilon, scale)


def evaluate(eval_step, batches):
    """Returns the losses and metrics over all batches, as a dict of name to float.

    Args:
      eval_step: the function that `make_eval_step` returns.
      batches: iterable of batches.
    """
    averages = Averages()
    for batch in batches:
        averages.add(eval_step(batch))
    return averages.results()
