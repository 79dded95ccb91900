"""The flags of run_classifier.py on its data."""

from absl import flags

from nezha_tf.tasks.classification.data_sets import NAMES
from nezha_tf.tasks.classification.metrics import OF_LABEL_TYPE


def define():
    """Defines the flags; the calling program adopts them."""
    flags.DEFINE_enum("task_name", None, NAMES, "The data set; custom: one's own files.")
    flags.DEFINE_string("data_dir", None, "Folder of the files of a data set.")
    flags.DEFINE_string(
        "train_file",
        None,
        "Examples to train on: .json or .jsonl with an object a line, .tsv or .txt with tabs "
        "between columns, or .csv; .gz too; names or globs, comma-separated.",
    )
    flags.DEFINE_string("eval_file", None, "Examples to evaluate on, likewise.")
    flags.DEFINE_string(
        "predict_file", None, "Examples to predict, likewise; labels may be left out."
    )
    _columns()


def _columns():
    flags.DEFINE_string("text_column", "text", "Name of the column, or key, of the text.")
    flags.DEFINE_string("text_pair_column", None, "Of the second text of a pair.")
    flags.DEFINE_string("label_column", "label", "Of the label.")
    flags.DEFINE_list(
        "columns", [], "Names of all columns of files whose first line does not name them."
    )
    flags.DEFINE_enum(
        "label_type", "single", list(OF_LABEL_TYPE), "One class, any of several, or a number."
    )
    flags.DEFINE_list("labels", [], "The classes; else those found in the training data.")
    flags.DEFINE_string(
        "label_separator", ",", "Between the classes of an example, where it is no list in JSON."
    )
