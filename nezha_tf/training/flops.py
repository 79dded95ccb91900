"""How much arithmetic a model asks for, whatever the program makes of it."""

from nezha_tf.modeling import positions


def training_flops(config, max_seq_length, max_predictions_per_seq):
    """Returns the floating-point operations that one example takes in a training step.

    Counted are the matrix products of the model as it is defined, two operations for each
    multiplication, forward once and backward twice (Kaplan et al., arXiv 2001.08361 §2.1); not
    what a program computes again, and no elementwise work.

    Args:
      config: a `NezhaConfig`.
      max_seq_length: T, padding included.
      max_predictions_per_seq: P.
    """
    hidden, length = config.hidden_size, max_seq_length
    projections = 4 * hidden * hidden + 2 * hidden * config.intermediate_size
    # Queries by keys, probabilities by values, and what positions add.
    products = 2 + positions.of(config).added_products
    layer = length * projections + products * length * length * hidden
    head = max_predictions_per_seq * (hidden * hidden + hidden * config.vocab_size)
    return 3 * 2 * (config.num_hidden_layers * layer + head + hidden * hidden)
