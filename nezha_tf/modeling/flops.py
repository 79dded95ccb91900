"""The arithmetic of a model, also where there is no TensorFlow."""

from nezha_tf.modeling import feed_forward, positions


def training_flops(
    config,
    max_seq_length,
    max_predictions_per_seq,
    is_frozen=False,
    memory_length=0,
    num_outputs=None,
    lora_rank=0,
    num_middle=None,
):
    """Returns the number of floating-point operations for one example in a training step.

    It counts the matrix products in the model's definition with two operations for each
    multiplication, once forward and twice backward (Kaplan et al., arXiv 2001.08361 §2.1).
    Recomputation and elementwise operations do not count. Nor do the generator of replaced_tokens,
    whose layers have a sixteenth of the weights, and the query stream of permutation, which has a
    sixth of the places.

    Args:
      config: a `NezhaConfig`.
      max_seq_length: T, padding included.
      max_predictions_per_seq: P.
      is_frozen: whether the layers are frozen, so that nothing goes backward through them.
      memory_length: M, the number of remembered tokens, which are keys and values in each layer.
      num_outputs: the number of places for which the last layer computes an output; None: all T.
      lora_rank: the rank of the adapters. If above 0, the kernels of the layers are frozen: the
        gradient goes through them, and they have none of their own.
      num_middle: the number of places that a layer between the first and the last computes; None:
        all T.
    """
    hidden, width, length = config.hidden_size, config.embedding_width, max_seq_length
    inner, matrices = config.intermediate_size, feed_forward.of(config).num_matrices
    # Queries times keys, probabilities times values, and the products for positions.
    products = 2 + positions.of(config).added_products
    attended = products * length * (memory_length + length) * hidden

    def layers(square, rectangle, attended):
        """Returns the operations of all layers, by those of two kernels for a place."""
        projections = 4 * square + matrices * rectangle
        layer = length * projections + 2 * memory_length * square + attended
        unread = 0
        if num_outputs is not None:  # All T are keys and values there, too.
            places = length - num_outputs
            unread = places * (projections - 2 * square) + attended * places / length
        if num_middle is not None:
            share = num_middle / length
            skipped = (length - num_middle) * projections + attended * (1 - share**2)
            unread += (config.num_hidden_layers - 2) * skipped
        # Layers that share weights are each computed.
        return config.num_hidden_layers * layer - unread

    body = layers(hidden * hidden, hidden * inner, attended)
    mapping = length * width * hidden if config.maps_embeddings else 0
    if lora_rank:
        adapters = layers(2 * hidden * lora_rank, (hidden + inner) * lora_rank, 0)
        passes = 2 * body + layers(0, 0, attended) + 3 * adapters + mapping
    else:
        passes = (1 if is_frozen else 3) * (body + mapping)
    head = max_predictions_per_seq * (hidden * width + width * config.vocab_size)
    return 2 * (passes + 3 * (head + hidden * hidden))
