"""The flags of the tools that run a trained model."""

from absl import flags

ENDS = ("tail", "head")
TARGET_PREDICTIONS = ("masked", "shift")


def define_model():
    """Defines which model it is; the calling program adopts the flags as its own."""
    flags.DEFINE_string("bert_config_file", None, "The model's configuration, JSON.")
    flags.DEFINE_string("vocab_file", None, "Its vocabulary, one piece a line.")
    flags.DEFINE_bool("do_lower_case", True, "Lower-case the text and strip accents.")
    flags.DEFINE_string("init_checkpoint", None, "TF1 checkpoint, or one of ours; or its folder.")


def define_form():
    """Defines the form in which a target follows its source."""
    flags.DEFINE_enum(
        "target_prediction",
        "masked",
        TARGET_PREDICTIONS,
        "As the model was trained: a [MASK] after the last piece predicts the next one, or the "
        "last piece itself does.",
    )
    flags.DEFINE_list(
        "segment_ids", None, "Segments of source and target (0,1), if not those of the mode."
    )
    flags.DEFINE_integer("max_source_length", 128, "Most pieces, [CLS] and [SEP] counted.", 3)
    flags.DEFINE_integer("max_target_length", 64, "Most pieces, the final [SEP] counted.", 2)
    flags.DEFINE_enum(
        "truncate_source",
        None,
        ENDS,
        "Which end of a longer source is cut off; the tail of a source and the head of a prompt, "
        "if not given.",
    )


def define_search():
    """Defines how targets are searched, under the names of run_seq2seq.py."""
    flags.DEFINE_enum("decoding", "beam", ["beam", "greedy", "sample"], "How targets are searched.")
    flags.DEFINE_integer("predict_batch_size", 16, "Sources that are written for at a time.", 1)
    flags.DEFINE_integer("beam_size", 4, "Hypotheses that beam search follows.", 1)
    flags.DEFINE_float("length_penalty", 0.7, "Its exponent: above 0, longer targets gain.")
    flags.DEFINE_integer("num_return_sequences", 1, "Hypotheses of a source.", 1)
    flags.DEFINE_integer("min_target_length", 1, "Fewest pieces, the final [SEP] counted.", 1)
    flags.DEFINE_float("temperature", 1.0, "Of sampling.", 0)
    flags.DEFINE_integer("top_k", 0, "Sample from that many likeliest pieces; 0: from all.", 0)
    flags.DEFINE_float("top_p", 1.0, "Sample from the likeliest pieces of this probability.", 0, 1)
    flags.DEFINE_integer(
        "no_repeat_ngram_size", 0, "No n-gram of pieces twice in a target; 0: any.", 0
    )
    flags.DEFINE_list("exempt_words", [], "Words of which n-grams may be repeated.")
    flags.DEFINE_list("banned_words", [], "Words of one piece that are never written.")
    flags.DEFINE_integer("seed", 1, "Of sampling; the same seed gives the same text.", 0)
    flags.DEFINE_bool("jit_compile", True, "Compile the search with XLA.")
