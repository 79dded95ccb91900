"""Evaluation and prediction in one pass: losses, and the model's output for each example."""

import contextlib

import tensorflow as tf

from nezha_tf.data.in_memory import ArrayReader
from nezha_tf.training.devices import compiled, kind
from nezha_tf.training.evaluation import Evaluation, reduced
from nezha_tf.training.log import Averages
from nezha_tf.util import console

# A pass over 128 reviews by XLA in buckets took 0.86 of the time of the graph with any length (4
# layers of 256, an AMD EPYC with AVX2: benchmarks/RESULTS.md), and each length takes it seconds.
LEAST_COMPILED_EXAMPLES = 5000


class PredictingEvaluation(Evaluation):
    """Also collects the objective's `predictions`, which a task measures all together."""

    def __init__(self, strategy, model, task, reader):
        """Args:
        strategy: the `tf.distribute.Strategy` of the model.
        model: a Keras model.
        task: a `FineTuning`.
        reader: `ArrayReader` of the held-out examples.
        """
        settings, objective = task.settings, task.make_objective(0.0)
        super().__init__(
            strategy,
            model,
            objective,
            reader,
            settings.eval_batch_size,
            settings.max_eval_steps,
            settings.output_dir,
            settings.jit_compile,
        )
        spec = self._over_replicas(0).element_spec if reader.any_length else None
        self.predict_step = make_predict_step(
            strategy, model, objective, settings.jit_compile, spec=spec
        )
        self._task = task
        self._outputs = None

    def _step(self):
        return self.predict_step

    def take_over(self, other):
        super().take_over(other)
        self.predict_step = other.predict_step

    def __call__(self, moving_average=None):
        averaged = moving_average.in_place() if moving_average else contextlib.nullcontext()
        with averaged:
            batches = self._reader.guarded(self._over_replicas)
            means, self._outputs = collect(self.predict_step, batches)
        return {**means, **self._task.measure("eval", self._outputs)}

    def write(self, step, results):
        for line in self._task.report(self._outputs):
            console.tell(line, flush=True)
        return super().write(step, results)


def make_reader(strategy, model, arrays, max_seq_length, bucket_by_length, jit_compile):
    """Returns the `ArrayReader` of examples to evaluate, or to predict.

    On a processor in float32 its batches are as long as their longest text, unless XLA compiles and
    there are many: of few it would gain less than it takes to compile each length. With several
    replicas all parts of a batch need one length.
    """
    any_length = (
        kind(strategy) == "CPU"
        and strategy.num_replicas_in_sync == 1
        and model.compute_dtype == "float32"
        and (not jit_compile or len(arrays["input_ids"]) < LEAST_COMPILED_EXAMPLES)
    )
    return ArrayReader(arrays, max_seq_length, bucket_by_length, any_length)


def predict(model, objective, reader, batch_size, jit_compile):
    """Returns the objective's `predictions` for each example, made on one device; see `collect`."""
    strategy = tf.distribute.get_strategy()
    batches = reader.evaluation_batches(batch_size)
    spec = batches.element_spec if reader.any_length else None
    step = make_predict_step(strategy, model, objective, jit_compile, is_labelled=False, spec=spec)
    total = reader.batches_per_epoch(batch_size)
    _, outputs = collect(step, console.progress(batches, total=total, desc="predicting"))
    return outputs


def make_predict_step(strategy, model, objective, jit_compile, is_labelled=True, spec=None):
    """Returns a compiled function of a (distributed) batch.

    With `spec`, the `element_spec` of batches of any length, it is traced once for all of them and
    XLA does not compile it.

    It returns (dict of losses and metrics, each a `WeightedMean` over the global batch, or {} if
    `is_labelled` is False; dict of the predictions of all replicas, [B, ...], with `example_index`
    [B], which is -1 for examples that consist only of padding).
    """

    def replica_step(batch):
        outputs = model(objective.inputs(batch), training=False, all_outputs=True)
        found = objective.predictions(outputs)
        mask = batch["input_mask"]  # [B, T], or [B, C, T] for examples of C sequences
        is_example = tf.reduce_any(mask > 0, axis=list(range(1, len(mask.shape))))
        found["example_index"] = tf.where(is_example, batch["example_index"], -1)
        if not is_labelled:
            return {}, found
        return {**objective.losses(outputs, batch), **objective.metrics(outputs, batch)}, found

    replica_step = compiled(replica_step, jit_compile and spec is None, model, strategy)

    @tf.function(autograph=False, input_signature=None if spec is None else [spec])
    def step(batch):
        ratios, found = strategy.run(replica_step, args=(batch,))
        if strategy.num_replicas_in_sync > 1:
            found = {name: strategy.gather(values, axis=0) for name, values in found.items()}
        return {name: reduced(strategy, ratio) for name, ratio in ratios.items()}, found

    return step


def collect(predict_step, batches):
    """Returns (dict of name to mean, dict of name to list of an array for each example).

    Args:
      predict_step: the function that `make_predict_step` returns.
      batches: iterable of batches that together contain the first n examples.
    """
    averages, found = Averages(), {}
    for batch in batches:
        ratios, outputs = predict_step(batch)
        averages.add(ratios)
        index = outputs.pop("example_index").numpy()
        for name, values in outputs.items():
            found.setdefault(name, {}).update(zip(index, values.numpy(), strict=True))
    for by_index in found.values():
        by_index.pop(-1, None)
    ordered = {name: [values[i] for i in range(len(values))] for name, values in found.items()}
    return averages.results(), ordered
