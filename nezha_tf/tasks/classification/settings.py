"""The settings of run_classifier.py."""

import dataclasses

from nezha_tf.tasks.classification.data_sets import NAMES
from nezha_tf.tasks.classification.metrics import NAMES as METRICS
from nezha_tf.tasks.classification.metrics import OF_LABEL_TYPE
from nezha_tf.tasks.finetuning.data_sets import CUSTOM
from nezha_tf.tasks.finetuning.settings import FineTuningSettings
from nezha_tf.util.settings import GIVEN, flag


@dataclasses.dataclass(frozen=True, kw_only=True)
class ClassificationSettings(FineTuningSettings):
    """The data set, its columns and its labels."""

    task_name: str | None = flag(None, "The data set; custom: your own files.", choices=NAMES)
    data_dir: str | None = flag(None, "Folder with the files of the data set.")
    train_file: str | None = flag(
        None,
        "Examples to train on: .json or .jsonl with one object per line or one array of them, .tsv "
        "or .txt with tabs between columns, or .csv; also .gz; file names or globs, separated by "
        "commas.",
    )
    eval_file: str | None = flag(None, "Examples to evaluate on, in the same formats.")
    predict_file: str | None = flag(
        None, "Examples to predict, in the same formats; labels may be left out."
    )
    text_column: str = flag(
        "text", "Column, or key, of the text.", read_with={"task_name": (CUSTOM,)}
    )
    text_pair_column: str | None = flag(
        None, "Column of the second text of a pair.", read_with={"task_name": (CUSTOM,)}
    )
    label_column: str = flag("label", "Column of the label.", read_with={"task_name": (CUSTOM,)})
    columns: tuple[str, ...] = flag(
        (),
        "Names of all columns of files whose first line does not name them.",
        read_with={"task_name": (CUSTOM,)},
    )
    label_type: str = flag(
        "single",
        "single: one class per example; multi: any number of classes; regression: a number.",
        choices=tuple(OF_LABEL_TYPE),
    )
    labels: tuple[str, ...] = flag(
        (),
        "The classes; default: those of the training data.",
        read_with={"label_type": ("single", "multi")},
    )
    label_separator: str = flag(
        ",",
        "Separator between the classes of an example, unless they are a JSON list.",
        read_with={"label_type": ("multi",)},
    )
    pattern: str | None = flag(
        None,
        "Classify with the head of masked LM: a text with {text}, for pairs {text_pair}, and "
        "[MASK] for each token of a class's word.",
    )
    label_words: tuple[str, ...] = flag(
        (),
        "The word of each class, in the order of the classes.",
        read_with={"pattern": GIVEN},
    )
    best_metric: str | None = flag(
        None, "Metric that chooses the best checkpoint.", choices=("loss", *METRICS)
    )
