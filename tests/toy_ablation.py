"""Files of ablations that tests write."""

from conftest import REPOSITORY

from nezha_tf.ablation.settings import AblationSettings

TOY = REPOSITORY / "tests" / "toy_program.py"
# Two settings of a first stage and of one that starts from it.
FILE = f"""
seeds = [3, 1]
[stages.first]
program = "{TOY}"
flags.rate = 2
[stages.second]
program = "{TOY}"
metrics = ["score"]
flags.start = "{{first}}"
[settings.plain]
[settings.fast]
second.rate = 10
"""


def settings(folder, text=FILE, **changes):
    """Writes a file into a folder; returns the settings for it."""
    folder.mkdir(exist_ok=True)
    path = folder / "ablation.toml"
    path.write_text(text)
    values = {"ablation_file": str(path), "output_dir": str(folder / "out"), **changes}
    return AblationSettings(**values)
