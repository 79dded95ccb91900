"""What a later run takes from a run's folder about its head, and what it refuses."""

import json

import pytest

from nezha_tf.generation.settings import SEARCH_DEFAULTS
from nezha_tf.tasks.classification.settings import ClassificationSettings
from nezha_tf.tasks.multiple_choice.settings import MultipleChoiceSettings
from nezha_tf.tasks.reading_comprehension.settings import ReadingComprehensionSettings
from nezha_tf.tasks.sentence_vectors.settings import SentenceVectorSettings
from nezha_tf.tasks.seq2seq.settings import Seq2SeqSettings
from nezha_tf.tasks.tagging.settings import TaggingSettings
from nezha_tf.training.output_folder import with_head_of_run
from nezha_tf.util.errors import UserError

COMMON = {"do_lower_case": True, "max_seq_length": 16, "uses_averages": False}
CLASSES = {"label_type": "single", "labels": ["a", "b"], "is_pair": False}
PATTERN = {"pattern": "{text}是[MASK]", "label_words": ["不", "很"]}
# The program's settings, task.json, the flags that it stands for, and others.
RUNS = {
    "classes": (
        ClassificationSettings,
        {"task": "classification", **CLASSES, "label_type": "regression", "labels": []},
        {"label_type": "regression"},
        {"label_type": "multi"},
    ),
    "pattern": (
        ClassificationSettings,
        {"task": "prompting", **CLASSES, **PATTERN},
        {"pattern": PATTERN["pattern"], "label_words": ("不", "很")},
        {"label_words": ("很", "不")},
    ),
    "entities": (
        TaggingSettings,
        {"task": "tagging", "labels": ["O"], "scheme": "BIO", "crf": True, "window_stride": 7},
        {"crf": True},
        {},
    ),
    "answers": (
        ReadingComprehensionSettings,
        {
            "task": "reading_comprehension",
            "max_query_length": 8,
            "doc_stride": 4,
            "max_answer_length": 5,
            "n_best_size": 3,
            "version_2_with_negative": True,
            "null_score_diff_threshold": 0.0,
        },
        {"version_2_with_negative": True},
        {},
    ),
    "vectors": (
        SentenceVectorSettings,
        {"task": "sentence_vectors", "pooling": "mean"},
        {"pooling": "mean"},
        {},
    ),
    "targets": (
        Seq2SeqSettings,
        {
            "task": "seq2seq",
            "target_prediction": "shift",
            "max_source_length": 8,
            "max_target_length": 8,
            "truncate_source": "tail",
            **{n: list(v) if isinstance(v, tuple) else v for n, v in SEARCH_DEFAULTS.items()},
        },
        {"target_prediction": "shift"},
        {},
    ),
}


@pytest.fixture(params=RUNS)
def run(request, tmp_path):
    """Returns (function of flags that returns settings with the folder, flags of it, others)."""
    settings_class, task, flags, others = RUNS[request.param]
    (tmp_path / "task.json").write_text(json.dumps({**COMMON, **task}))
    return lambda **given: settings_class(output_dir=str(tmp_path), **given), flags, others


def test_what_is_not_given_is_taken(run):
    settings, flags, _ = run
    for given in ({}, flags):
        assert with_head_of_run(settings(**given)) == settings(**flags)


def test_what_is_given_otherwise_is_refused(run):
    settings, flags, others = run
    training = {"do_train": True}
    assert with_head_of_run(settings(**flags, **training)) == settings(**flags, **training)
    for given in (training, *([{**flags, **others}] if others else [])):
        with pytest.raises(UserError, match=r"give it the same flag, or another --output_dir$"):
            with_head_of_run(settings(**given))


def test_the_best_checkpoint_is_that_of_its_metric(tmp_path):
    best = {"global_step": 5, "accuracy": 0.5}
    (tmp_path / "best_checkpoint.json").write_text(json.dumps(best))

    def found(settings_class, **given):
        settings = settings_class(output_dir=str(tmp_path), **given)
        return with_head_of_run(settings).best_metric

    assert found(ClassificationSettings) == found(MultipleChoiceSettings) == "accuracy"
    assert found(ClassificationSettings, best_metric="accuracy") == "accuracy"
    # A run that trains chooses anew.
    assert found(ClassificationSettings, best_metric="loss", do_train=True) == "loss"
    with pytest.raises(UserError, match="--best_metric=accuracy, not of --best_metric=loss"):
        found(ClassificationSettings, best_metric="loss")


def test_a_new_folder_changes_nothing(tmp_path):
    for folder in (None, str(tmp_path)):
        settings = TaggingSettings(output_dir=folder)
        assert with_head_of_run(settings) == settings
