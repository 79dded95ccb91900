"""The ablations of configs/: their stages' programs take the flags, which fit together."""

import dataclasses

import pytest
from commands import flags_of
from conftest import REPOSITORY

from nezha_tf import NezhaConfig
from nezha_tf.ablation import jobs, plan
from nezha_tf.ablation.settings import AblationSettings
from nezha_tf.config import SEGMENT_IDS
from nezha_tf.objectives.mixture import ObjectiveMixture

FILES = sorted(path.name for path in (REPOSITORY / "configs" / "ablations").glob("*.toml"))
# Program to a function from its flags to the segment ids in its examples.
NEEDED = {
    "run_pretraining.py": lambda flags: ObjectiveMixture.from_text(flags["objectives"]).segment_ids,
    "run_seq2seq.py": lambda flags: SEGMENT_IDS["seq2seq"],
}


@pytest.fixture(params=FILES)
def all_jobs(request, tmp_path, monkeypatch):
    """The different jobs of an ablation."""
    monkeypatch.chdir(REPOSITORY)
    # The files that --paths names are the user's.
    monkeypatch.setattr(plan.storage, "glob", lambda path: [path])
    path = f"configs/ablations/{request.param}"
    settings = AblationSettings(ablation_file=path, output_dir=str(tmp_path))
    return set(plan.jobs_of(plan.read(settings), str(tmp_path)).values())


def test_each_program_takes_its_flags(all_jobs):
    for job in all_jobs:
        if job.program.startswith("examples/"):
            jobs.check([job])
            continue
        values = flags_of(job.program, *job.flags)
        if "/seed" in job.name and "seed" in values:
            assert values["seed"] == int(job.name.rpartition("/seed")[2])


def test_each_model_has_the_segments_of_its_stage(all_jobs):
    for job in all_jobs:
        if job.program not in NEEDED:
            continue
        values = flags_of(job.program, *job.flags)
        if values["bert_config_file"]:  # otherwise it is that of the start
            config = NezhaConfig.from_json_file(values["bert_config_file"])
            assert max(NEEDED[job.program](values)) < config.type_vocab_size, job.name


def test_a_start_has_the_configuration_of_its_task(all_jobs, tmp_path):
    values = {
        str(tmp_path / job.name): flags_of(job.program, *job.flags)
        for job in all_jobs
        if job.program.startswith("run_")
    }
    for folder, flags in values.items():
        start = values.get(flags["init_checkpoint"])
        if start and flags["bert_config_file"]:
            config, of_start = (_shape(each["bert_config_file"]) for each in (flags, start))
            assert config == of_start, folder


def _shape(path):
    """Returns what a configuration says of the weights and of what is computed from them."""
    config = NezhaConfig.from_json_file(path)
    return dataclasses.replace(config, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
