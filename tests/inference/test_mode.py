"""In which form generate_text writes where no flag says it: that of the model's objective."""

from types import SimpleNamespace

import pytest

from nezha_tf.inference.loading import settled_form, settled_mode, target_format_of

FORM_FLAGS = ("target_prediction", "max_source_length", "max_target_length", "truncate_source")
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
            {"mode": "seq2seq", "segment_ids": ["0", "1"]},
            "seq2seq",
            (0, 1),
            "tail",
        ),
    ),
)
def test_a_model_writes_as_it_was_trained(task, given, mode, segment_ids, truncated):
    flags = {**dict.fromkeys((*FORM_FLAGS, "mode", "segment_ids")), **given}
    opened = SimpleNamespace(task=task)
    flags = settled_form(settled_mode(flags, opened), opened)
    found = target_format_of(flags)
    assert (found.mode, found.segment_ids) == (mode, segment_ids)
    assert (found.target_prediction, flags["truncate_source"]) == ("masked", truncated)
