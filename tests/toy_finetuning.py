"""The program of `toy_task`, written like the other programs."""

import dataclasses

from nezha_tf import cli
from nezha_tf.tasks.finetuning.settings import FineTuningSettings
from nezha_tf.util.settings import flag


@dataclasses.dataclass(frozen=True, kw_only=True)
class ToySettings(FineTuningSettings):
    train_file: str | None = flag(None, "Data.")
    eval_file: str | None = flag(None, "Data.")
    predict_file: str | None = flag(None, "Data.")
    best_metric: str = flag("accuracy", "Of the best checkpoint.", choices=("loss", "accuracy"))


def settings_in(data, out, **changes):
    """Returns the settings for the files of `toy_task.write_files` in a folder."""
    from toy_task import CHANGES

    values = {**CHANGES, "learning_rate": ("0.01",), **changes}
    for name in ("bert_config_file", "vocab_file", "train_file", "eval_file", "predict_file"):
        values[name] = str(data / values[name])
    return ToySettings(**{**values, "output_dir": str(out)})


def main(settings):
    from toy_task import ToyTask

    from nezha_tf.tasks.finetuning import sweep

    sweep.run(settings, ToyTask)


if __name__ == "__main__":
    cli.run(main, ToySettings)
