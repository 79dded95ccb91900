"""The jobs that a file asks for, and files that are refused."""

import pytest
from toy_ablation import FILE, TOY, settings

from nezha_tf.ablation import plan
from nezha_tf.ablation.jobs import _local_files as local_files
from nezha_tf.util.errors import UserError


def jobs(folder, text=FILE, **changes):
    ablation = plan.read(settings(folder, text, **changes))
    return plan.jobs_of(ablation, "out")


def test_jobs_by_hand(tmp_path):
    found = jobs(tmp_path)
    assert list(found) == [
        (setting, stage, seed)
        for setting in ("plain", "fast")
        for seed in (3, 1)
        for stage in ("first", "second")
    ]
    first = found["plain", "first", 3]
    assert first == ("first/plain/seed3", str(TOY), first.flags, ())
    assert set(first.flags) == {"--rate=2", "--output_dir=out/first/plain/seed3", "--seed=3"}
    second = found["fast", "second", 1]
    assert second.needs == ("first/plain/seed1",)
    assert found["fast", "first", 3] is first and len(set(found.values())) == 2 + 4
    assert set(second.flags) == {
        "--start=out/first/plain/seed1",
        "--rate=10",
        "--output_dir=out/second/fast/seed1",
        "--seed=1",
    }


def test_a_program_without_seeds_runs_for_each_seed_of_what_it_reads(tmp_path):
    text = """
    seeds = [1, 2]
    [stages.train]
    program = "run_pretraining.py"
    [stages.stacked]
    program = "tools/convert_checkpoint.py"
    flags = {from = "{train}", to = "{output}", num_hidden_layers = 4}
    [settings.one]
    """
    found = jobs(tmp_path, text)
    for seed in (1, 2):
        assert f"--seed={seed}" in found["one", "train", seed].flags
        job = found["one", "stacked", seed]
        assert job.needs == (f"train/one/seed{seed}",)
        own = f"--to=out/stacked/one/seed{seed}"
        assert set(job.flags) == {
            f"--from=out/train/one/seed{seed}",
            own,
            "--num_hidden_layers=4",
        }


def test_files_may_have_weights(tmp_path):
    text = f"""
    seeds = [1]
    paths.data = "nowhere"
    [stages.a]
    program = "{TOY}"
    flags = {{output_dir = "{{output}}", start = "{{data}}/a*.txt:3,{{data}}/b.txt:0.5"}}
    [settings.one]
    """
    (tmp_path / "b.txt").touch()
    with pytest.raises(UserError, match=r"no file matches '\S*/a\*\.txt:3'"):
        jobs(tmp_path, text, paths=(f"data={tmp_path}",))
    (tmp_path / "a.txt").touch()
    (job,) = set(jobs(tmp_path, text, paths=(f"data={tmp_path}",)).values())
    start = f"--start={tmp_path}/a*.txt:3,{tmp_path}/b.txt:0.5"
    assert start in job.flags
    assert local_files(start) == [f"{tmp_path}/a.txt", f"{tmp_path}/b.txt"]


def test_a_stage_without_seeds_a_flag_file_and_a_setting_without_a_stage(tmp_path):
    text = f"""
    seeds = [1, 2]
    paths.data = "nowhere"
    [stages.data]
    program = "{TOY}"
    is_seeded = false
    flags = {{output_dir = "{{output}}/made", start = "{{data_folder}}/a.txt"}}
    [stages.train]
    program = "{TOY}"
    flags = {{fails = false, start = "{{data}}/made", flagfile = "x.flags"}}
    [settings.one]
    [settings.none]
    without = ["data"]
    train.start = ""
    """.replace("paths.data", "paths.data_folder")
    (tmp_path / "a.txt").touch()
    found = jobs(tmp_path, text, paths=(f"data_folder={tmp_path}",))
    data = found["one", "data", 1]
    assert data is found["one", "data", 2] and data.name == "data/one"
    made = "--output_dir=out/data/one/made"
    assert set(data.flags) == {made, f"--start={tmp_path}/a.txt"}
    train = found["one", "train", 2]
    assert train.flags[0] == "--flagfile=x.flags" and train.needs == ("data/one",)
    assert {"--start=out/data/one/made", "--fails=false"} < set(train.flags)
    assert "--start=" in found["none", "train", 2].flags
    assert ("none", "data", 1) not in found


STAGE = f'[stages.a]\nprogram = "{TOY}"\n'
SETTING = "[settings.x]\n"


@pytest.mark.parametrize(
    "text, words",
    [
        ("seeds = [", "is not TOML"),
        (STAGE + SETTING + SETTING, "is not TOML.*'x'"),
        (STAGE, r"has no \[settings.NAME\]"),
        (SETTING, r"has no \[stages.NAME\]"),
        ("seed = [1]\n" + STAGE + SETTING, "'seed' is none of seeds"),
        ("seeds = [1, 1]\n" + STAGE + SETTING, "each once"),
        ("seeds = []\n" + STAGE + SETTING, "at least one seed"),
        ('seeds = ["a"]\n' + STAGE + SETTING, "whole numbers"),
        ("seeds = 3\n" + STAGE + SETTING, "whole numbers"),
        ('seeds = "12"\n' + STAGE + SETTING, "whole numbers"),
        ("paths.d = 3\n" + STAGE + SETTING, "paths.d = 3 is not a path"),
        (STAGE + "results = 3\n" + SETTING, "results = 3 is not the name"),
        (STAGE + SETTING + "without = 3\n", "without = 3 is not a list of stages"),
        ("stages = 3\n" + SETTING, "stages = 3 is not a table"),
        ('[stages.a]\nprogram = "nothing.py"\n' + SETTING, "stages.a: program = 'nothing.py'"),
        ("[stages.a]\n" + SETTING, "program = '' is not a file"),
        (STAGE + "flag.rate = 1\n" + SETTING, "stages.a: 'flag' is none of program, flags"),
        (STAGE + "flags.rate.x = 1\n" + SETTING, "flags = .*rate.* is not a table of flags and"),
        (STAGE + 'metrics = "score"\n' + SETTING, "metrics = 'score' is not a list"),
        (STAGE + "is_seeded = 1\n" + SETTING, "is_seeded = 1 is not true or false"),
        (STAGE + SETTING + "b.rate = 1\n", "settings.x: 'b' is none of x, without, num_seeds, a"),
        (STAGE + SETTING + 'without = ["b"]\n', "without: 'b' is none of a"),
        (STAGE + SETTING + 'x = "1"\n', "x = '1' is not a finite number"),
        (STAGE + SETTING + "x = nan\n", "x = nan is not a finite number"),
        (STAGE + SETTING + "x = -inf\n", "x = -inf is not a finite number"),
        (STAGE + SETTING + "num_seeds = 0\n", "settings.x: num_seeds = 0 is not a whole number"),
        (STAGE + SETTING + "num_seeds = true\n", "num_seeds = True is not a whole number"),
        (STAGE + SETTING + "a = 1\n", "settings.x: a = 1 is not a table"),
        (STAGE + '[settings."x/y"]\n', "'x/y' is not a name for a folder"),
        (STAGE.replace(".a", ".seed") + SETTING, "'seed' cannot be the name"),
        (STAGE.replace(".a", ".without") + SETTING, "'without' cannot be the name"),
        ("paths.output = '/'\n" + STAGE + SETTING, "'output' cannot be the name"),
        (STAGE + "flags.start = '{b}'\n" + SETTING, r"--start has \{b\}, which is neither"),
        (
            STAGE + "is_seeded = false\nflags.rate = '{seed}'\n" + SETTING,
            r"--rate has \{seed\}, which .* but a runs once for all seeds \(is_seeded\)",
        ),
        (STAGE + "flags.start = '{a}'\n" + SETTING, r"--start has \{a\}, which is neither"),
        (
            STAGE
            + STAGE.replace(".a", ".b")
            + "is_seeded = false\nflags.start = '{a}'\n"
            + SETTING,
            r"\{a\}, which differs between seeds, but b runs once",
        ),
        (
            "paths.d = '/'\n" + STAGE + "flags.start = '{d}none.txt'\n" + SETTING,
            "settings.x, a: --start: no file matches '/none.txt'",
        ),
    ],
)
def test_files_that_are_refused(tmp_path, text, words):
    with pytest.raises(UserError, match=words) as caught:
        jobs(tmp_path, text)
    assert "\n" not in str(caught.value)


def test_names_that_look_like_others_and_lists_of_files(tmp_path):
    """A setting named as a seed's folder; files given and files made in one value."""
    text = f"""
    paths.here = "{tmp_path}"
    [stages.data]
    program = "{TOY}"
    is_seeded = false
    [stages.more]
    program = "{TOY}"
    is_seeded = false
    flags.start = "{{here}}/ablation.toml,{{data}}/made"
    [settings.seed1]
    """
    assert f"--start={tmp_path}/ablation.toml,out/data/seed1/made" in (
        jobs(tmp_path, text)["seed1", "more", 0].flags
    )


def test_doubled_braces_are_the_flags_own(tmp_path):
    """A pattern of `--pattern` has {text} of its own, beside a placeholder or alone."""
    text = f"""
    paths.here = "{tmp_path}"
    [stages.data]
    program = "{TOY}"
    flags.start = "{{here}}{{{{text}}}}"
    [settings.plain]
    [settings.alone]
    data.start = "{{{{text}}}}，{{{{text_pair}}}}"
    """
    (tmp_path.parent / f"{tmp_path.name}{{text}}").touch()
    found = jobs(tmp_path, text)
    assert f"--start={tmp_path}{{text}}" in found["plain", "data", 0].flags
    assert "--start={text}，{text_pair}" in found["alone", "data", 0].flags


def test_some_settings_of_a_file(tmp_path):
    ablation = plan.read(settings(tmp_path))
    found = plan.jobs_of(ablation, "out")
    fast, of_fast = plan.narrowed(ablation, found, ("fast",))
    assert list(fast.settings) == ["fast"]
    # The job that it shares keeps its name.
    names = [job.name for job in of_fast.values()]
    assert names == [
        f"{job}/seed{seed}" for seed in (3, 1) for job in ("first/plain", "second/fast")
    ]
    assert plan.narrowed(ablation, found, ()) == (ablation, found)
    assert plan.narrowed(ablation, found, ("fast", "plain")) == (ablation, found)
    with pytest.raises(UserError, match=r"--settings: 'slow' is not in .*plain, fast"):
        plan.narrowed(ablation, found, ("slow",))


def test_other_mistakes(tmp_path):
    for given in ("data", "data=/", "=x"):
        with pytest.raises(UserError, match=f"--paths: '{given}' is not name=folder with a name"):
            jobs(tmp_path, paths=(given,))
    with pytest.raises(UserError, match=r"seeds .* whole numbers"):
        jobs(tmp_path, seeds=("one",))
    with pytest.raises(UserError, match="No such file"):
        plan.read(settings(tmp_path, ablation_file=str(tmp_path / "none.toml")))
