"""The settings of run_multiple_choice.py."""

import dataclasses

from nezha_tf.tasks.finetuning.data_sets import CUSTOM
from nezha_tf.tasks.finetuning.settings import FineTuningSettings
from nezha_tf.tasks.multiple_choice.data_sets import NAMES
from nezha_tf.util.settings import default_of, flag


@dataclasses.dataclass(frozen=True, kw_only=True)
class MultipleChoiceSettings(FineTuningSettings):
    """The data set, and the columns of the user's own files."""

    task_name: str | None = flag(None, "The data set; custom: your own files.", choices=NAMES)
    data_dir: str | None = flag(None, "Folder with the files of the data set.")
    train_file: str | None = flag(
        None,
        "Questions to train on, in the data set's own format; with --task_name=custom: .json or "
        ".jsonl with one object per line or one array of them, .tsv, .txt or .csv; file names or "
        "globs, separated by commas.",
    )
    eval_file: str | None = flag(None, "Questions to evaluate on, in the same formats.")
    predict_file: str | None = flag(
        None, "Questions to answer, in the same formats; answers may be left out."
    )
    context_column: str = flag(
        "context", "Column, or key, of the text.", read_with={"task_name": (CUSTOM,)}
    )
    question_column: str | None = flag(
        "question",
        "Column of the question; empty: the text has a blank, #idiom#.",
        read_with={"task_name": (CUSTOM,)},
    )
    choices_column: str = flag(
        "choices",
        "Column of the choices, a JSON list of texts.",
        read_with={"task_name": (CUSTOM,)},
    )
    answer_column: str = flag(
        "answer", "Column of the right choice.", read_with={"task_name": (CUSTOM,)}
    )
    answer_type: str = flag(
        "text",
        "text: the answer is the text of a choice; index: its number, from 0.",
        choices=("text", "index"),
        read_with={"task_name": (CUSTOM,)},
    )
    different_choices: bool = flag(
        True, "Choose different idioms for the blanks of a passage that share their choices."
    )
    # The length of C3's original program.
    max_seq_length: int = default_of(FineTuningSettings, "max_seq_length", 512)
    best_metric: str = flag(
        "accuracy", "Metric that chooses the best checkpoint.", choices=("loss", "accuracy")
    )
