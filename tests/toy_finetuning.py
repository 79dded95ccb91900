"""The program of `toy_task`, written like the other programs."""

import dataclasses

from nezha_tf import cli
from nezha_tf.settings import flag
from nezha_tf.tasks.finetuning.settings import FineTuningSettings


@dataclasses.dataclass(frozen=True, kw_only=True)
class ToySettings(FineTuningSettings):
    train_file: str | None = flag(None, "Data.")
    eval_file: str | None = flag(None, "Data.")
    predict_file: str | None = flag(None, "Data.")
    best_metric: str = flag("accuracy", "Of the best checkpoint.", choices=("loss", "accuracy"))


def main(settings):
    from toy_task import ToyTask

    from nezha_tf.tasks.finetuning import sweep

    sweep.run(settings, ToyTask)


if __name__ == "__main__":
    cli.run(main, ToySettings)
