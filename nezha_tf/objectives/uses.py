"""The uses of a pretrained model, by the settings in its `task.json`."""

from nezha_tf.objectives.mixture import ObjectiveMixture
from nezha_tf.objectives.table import OBJECTIVES

# Ability of a `Use` to what the hubs of models call it, their `pipeline_tag`.
PIPELINE_TAGS = {
    "fill_mask": "fill-mask",
    "left_to_right": "text-generation",
    "seq2seq": "text-generation",
}


def uses_of(settings):
    """Returns a model's uses, a dict of ability to `Use`; the first one is the default.

    For a mixture, these are the uses of all its objectives in the order of the table; shares do not
    matter. So a model of UniLM's four objectives fills blanks by default, as BERT does. There are
    none for fine-tuned tasks, which are only used for their task.

    Args:
      settings: dict of the contents of `task.json`; or {"task": None} for a published model
        without a task's head, which is assumed to be trained like BERT.
    """
    if settings["task"] == "pretraining":
        trained = ObjectiveMixture.from_text(settings["objectives"], "objectives").objectives
    else:
        trained = {"bidirectional"} if settings["task"] is None else ()
    uses = [use for name, each in OBJECTIVES.items() if name in trained for use in each.uses]
    by_ability = {}
    for use in uses:
        by_ability.setdefault(use.ability, use)
    return by_ability
