"""The ablations of configs/: their stages' programs take the flags."""

import pytest
from commands import flags_of
from conftest import REPOSITORY

from nezha_tf.ablation import jobs, plan
from nezha_tf.ablation.settings import AblationSettings

FILES = sorted(path.name for path in (REPOSITORY / "configs" / "ablations").glob("*.toml"))


@pytest.mark.parametrize("name", FILES)
def test_each_program_takes_its_flags(name, tmp_path, monkeypatch):
    monkeypatch.chdir(REPOSITORY)
    # The files that --paths names are the user's.
    monkeypatch.setattr(plan.storage, "glob", lambda path: [path])
    settings = AblationSettings(ablation_file=f"configs/ablations/{name}", output_dir=str(tmp_path))
    ablation = plan.read(settings)
    for job in set(plan.jobs_of(ablation, str(tmp_path)).values()):
        if job.program.startswith("examples/"):
            jobs.check([job])
            continue
        values = flags_of(job.program, *job.flags)
        if "/seed" in job.name:
            assert values["seed"] == int(job.name.rpartition("/seed")[2])
