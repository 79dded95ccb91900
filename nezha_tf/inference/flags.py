"""The flags of the tools that run a trained model."""

from absl import flags

from nezha_tf import settings
from nezha_tf.config import TARGET_PREDICTIONS
from nezha_tf.tasks.seq2seq.settings import ENDS, SEARCH_DEFAULTS, SearchSettings


def define_model():
    """Defines which model it is; the calling program adopts the flags as its own."""
    flags.DEFINE_string(
        "model_folder",
        None,
        "The model: the --output_dir of a run, or a published one (configuration, weights and "
        "vocab.txt). What its task.json says (lower-casing, lengths, target prediction, search) "
        "holds here, too, but for flags that are given.",
    )
    flags.DEFINE_string("bert_config_file", None, "Of a bare checkpoint: its configuration, JSON.")
    flags.DEFINE_string(
        "vocab_file", None, "Of a bare checkpoint: its vocabulary, one piece a line."
    )
    flags.DEFINE_string(
        "init_checkpoint", None, "A bare checkpoint, TF1's, ours or Hugging Face's; or its folder."
    )
    flags.DEFINE_bool(
        "do_lower_case",
        None,
        "Lower-case the text and strip accents; as the model's folder says, or yes.",
    )


def define_form():
    """Defines the form in which a target follows its source."""
    flags.DEFINE_enum(
        "target_prediction",
        None,
        TARGET_PREDICTIONS,
        "As the model was trained: a [MASK] after the last piece predicts the next one, or the "
        "last piece itself does; as the model's folder says, or masked.",
    )
    flags.DEFINE_list(
        "segment_ids", None, "Segments of source and target (0,1), if not those of the mode."
    )
    flags.DEFINE_integer(
        "max_source_length",
        None,
        "Most pieces, [CLS] and [SEP] counted; as the model's folder says, or 128.",
        3,
    )
    flags.DEFINE_integer(
        "max_target_length",
        None,
        "Most pieces, the final [SEP] counted; as the model's folder says, or 64.",
        2,
    )
    flags.DEFINE_enum(
        "truncate_source",
        None,
        ENDS,
        "Which end of a longer source is cut off; as the model's folder says, or its tail. Of a "
        "prompt the head, if not given.",
    )


def define_search():
    """Defines how targets are searched: as the model's folder says, where flags are not given."""
    settings.define(SearchSettings)
    for name in SEARCH_DEFAULTS:
        flags.FLAGS.set_default(name, None)
    flags.DEFINE_integer("seed", 1, "Of sampling; the same seed gives the same text.", 0)
    flags.DEFINE_bool("jit_compile", True, "Compile the search with XLA.")
