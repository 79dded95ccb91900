"""The settings of tools/run_ablation.py."""

import dataclasses

from nezha_tf.util.settings import flag


@dataclasses.dataclass(frozen=True, kw_only=True)
class AblationSettings:
    """The settings of tools/run_ablation.py."""

    ablation_file: str | None = flag(None, "TOML file that names the stages and the settings.")
    output_dir: str | None = flag(None, "Folder for all runs, the table and the picture.")
    settings: tuple[str, ...] = flag(
        (), "Settings of the file to run and to compare, comma-separated; default: all."
    )
    seeds: tuple[str, ...] = flag((), "Seeds, comma-separated, in place of those of the file.")
    paths: tuple[str, ...] = flag(
        (), "Folders in place of those of the file's [paths], as name=folder, comma-separated."
    )
    num_jobs: int = flag(
        0, "Programs that run at the same time, which share the cores; 0: one for each core.", 0
    )
