"""The settings of run_ner.py."""

import dataclasses

from nezha_tf.data.entity_tags import SCHEMES
from nezha_tf.tasks.finetuning.settings import FineTuningSettings
from nezha_tf.tasks.tagging.metrics import NAMES
from nezha_tf.util.settings import GIVEN, flag


@dataclasses.dataclass(frozen=True, kw_only=True)
class TaggingSettings(FineTuningSettings):
    """The sentences, their tags, and the windows of long sentences."""

    train_file: str | None = flag(
        None,
        'Sentences to train on: .json or .jsonl with {"text": ..., "entities": [{"start":, '
        '"end":, "label":}]} per line (end: the first character after the entity), or an export of '
        "doccano, Label Studio, CLUENER or Hugging Face; brat's .ann beside .txt, or a folder of "
        "them; or a character, a space or a tab, and its tag per line, with blank lines between "
        "sentences; or the characters of a sentence, a tab and their tags per line, with spaces "
        "between them; also .gz; file names or globs, separated by commas.",
    )
    eval_file: str | None = flag(None, "Sentences to evaluate on, in the same formats.")
    predict_file: str | None = flag(
        None,
        "Sentences in which to find entities, in the same formats, where entities may be left out; "
        "or raw text, one sentence per line.",
    )
    scheme: str = flag(
        "auto",
        "Tagging scheme of the model; auto: that of the training files, BIO for JSON.",
        choices=("auto", *SCHEMES),
    )
    window_stride: int | None = flag(
        None,
        "Tokens between the starts of two windows of a long sentence; default: half a window.",
        1,
    )
    crf: bool = flag(False, "Use a conditional random field over the tag scores.")
    crf_learning_rate_factor: float = flag(
        100.0,
        "Learning rate of the CRF's transitions, which begin at 0, relative to --learning_rate.",
        0,
        read_with={"crf": GIVEN},
    )
    best_metric: str = flag(
        "f1", "Metric that chooses the best checkpoint.", choices=("loss", *NAMES)
    )
