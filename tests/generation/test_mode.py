"""In which mode the tools write and score if no flag says it, as the model was trained; seeds."""

from types import SimpleNamespace

import pytest
from absl import flags
from commands import settings_of

from nezha_tf.generation.fill import require_blanks
from nezha_tf.generation.settings import GenerateSettings, ScoreSettings
from nezha_tf.generation.writing_format import target_format_of, with_format
from nezha_tf.util.errors import UserError

PRETRAINED = {"task": "pretraining", "max_seq_length": 32}
UNILM = "bidirectional:2,seq2seq:2,left_to_right:1,right_to_left:1"


@pytest.mark.parametrize(
    "task, given, mode, segment_ids, truncated",
    (
        ({**PRETRAINED, "objectives": "left_to_right"}, {}, "left_to_right", (2, 2), "head"),
        ({**PRETRAINED, "objectives": "seq2seq"}, {}, "seq2seq", (4, 5), "tail"),
        ({**PRETRAINED, "objectives": UNILM}, {}, "seq2seq", (4, 5), "tail"),
        ({**PRETRAINED, "objectives": "bidirectional"}, {}, "seq2seq", (4, 5), "tail"),
        ({"task": None}, {"mode": "left_to_right"}, "left_to_right", (2, 2), "head"),
        (
            {**PRETRAINED, "objectives": "left_to_right"},
            {"mode": "seq2seq", "segment_ids": ("0", "1")},
            "seq2seq",
            (0, 1),
            "tail",
        ),
    ),
)
def test_a_model_writes_as_it_was_trained(task, given, mode, segment_ids, truncated):
    opened = SimpleNamespace(task=task)
    settings = with_format(GenerateSettings(**given), opened)
    found = target_format_of(settings)
    assert (found.mode, found.segment_ids) == (mode, segment_ids)
    assert (found.target_prediction, settings.truncate_source) == ("masked", truncated)


@pytest.mark.parametrize(
    "task, given, mode",
    (
        ({**PRETRAINED, "objectives": "left_to_right"}, None, "left_to_right"),
        ({**PRETRAINED, "objectives": "seq2seq"}, None, "seq2seq"),
        ({**PRETRAINED, "objectives": UNILM}, None, "seq2seq"),
        ({**PRETRAINED, "objectives": "left_to_right,bidirectional"}, None, "left_to_right"),
        ({**PRETRAINED, "objectives": "bidirectional"}, None, "bidirectional"),
        # Trained from right to left alone, it neither writes nor fills blanks.
        ({**PRETRAINED, "objectives": "right_to_left"}, None, "seq2seq"),
        ({**PRETRAINED, "objectives": "bidirectional"}, "seq2seq", "seq2seq"),
        ({**PRETRAINED, "objectives": "left_to_right"}, "bidirectional", "bidirectional"),
        # Fine-tuned, and of unknown training: a published model or a bare checkpoint.
        ({"task": "seq2seq"}, None, "seq2seq"),
        ({"task": None}, None, "seq2seq"),
        ({"task": None}, "bidirectional", "bidirectional"),
    ),
)
def test_a_model_scores_as_it_was_trained(task, given, mode):
    opened = SimpleNamespace(task=task)
    assert with_format(ScoreSettings(mode=given), opened, "bidirectional").mode == mode


def test_texts_are_scored_in_the_form_of_their_objective():
    opened = SimpleNamespace(task={**PRETRAINED, "objectives": "left_to_right"})
    settings = with_format(ScoreSettings(), opened, "bidirectional")
    found = target_format_of(settings)
    assert (found.mode, found.segment_ids) == ("left_to_right", (2, 2))


@pytest.mark.parametrize(
    "objectives, mode, segment_ids",
    (
        ("causal", "left_to_right", (2, 2)),
        ("prefix,causal", "seq2seq", (4, 5)),
        ("infilling", "seq2seq", (4, 5)),
        ("bidirectional,mass", "seq2seq", (4, 5)),
    ),
)
def test_models_of_next_tokens_write_and_score_without_masks(objectives, mode, segment_ids):
    opened = SimpleNamespace(task={**PRETRAINED, "objectives": objectives})
    for given in (GenerateSettings(), ScoreSettings()):
        found = target_format_of(with_format(given, opened, "bidirectional"))
        assert (found.mode, found.segment_ids) == (mode, segment_ids)
        assert found.target_prediction == "shift"


@pytest.mark.parametrize("task", ({"task": None}, {**PRETRAINED, "objectives": UNILM}))
def test_models_that_fill_blanks(task):
    require_blanks(SimpleNamespace(task=task))


@pytest.mark.parametrize("objectives", ("causal", "replaced_tokens", "left_to_right,seq2seq"))
def test_models_that_fill_no_blanks_are_refused(objectives):
    with pytest.raises(UserError, match=f"pretrained for {objectives} and cannot fill blanks"):
        require_blanks(SimpleNamespace(task={**PRETRAINED, "objectives": objectives}))


def test_seeds_that_the_search_cannot_count_are_no_flags():
    assert settings_of(GenerateSettings, f"--seed={2**32 - 1}").seed == 2**32 - 1
    with pytest.raises(flags.IllegalFlagValueError, match="flag --seed="):
        settings_of(GenerateSettings, f"--seed={2**63}")
