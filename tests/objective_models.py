"""A small model of all segments, for tests of several objectives."""

from nezha_tf.config import NezhaConfig


def config_of_segments(vocab_size, **changes):
    """Returns a `NezhaConfig`; the changes are further keys."""
    return NezhaConfig(
        vocab_size=vocab_size,
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=24,
        type_vocab_size=6,
        initializer_range=0.3,
        **changes,
    )
