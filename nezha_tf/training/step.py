"""One training step and one evaluation step, for any objective, on any number of replicas."""

from typing import NamedTuple

import tensorflow as tf

from nezha_tf.modeling.encoder import with_memory
from nezha_tf.optimization.clipping import clip_by_global_norm, global_norm
from nezha_tf.training.devices import compiled

# The counters of a run beside its updates; checkpoints contain them.
COUNTERS = ("batches_read", "skipped_steps", "skipped_in_a_row")


class StepReport(NamedTuple):
    """The report of training steps; float32 scalars unless another type is given.

    Attributes:
      ratios: dict of the losses and metrics, each a `WeightedMean` over the global batches.
      examples: number of examples in the batches.
      tokens: number of their tokens, without padding.
      places: number of examples times the length of their batch, with padding.
      steps: number of steps.
      skipped: number of them that changed no weight.
      stop: above 0 if a worker asks for the end of the run.
      gradient_norm: global norm before clipping in the last step that was not skipped.
      learning_rate: the learning rate in that step.
      trust_ratios: [n], the trust ratio of each variable in that step; ones for other optimizers
        than LAMB.
      bad_gradient: int32, the index of the first variable without a finite gradient in the last
        skipped step; -1: no step was skipped.
    """

    ratios: dict
    examples: tf.Tensor
    tokens: tf.Tensor
    places: tf.Tensor
    steps: tf.Tensor
    skipped: tf.Tensor
    stop: tf.Tensor
    gradient_norm: tf.Tensor
    learning_rate: tf.Tensor
    trust_ratios: tf.Tensor
    bad_gradient: tf.Tensor

    def then(self, later):
        """Returns the report of these steps together with those of a `later` report."""
        last_is_good = later.skipped == 0
        ratios = {name: ratio.plus(later.ratios[name]) for name, ratio in self.ratios.items()}
        return StepReport(
            ratios,
            self.examples + later.examples,
            self.tokens + later.tokens,
            self.places + later.places,
            self.steps + later.steps,
            self.skipped + later.skipped,
            self.stop + later.stop,
            tf.where(last_is_good, later.gradient_norm, self.gradient_norm),
            tf.where(last_is_good, later.learning_rate, self.learning_rate),
            tf.where(last_is_good, later.trust_ratios, self.trust_ratios),
            tf.where(later.bad_gradient < 0, self.bad_gradient, later.bad_gradient),
        )


class TrainStep:
    """Updates a model with batches, in the originals' order.

    Gradients are summed over micro-batches and replicas first; the sum is unscaled, checked,
    clipped by global norm and applied. (Keras's optimizers clip before they sum, so their result
    depends on the number of replicas.) If gradients are not finite on some replica, the step
    changes only the loss scale and the counters.

    Attributes:
      variables: list of the trainable variables.
      is_compiled: whether XLA compiles the step.
      is_traced: whether `trace` was called.
      clock: the `Clock` of the recipe, or None.
    """

    is_traced = False

    def __init__(
        self,
        strategy,
        model,
        objective,
        recipe,
        *,
        jit_compile=False,
        training=True,
        memory=None,
    ):
        """Args:
        strategy: the `tf.distribute.Strategy` in whose scope the model was made.
        model: a Keras model.
        objective: an `losses.Loss`.
        recipe: a `Recipe`.
        jit_compile: whether XLA compiles the gradients and, with one replica, the update. They
          are compiled separately, so that a new length of batches compiles only the gradients.
        training: whether dropout is on.
        memory: the `Memory` of the model, or None; it needs a recipe without micro-batches.
        """
        self._strategy = strategy
        self._model = model
        self._objective = objective
        self._optimizer = recipe.optimizer
        self._clip_norm = recipe.clip_norm
        self._loss_scale = recipe.loss_scale
        self._accumulation_steps = recipe.accumulation_steps
        self._adversarial_epsilon = recipe.adversarial_epsilon
        self._moving_average = recipe.moving_average
        self.clock = recipe.clock
        self._training = training
        self._memory = memory
        self.is_compiled = jit_compile
        self.variables = model.trainable_variables
        with strategy.scope():
            recipe.optimizer.build(self.variables)
            self._counters = {name: _counter() for name in COUNTERS}
        self._sums_over_replicas = strategy.num_replicas_in_sync > 1
        self._gradients = compiled(self._gradients_of, jit_compile, model, strategy)
        recipe.optimizer.trace_updates(_traced_by_rank)
        self._change = self._clip_and_update
        if jit_compile and not self._sums_over_replicas:
            self._change = tf.function(self._clip_and_update, jit_compile=True, autograph=False)
        self._one = tf.function(self._step, autograph=False)
        self._many = tf.function(self._loop, autograph=False)

    @property
    def step(self):
        """The number of updates so far."""
        return int(tf.convert_to_tensor(self._optimizer.iterations))

    def count(self, name):
        """Returns a counter of `COUNTERS`."""
        return int(tf.convert_to_tensor(self._counters[name]))

    def on_batch(self, batch, stop=0.0):
        """Makes one step with one (distributed) batch; returns its `StepReport`."""
        return self._one(batch, tf.constant(stop))

    def trace(self, iterator):
        """Traces `run` for such an iterator, which its first call would do otherwise."""
        self._many.get_concrete_function(iterator, tf.constant(0), tf.constant(0.0))
        self.is_traced = True

    def run(self, iterator, count, stop=0.0):
        """Makes steps without returning to Python between them.

        Args:
          iterator: iterator of (distributed) batches.
          count: number of steps, with skipped ones; with a clock fewer, if its time ends.
          stop: above 0 if this worker asks for the end; the report has the sum over all workers.

        Returns:
          The `StepReport` of these steps.
        """
        return self._many(iterator, tf.constant(count), tf.constant(stop))

    def state(self):
        """Returns a dict of names in a checkpoint to counters, loss scale, memory and clock."""
        state = {f"nezha_tf/{name}": counter for name, counter in self._counters.items()}
        if self.clock is not None:
            state.update(self.clock.state())
        if self._memory is not None:
            state.update(self._memory.state())
        return state if self._loss_scale is None else {**state, **self._loss_scale.state()}

    def _loop(self, iterator, count, stop):
        # A first step before the loop would be a second copy of the whole step in the graph.
        traced = self._one.get_concrete_function(iterator.element_spec, stop)
        report = tf.nest.map_structure(
            lambda spec: tf.zeros(spec.shape, spec.dtype), traced.structured_outputs
        )

        def step(index, _, report):
            latest = self._one(next(iterator), stop)
            report = tf.cond(index > 0, lambda: report.then(latest), lambda: latest)
            return index + 1, self._has_time_after(latest), report

        def goes_on(index, has_time, _):
            return (index < count) & has_time

        return tf.while_loop(goes_on, step, (0, True, report))[2]

    def _has_time_after(self, report):
        if self.clock is None:
            return True
        # A GPU is given work ahead of time. This waits until it has made the step.
        with tf.device("CPU:0"):
            norm = tf.identity(report.gradient_norm)
        with tf.control_dependencies([norm]):
            return self.clock.tick(report.skipped == 0)

    def _step(self, batch, stop):
        report = self._strategy.run(self._replica_step, args=(batch, stop))
        # All reported values are the same on all replicas.
        return tf.nest.map_structure(
            lambda value: self._strategy.experimental_local_results(value)[0], report
        )

    def _replica_step(self, batch, stop):
        if self._memory is not None:
            batch = self._memory.with_batch(batch)
        weights = {n: tf.reduce_sum(w) for n, w in self._objective.loss_weights(batch).items()}
        tokens = tf.cast(tf.reduce_sum(batch["input_mask"]), tf.float32)
        shape = tf.cast(tf.shape(batch["input_mask"]), tf.float32)
        # The identity places `stop` on the replica's device, which a sum over replicas requires.
        weights, examples, tokens, places, stop = self._sum_over_replicas(
            (weights, shape[0], tokens, shape[0] * shape[-1], tf.identity(stop))
        )
        gradients, ratios, remembered = self._gradients(batch, weights)
        if self._memory is not None:
            self._memory.keep(remembered)
        ratios = {name: self._whole(ratio) for name, ratio in ratios.items()}
        gradients = self._sum_over_replicas(gradients)
        norm, is_finite, learning_rate, trust_ratios, bad_gradient = self._change(gradients)
        return StepReport(
            {name: ratio.where(is_finite) for name, ratio in ratios.items()},
            examples,
            tokens,
            places,
            tf.ones(()),
            tf.cast(~is_finite, tf.float32),
            stop,
            norm,
            learning_rate,
            trust_ratios,
            bad_gradient,
        )

    def _clip_and_update(self, gradients):
        """Returns (norm, whether it is finite, learning rate, trust ratios, bad gradient)."""
        scale = 1.0 if self._loss_scale is None else self._loss_scale.scale
        gradients, norms = clip_by_global_norm(gradients, self._clip_norm, scale)
        norm = global_norm(norms)
        is_finite = tf.math.is_finite(norm)
        learning_rate = tf.identity(self._optimizer.learning_rate)
        trust_ratios = tf.distribute.get_replica_context().merge_call(
            self._update, args=(gradients, is_finite)
        )
        bad_gradient = tf.where(is_finite, -1, _first_not_finite(norms))
        return norm, is_finite, learning_rate, trust_ratios, bad_gradient

    def _gradients_of(self, batch, weights):
        """Returns (this replica's part of the global loss's gradients, its `ratios`, memory)."""
        if self._accumulation_steps == 1:
            return self._backward(batch, weights)
        parts = {name: self._cut(values) for name, values in batch.items()}
        backward = tf.function(self._backward, autograph=False)
        first = {name: part[0] for name, part in parts.items()}

        def add(index, gradients, ratios, _):
            part = {name: values[index] for name, values in parts.items()}
            more, more_ratios, _ = backward(part, weights)
            gradients = [a + b for a, b in zip(gradients, more, strict=True)]
            ratios = {name: ratio.plus(more_ratios[name]) for name, ratio in ratios.items()}
            return index + 1, gradients, ratios, {}

        return tf.while_loop(
            lambda index, *_: index < self._accumulation_steps, add, (1, *backward(first, weights))
        )[1:]

    def _cut(self, values):
        # The length of batches may be dynamic.
        rest = tf.unstack(tf.shape(values)[1:])
        return tf.reshape(values, (self._accumulation_steps, -1, *rest))

    def _backward(self, batch, weights):
        """Returns (a micro-batch's part of the gradients, its `ratios`, its memory)."""
        if not self._adversarial_epsilon:
            return self._pass(batch, weights)
        input_ids = self._objective.inputs(batch)["input_ids"]
        shape = (*tf.unstack(tf.shape(input_ids)), self._model.config.embedding_width)

        def one_pass(perturbation):
            return self._pass(batch, weights, perturbation)[:2]

        return *gradients_of_both(one_pass, shape, self._adversarial_epsilon), {}

    def _pass(self, batch, weights, perturbation=None):
        """Returns (gradients of the variables and of a perturbation; `ratios`; memory)."""
        sources = [variable.value for variable in self.variables]
        # Otherwise dropout seeds advance even when reading fails.
        with tf.control_dependencies(list(batch.values())), tf.GradientTape() as tape:
            inputs = self._objective.inputs(batch)
            if perturbation is not None:
                tape.watch(perturbation)
                sources.append(perturbation)
                inputs = {**inputs, PERTURBATION: perturbation}
            outputs = self._model(inputs, training=self._training, all_outputs=True)
            losses = self._objective.losses(outputs, batch)
            loss = sum(mean.scale * mean.over(weights[name]) for name, mean in losses.items())
            if self._loss_scale is not None:
                loss *= self._loss_scale.scale
        gradients = [tf.convert_to_tensor(gradient) for gradient in tape.gradient(loss, sources)]
        remembered = {} if self._memory is None else with_memory(inputs, outputs)
        return gradients, {**losses, **self._objective.metrics(outputs, batch)}, remembered

    def _whole(self, ratio):
        total, weight = self._sum_over_replicas((ratio.sum, ratio.weight))
        return ratio._replace(sum=total, weight=weight)

    def _sum_over_replicas(self, tensors):
        if not self._sums_over_replicas:
            return tensors
        together = tf.distribute.get_replica_context()
        return together.all_reduce(tf.distribute.ReduceOp.SUM, tensors)

    def _update(self, strategy, gradients, is_finite):
        """Updates every replica's copy of the weights; called once for all of them."""
        is_finite = strategy.experimental_local_results(is_finite)[0]
        trust_ratios = tf.cond(
            is_finite,
            lambda: self._apply(strategy, gradients),
            lambda: tf.ones(len(self.variables)),
        )
        if self._loss_scale is not None:
            self._loss_scale.update(is_finite)
        skipped = tf.cast(~is_finite, tf.int64)
        with tf.control_dependencies([is_finite]):  # Count only batches that were read.
            self._counters["batches_read"].assign_add(1)
        self._counters["skipped_steps"].assign_add(skipped)
        in_a_row = self._counters["skipped_in_a_row"]
        in_a_row.assign((in_a_row + 1) * skipped)
        return trust_ratios

    def _apply(self, strategy, gradients):
        learning_rate = tf.identity(self._optimizer.learning_rate)
        trust_ratios = []
        for variable, gradient in zip(self.variables, gradients, strict=True):
            ratios = strategy.extended.update(
                variable.value,
                lambda v, g: self._optimizer.update_step(g, v, learning_rate),
                args=(gradient,),
                group=False,
            )
            trust_ratios.append(tf.nest.flatten(ratios, expand_composites=True)[0])
        if self._moving_average is not None:
            self._moving_average.update(strategy)
        self._optimizer.iterations.assign_add(1)
        return tf.stack(trust_ratios)


def _traced_by_rank(function):
    """Returns a function of tensors that is traced once or twice for each rank of them.

    Otherwise TensorFlow would trace the update of each variable on each replica.
    """
    traced = tf.function(function, autograph=False, reduce_retracing=True)
    return lambda *arguments: traced(*map(tf.convert_to_tensor, arguments))


def _first_not_finite(norms):
    """Returns the index of the first norm that is not finite, or else of the largest."""
    return tf.argmax(tf.where(tf.math.is_finite(norms), norms, float("inf")), output_type=tf.int32)


def _counter():
    return tf.Variable(
        0,
        trainable=False,
        dtype=tf.int64,
        aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA,
    )


# The encoder's input that is added to the word embeddings.
PERTURBATION = "embedding_perturbation"


def gradients_of_both(one_pass, shape, epsilon):
    """Returns the gradients of the loss of a batch, plus those of the perturbed batch.

    This is the fast gradient method (Miyato et al., arXiv 1605.07725 §3): the word embeddings of
    each example, all tokens together, are moved by a vector of length `epsilon` along the gradient
    of the loss. As in the paper, the losses of both passes are added. The second pass has its own
    dropout.

    Args:
      one_pass: function of a perturbation, float32 [B, T, E] or [B, C, T, E], that returns (list
        of gradients, with that of the perturbation last; dict of name to `WeightedMean`).
      shape: the shape of the perturbation; E is the width of the word embeddings.
      epsilon: the length, above 0.

    Returns:
      (list of gradients without the perturbation's; dict of `WeightedMean` of the first pass).
    """
    (*gradients, rise), ratios = one_pass(tf.zeros(shape))
    (*more, _), _ = one_pass(perturbation_along(rise, epsilon))
    return [a + b for a, b in zip(gradients, more, strict=True)], ratios


def perturbation_along(rise, epsilon):
    """Returns the gradient [B, ..., E] with each example's part scaled to length epsilon.

    An example's gradient of 0 stays 0. If the gradient is not finite, neither is the result, and
    the step is skipped.
    """
    # Divide by the largest entry first, because squares of small gradients are 0 in float32.
    axes = list(range(1, len(rise.shape)))
    largest = tf.reduce_max(tf.abs(rise), axes, keepdims=True)
    rise = tf.math.divide_no_nan(rise, largest)
    length = tf.sqrt(tf.reduce_sum(tf.square(rise), axes, keepdims=True))
    return epsilon * tf.math.divide_no_nan(rise, length)
