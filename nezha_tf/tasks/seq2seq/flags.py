"""The flags of every program that writes targets."""

from absl import flags

from nezha_tf.generation.options import METHODS

ENDS = ("tail", "head")
# Of the flags of a search that `task.json` keeps.
SEARCH_DEFAULTS = {
    "decoding": "beam",
    "beam_size": 4,
    "length_penalty": 0.7,
    "num_return_sequences": 1,
    "min_target_length": 2,
    "temperature": 1.0,
    "top_k": 0,
    "top_p": 1.0,
    "no_repeat_ngram_size": 0,
    "exempt_words": [],
    "banned_words": [],
}


def define_search():
    """Defines how targets are searched; the calling module adopts the flags as its own."""
    default = SEARCH_DEFAULTS
    flags.DEFINE_enum("decoding", default["decoding"], METHODS, "How targets are searched.")
    flags.DEFINE_integer("predict_batch_size", 16, "Sources that are written for at a time.", 1)
    flags.DEFINE_integer(
        "beam_size", default["beam_size"], "Hypotheses that beam search follows.", 1
    )
    flags.DEFINE_float(
        "length_penalty", default["length_penalty"], "Its exponent: above 0, longer targets gain."
    )
    flags.DEFINE_integer(
        "num_return_sequences", default["num_return_sequences"], "Hypotheses of a source.", 1
    )
    flags.DEFINE_integer(
        "min_target_length",
        default["min_target_length"],
        "Fewest pieces, the final [SEP] counted.",
        1,
    )
    flags.DEFINE_float("temperature", default["temperature"], "Of sampling.", 0)
    flags.DEFINE_integer(
        "top_k", default["top_k"], "Sample from that many likeliest pieces; 0: from all.", 0
    )
    flags.DEFINE_float(
        "top_p", default["top_p"], "Sample from the likeliest pieces of this probability.", 0, 1
    )
    flags.DEFINE_integer(
        "no_repeat_ngram_size",
        default["no_repeat_ngram_size"],
        "No n-gram of pieces twice in a target; 0: any.",
        0,
    )
    flags.DEFINE_list(
        "exempt_words", default["exempt_words"], "Words of which n-grams may be repeated."
    )
    flags.DEFINE_list(
        "banned_words", default["banned_words"], "Words of one piece that are never written."
    )
