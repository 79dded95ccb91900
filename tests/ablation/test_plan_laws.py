"""Laws of the jobs of any ablation, against a plain expansion of its file."""

import json

import laws
from hypothesis import given
from hypothesis import strategies as st
from toy_ablation import TOY

from nezha_tf.ablation import plan
from nezha_tf.ablation.settings import AblationSettings

FLAGS = ("rate", "start", "seconds")


@st.composite
def files(draw):
    """Draws a file: stages that may read earlier ones, settings that change some."""
    count = draw(st.integers(1, 4))
    stages, settings = {}, {}
    for number in range(count):
        earlier = [name for name in stages if stages[name]["is_seeded"] is False]
        is_seeded = draw(st.booleans())
        known = list(stages) if is_seeded else earlier
        stages[f"stage{number}"] = {"is_seeded": is_seeded, "flags": draw(flags_of(known))}
    for number in range(draw(st.integers(1, 3))):
        chosen = draw(st.lists(st.sampled_from(sorted(stages)), unique=True, max_size=2))
        settings[f"setting{number}"] = {name: draw(flags_of([])) for name in chosen}
    seeds = draw(st.lists(st.integers(0, 99), min_size=1, max_size=3, unique=True))
    some = st.dictionaries(st.sampled_from(sorted(settings)), st.integers(1, 4))
    return seeds, stages, settings, draw(some)


def flags_of(stages):
    values = st.sampled_from(["a", "b", *(f"{{{name}}}/x" for name in stages), "{output}/y"])
    return st.dictionaries(st.sampled_from(FLAGS), values, max_size=3)


def toml_of(seeds, stages, settings, num_seeds):
    lines = [f"seeds = {seeds}"]
    for name, about in stages.items():
        lines += [f"[stages.{name}]", f'program = "{TOY}"']
        lines += [f"is_seeded = {str(about['is_seeded']).lower()}"]
        lines += [f"flags.{flag} = {json.dumps(value)}" for flag, value in about["flags"].items()]
    for name, changes in settings.items():
        lines.append(f"[settings.{name}]")
        lines += [f"num_seeds = {num_seeds[name]}"] if name in num_seeds else []
        for stage, flags in changes.items():
            lines += [f"{stage}.{flag} = {json.dumps(value)}" for flag, value in flags.items()]
    return "\n".join(lines)


def meaning(case, setting, stage, seed):
    """Returns what a job computes: its flags, with what it reads in place of folders."""
    _, stages, settings, _ = case
    flags = {**stages[stage]["flags"], **settings[setting].get(stage, {})}
    found = {}
    for flag, value in flags.items():
        name, rest = value.removeprefix("{").partition("}")[::2]
        if value.startswith("{") and name != "output":
            value = (meaning(case, setting, name, seed), rest)
        found[flag] = value
    if stages[stage]["is_seeded"]:
        found["seed"] = seed
    return tuple(sorted(found.items(), key=str))


@laws.examples(60)
@given(files())
def test_what_computes_the_same_is_one_job_and_nothing_else(tmp_path, case):
    path = tmp_path / "ablation.toml"
    path.write_text(toml_of(*case))
    ablation = plan.read(AblationSettings(ablation_file=str(path)))
    jobs = plan.jobs_of(ablation, "out")
    seeds, stages, settings, num_seeds = case
    assert set(jobs) == {
        (setting, stage, seed)
        for setting in settings
        for stage in stages
        for place, seed in enumerate(seeds)
        if place < num_seeds.get(setting, len(seeds))
    }
    by_meaning, seen = {}, set()
    for key, job in jobs.items():
        assert by_meaning.setdefault(meaning(case, *key), job) is job
        # Jobs come after those that they need, and flags name the folders of these alone.
        assert set(job.needs) <= seen
        for flag in job.flags:
            folder = flag.partition("=out/")[2].rpartition("/")[0]
            assert not folder or folder in {job.name, *job.needs} or flag.startswith("--output_dir")
        seen.add(job.name)
    different = set(by_meaning.values())
    assert len(different) == len(by_meaning) == len({job.name for job in different})
