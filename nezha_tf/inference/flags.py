"""The flags of the tools that run a trained model."""

from absl import flags

from nezha_tf import settings
from nezha_tf.config import TARGET_PREDICTIONS
from nezha_tf.tasks.seq2seq.settings import ENDS, SearchSettings


def define_model():
    """Defines which model it is; the calling program adopts the flags as its own."""
    flags.DEFINE_string("bert_config_file", None, "The model's configuration, JSON.")
    flags.DEFINE_string("vocab_file", None, "Its vocabulary, one piece a line.")
    flags.DEFINE_bool("do_lower_case", True, "Lower-case the text and strip accents.")
    flags.DEFINE_string("init_checkpoint", None, "TF1's, ours or Hugging Face's; or its folder.")


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
    """Defines how targets are searched."""
    settings.define(SearchSettings)
    flags.DEFINE_integer("seed", 1, "Of sampling; the same seed gives the same text.", 0)
    flags.DEFINE_bool("jit_compile", True, "Compile the search with XLA.")
