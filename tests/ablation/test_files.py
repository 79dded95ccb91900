"""The ablations of configs/: their stages' programs take the flags."""

import pytest
from commands import flags_of
from conftest import REPOSITORY

from nezha_tf.ablation import plan
from nezha_tf.ablation.settings import AblationSettings

FILES = sorted(path.name for path in (REPOSITORY / "configs").glob("*.toml"))


@pytest.mark.parametrize("name", FILES)
def test_each_program_takes_its_flags(name, tmp_path, monkeypatch):
    monkeypatch.chdir(REPOSITORY)
    settings = AblationSettings(ablation_file=f"configs/{name}", output_dir=str(tmp_path))
    ablation = plan.read(settings)
    # The files that --paths names are the user's.
    ablation = ablation._replace(paths=dict.fromkeys(ablation.paths, str(REPOSITORY)))
    for job in set(plan.jobs_of(ablation, str(tmp_path)).values()):
        values = flags_of(job.program, *job.flags)
        if "/seed" in job.name:
            assert values["seed"] == int(job.name.rpartition("/seed")[2])
