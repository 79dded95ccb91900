"""Moving averages of the weights, for evaluation and publication."""

import contextlib

import tensorflow as tf

from nezha_tf.checkpoints.name_table import AVERAGE_SUFFIX, tf1_name


class MovingAverage:
    """An exponential moving average of each weight, like tf.train.ExponentialMovingAverage.

    As there with `num_updates`, the decay is at most (1 + s) / (10 + s) at step s, so the random
    initial weights soon lose their influence.
    """

    def __init__(self, model, iterations, decay):
        """Args:
        model: a Keras model; its trainable variables are averaged.
        iterations: variable that counts the steps.
        decay: share of the old average that a step keeps.
        """
        self._variables = [variable.value for variable in model.trainable_variables]
        self._names = [tf1_name(variable.path) for variable in model.trainable_variables]
        self._averages = [tf.Variable(v, trainable=False) for v in self._variables]
        self._iterations = iterations
        self._decay = decay

    def update(self, strategy):
        """Updates the averages; call it in cross-replica context."""
        step = tf.cast(tf.convert_to_tensor(self._iterations), tf.float32)
        share = 1.0 - tf.minimum(self._decay, (1.0 + step) / (10.0 + step))
        for average, variable in zip(self._averages, self._variables, strict=True):
            strategy.extended.update(
                average,
                lambda a, v: a.assign_sub(share * (a - v)),
                args=(variable,),
                group=False,
            )

    def restart(self):
        """Sets the averages to the current weights."""
        for average, variable in zip(self._averages, self._variables, strict=True):
            average.assign(variable)

    @contextlib.contextmanager
    def in_place(self):
        """Replaces the weights by their averages while the block runs."""
        kept = [tf.identity(variable) for variable in self._variables]
        for average, variable in zip(self._averages, self._variables, strict=True):
            variable.assign(average)
        try:
            yield
        finally:
            for value, variable in zip(kept, self._variables, strict=True):
                variable.assign(value)

    def state(self):
        """Returns a dict of names in a checkpoint to the averages."""
        return dict(zip(self.names(self._names), self._averages, strict=True))

    @staticmethod
    def names(names):
        """Returns the names of the averages in a checkpoint, given the names of weights."""
        return [f"{name}/{AVERAGE_SUFFIX}" for name in names]
