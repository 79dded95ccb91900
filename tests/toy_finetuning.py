"""The program of `toy_task`, as the entry points are written."""

import sys

from absl import flags

from nezha_tf import cli
from nezha_tf.tasks.finetuning import flags as finetuning_flags

FLAGS = flags.FLAGS
for part in ("train", "eval", "predict"):
    flags.DEFINE_string(f"{part}_file", None, "Data.")
finetuning_flags.define(["loss", "accuracy"], "accuracy")
flags.adopt_module_key_flags(finetuning_flags)
flags.adopt_module_key_flags(finetuning_flags.training_flags)


def main():
    from toy_task import ToyTask

    from nezha_tf.tasks.finetuning import sweep

    names = [flag.name for flag in FLAGS.get_key_flags_for_module(sys.argv[0])]
    sweep.run({name: FLAGS[name].value for name in names}, ToyTask)


if __name__ == "__main__":
    cli.run(main)
