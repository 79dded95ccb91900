"""The user's own data beside the data sets that are known by name."""

from nezha_tf.util.errors import UserError
from nezha_tf.util.settings import changed, flag_text

# The --task_name of the user's own data.
CUSTOM = "custom"


def refuse_flags_of_custom(settings, names):
    """Raises a `UserError` if a flag that only the user's own data need is given.

    Args:
      settings: settings with a `task_name`, that of a data set known by name.
      names: sequence of names of such flags.
    """
    given = changed(settings)
    for name in filter(given.__contains__, names):
        raise UserError(
            f"--{name}={flag_text(given[name])} does nothing with "
            f"--task_name={settings.task_name}, whose columns are known; leave it out, or pass "
            f"--task_name={CUSTOM}"
        )
