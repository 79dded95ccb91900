"""The flags of every program that fine-tunes for understanding."""

from absl import flags

from nezha_tf.training import flags as training_flags

PREDICTION_FORMATS = ("jsonl", "tsv")

# As the originals' run_classifier.py, but that an evaluation reads all examples.
DEFAULTS = {
    "optimizer": "adamw",
    "learning_rate": 5e-5,
    "warmup_proportion": 0.1,
    "num_train_steps": None,
    "save_checkpoints_steps": None,
    "max_eval_steps": None,
    "keep_checkpoint_max": 1,
    "eval_batch_size": 32,
}


def define(metrics, best_metric):
    """Defines the flags, those of training among them; the calling program adopts them.

    Args:
      metrics: names of what an evaluation measures.
      best_metric: the one that chooses the best checkpoint by default.
    """
    _files()
    flags.DEFINE_integer("max_seq_length", 128, "Most pieces, special ones counted.", 3)
    flags.DEFINE_float("num_train_epochs", 3.0, "Times that training goes through its data.", 0)
    flags.DEFINE_bool(
        "bucket_by_length",
        True,
        "Batches of like lengths, padded no further than they need; off: all to the same length, "
        "as a TPU needs it.",
    )
    flags.DEFINE_integer("predict_batch_size", 32, "Examples that are predicted at a time.", 1)
    flags.DEFINE_enum("best_metric", best_metric, metrics, "Of the checkpoint kept as best.")
    flags.DEFINE_bool(
        "skip_bad_rows",
        False,
        "Pass over faulty rows, and count them; without it the first one ends the run.",
    )
    flags.DEFINE_enum("predictions_format", "jsonl", PREDICTION_FORMATS, "Of the predictions.")
    training_flags.define()
    for name, value in DEFAULTS.items():
        flags.FLAGS.set_default(name, value)


def _files():
    flags.DEFINE_string("bert_config_file", None, "The model's configuration, JSON.")
    flags.DEFINE_string("vocab_file", None, "Its vocabulary, one piece a line.")
    flags.DEFINE_bool("do_lower_case", True, "Lower-case the text and strip accents.")
    flags.DEFINE_string("output_dir", None, "Checkpoints and results; a run goes on from there.")
    flags.DEFINE_string("init_checkpoint", None, "TF1 checkpoint, or one of ours, to start from.")
    flags.DEFINE_bool("do_train", False, "Train.")
    flags.DEFINE_bool("do_eval", False, "Evaluate: at each checkpoint, and the best at the end.")
    flags.DEFINE_bool("do_predict", False, "Write predictions, with the best checkpoint.")
