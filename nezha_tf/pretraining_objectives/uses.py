"""What a pretrained model serves as, by the settings in its `task.json`."""

from nezha_tf.pretraining_objectives.mixture import ObjectiveMixture
from nezha_tf.pretraining_objectives.table import OBJECTIVES


def uses_of(settings):
    """Returns what a model serves as, by its ability; the first is what it is used as by default.

    Of a mixture these are the uses of all its objectives, in the order of the table, whatever their
    shares: so UniLM's four fill blanks unless something else is asked for, as BERT does.

    Args:
      settings: dict as of `task.json`, or {"task": None} of a published model without a task's
        head, which is taken to be trained as BERT is.

    Returns:
      dict of ability to `Use`; {} where the objectives have none, and of the tasks that are
      fine-tuned, which serve as themselves.

    Raises:
      UserError: an objective that is not in the table.
    """
    if settings["task"] == "pretraining":
        trained = ObjectiveMixture.from_text(settings["objectives"], "objectives").objectives
    else:
        trained = {"bidirectional"} if settings["task"] is None else ()
    uses = [use for name, each in OBJECTIVES.items() if name in trained for use in each.uses]
    found = {}
    for use in uses:
        found.setdefault(use.ability, use)
    return found
