"""The mode and the format of the tools where no flag says them: those of the training."""

from types import SimpleNamespace

import pytest
from absl import flags
from commands import settings_of

from nezha_tf.generation.fill import require_blanks
from nezha_tf.generation.settings import GenerateSettings, ScoreSettings
from nezha_tf.generation.writing_format import target_format_of, with_format
from nezha_tf.util.errors import UserError

UNILM = "bidirectional:2,seq2seq:2,left_to_right:1,right_to_left:1"
SEGMENTS = {"seq2seq": (4, 5), "left_to_right": (2, 2)}


def opened_of(objectives):
    """Returns what is opened: a pretrained model; None: a published model or a bare checkpoint."""
    if objectives is None:
        return SimpleNamespace(task={"task": None})
    task = {"task": "pretraining", "max_seq_length": 32, "objectives": objectives}
    return SimpleNamespace(task=task)


@pytest.mark.parametrize(
    "objectives, writes, prediction, scores",
    (
        ("left_to_right", "left_to_right", "masked", "left_to_right"),
        ("seq2seq", "seq2seq", "masked", "seq2seq"),
        (UNILM, "seq2seq", "masked", "seq2seq"),
        ("left_to_right,bidirectional", "left_to_right", "masked", "left_to_right"),
        ("bidirectional", "seq2seq", "masked", "bidirectional"),
        # Trained from right to left alone, it neither writes nor fills blanks.
        ("right_to_left", "seq2seq", "masked", "seq2seq"),
        (None, "seq2seq", "masked", "seq2seq"),
        ("causal", "left_to_right", "shift", "left_to_right"),
        ("prefix,causal", "seq2seq", "shift", "seq2seq"),
        ("infilling", "seq2seq", "shift", "seq2seq"),
        ("bidirectional,mass", "seq2seq", "shift", "seq2seq"),
    ),
)
def test_a_model_writes_and_scores_as_it_was_trained(objectives, writes, prediction, scores):
    opened = opened_of(objectives)
    settings = with_format(GenerateSettings(), opened)
    form = target_format_of(vars(settings))
    assert (form.mode, form.segment_ids) == (writes, SEGMENTS[writes])
    assert form.target_prediction == prediction
    # A prompt goes on at its end.
    assert settings.truncate_source == ("tail" if writes == "seq2seq" else "head")
    settings = with_format(ScoreSettings(), opened, "bidirectional")
    assert settings.mode == scores
    if scores in SEGMENTS:
        assert target_format_of(vars(settings)) == form


def test_flags_and_folders_say_the_format():
    trained, bare = opened_of("left_to_right"), opened_of(None)
    given = GenerateSettings(mode="seq2seq", segment_ids=("0", "1"))
    assert target_format_of(vars(with_format(given, trained))).segment_ids == (0, 1)
    given = with_format(GenerateSettings(mode="left_to_right"), bare)
    assert target_format_of(vars(given)).segment_ids == (2, 2)
    for mode in ("seq2seq", "bidirectional"):
        assert with_format(ScoreSettings(mode=mode), trained, "bidirectional").mode == mode
    folder = SimpleNamespace(task={"task": "seq2seq", "max_source_length": 9})
    folder.task |= {"target_prediction": "shift", "truncate_source": "tail"}
    settings = with_format(GenerateSettings(), folder)
    assert (settings.mode, settings.max_source_length) == ("seq2seq", 9)
    assert (settings.target_prediction, settings.truncate_source) == ("shift", "tail")
    # What the folder says of sources is not for prompts.
    assert with_format(GenerateSettings(mode="left_to_right"), folder).truncate_source == "head"
    given = GenerateSettings(mode="left_to_right", truncate_source="tail")
    assert with_format(given, folder).truncate_source == "tail"


def test_models_that_fill_no_blanks_are_refused():
    for objectives in (None, UNILM):
        require_blanks(opened_of(objectives))
    for objectives in ("causal", "replaced_tokens", "left_to_right,seq2seq"):
        message = f"pretrained for {objectives} and cannot fill blanks"
        with pytest.raises(UserError, match=message):
            require_blanks(opened_of(objectives))


def test_seeds_that_the_search_cannot_count_are_no_flags():
    assert settings_of(GenerateSettings, f"--seed={2**32 - 1}").seed == 2**32 - 1
    with pytest.raises(flags.IllegalFlagValueError, match="flag --seed="):
        settings_of(GenerateSettings, f"--seed={2**63}")
