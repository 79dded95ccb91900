"""Files of the package, by their names and by the paths that they have in a clone."""

import shutil
import sys

import program_flags
import pytest
from absl import flags
from conftest import REPOSITORY, RESOURCES

from nezha_tf import NezhaConfig, Vocabulary, cli
from nezha_tf.ablation import plan
from nezha_tf.ablation.settings import AblationSettings
from nezha_tf.programs import start
from nezha_tf.resources import model_path
from nezha_tf.util import files, package_data, settings
from nezha_tf.util.errors import UserError

CONFIGS = REPOSITORY / "nezha_tf" / "configs"


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """An empty folder, in which the test runs."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def values_of(*arguments):
    values = flags.FlagValues()
    settings.define(AblationSettings, values)
    for name in ("bert_config_file", "vocab_file", "output_dir_of_data"):
        flags.DEFINE_string(name, None, "", flag_values=values)
    cli.parse(["program", *arguments], values)
    return values


def test_a_clone_finds_the_files_where_they_were():
    assert (REPOSITORY / "configs").resolve() == CONFIGS


@pytest.mark.parametrize("name", ["nezha_base", "configs/nezha_base.json", "ablations/rotary"])
def test_a_configuration(elsewhere, name):
    own = "ablations/rotary" if "rotary" in name else "nezha_base"
    expected = NezhaConfig.from_json_file(CONFIGS / f"{own}.json")
    assert NezhaConfig.from_json_file(name) == expected


def test_a_vocabulary_a_model_and_texts_by_their_paths_in_a_clone(elsewhere):
    expected = Vocabulary.from_file(RESOURCES / "vocab.txt")
    assert Vocabulary.from_file("nezha_tf/resources/vocab.txt").tokens == expected.tokens
    assert files.expand("nezha_tf/resources/sample_*.txt", "input_file") == [
        str(RESOURCES / "sample_corpus.txt")
    ]
    assert model_path("nezha_tf/resources/mini") == str(RESOURCES / "mini")


def test_flag_files_that_include_others(elsewhere):
    (elsewhere / "own.flags").write_text("--flagfile=inner\n--num_jobs=2\n")
    (elsewhere / "inner").write_text("--vocab_file=a\n")
    values = values_of("--flagfile=own.flags")
    assert (values.num_jobs, values.vocab_file) == (2, "a")


def test_an_ablation_and_its_programs(elsewhere):
    for name in ("sample", "configs/ablations/sample.toml"):
        given = AblationSettings(ablation_file=name, output_dir="out")
        ablation = plan.read(given)
        assert set(ablation.stages) == {"data", "pretraining"}
        jobs = plan.jobs_of(ablation, "out")
        assert {job.program for job in jobs.values()} == {
            "tools/create_pretraining_data.py",
            "run_pretraining.py",
        }


def test_what_exists_goes_first(elsewhere):
    shutil.copy(CONFIGS / "nezha_tiny.json", elsewhere / "nezha_base")
    (elsewhere / "configs").mkdir()
    shutil.copy(CONFIGS / "nezha_tiny.json", elsewhere / "configs" / "nezha_large.json")
    tiny = NezhaConfig.from_json_file("nezha_tiny")
    for path in ("nezha_base", "configs/nezha_large.json"):
        assert NezhaConfig.from_json_file(path) == tiny
    (elsewhere / "sample").mkdir()  # a folder, too: what is meant would be a guess
    with pytest.raises(flags.Error, match=r"Is a directory.*sample"):
        values_of("--flagfile=sample")


@pytest.mark.parametrize(
    "name, ending, told",
    [
        ("nezha_bas", ".json", r"no model configuration 'nezha_bas', .*like it: nezha_base, "),
        ("zzz", ".json", r"no model configuration 'zzz', .*its names: albert_tiny, .*, unilm_tiny"),
        ("sampel", ".flags", r"no flag file 'sampel', .*like it: sample, "),
        ("optimiser", ".toml", r"no ablation 'optimiser', .*like it: optimizers"),
    ],
)
def test_a_name_that_is_none_is_told_with_names_like_it(elsewhere, name, ending, told):
    with pytest.raises(UserError, match=f"^{told}") as error:
        package_data.named(name, ending)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("path", ["data/a.json", "a.json", "./a", "gs://a/b", "configs/a.json", ""])
def test_other_paths_stay_as_they_are(elsewhere, path):
    assert package_data.named(path, ".json") == package_data.located(path) == path


def test_nothing_is_written_into_the_package(elsewhere):
    files.write_text("configs/nezha_base.json", "{}")
    assert (elsewhere / "configs" / "nezha_base.json").read_text() == "{}"
    assert (CONFIGS / "nezha_base.json").stat().st_size > 2


def test_a_bad_name_ends_a_program_with_a_line(elsewhere, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["nezha_tf run_ablation", "--flagfile=sampel"])
    monkeypatch.setattr(sys.modules["__main__"], "__doc__", "")
    with program_flags.forgotten_afterwards(), pytest.raises(SystemExit) as end:
        start.run("run_ablation")
    told = capsys.readouterr().err
    assert end.value.code == 1 and told.count("\n") == 1 and "'sampel'" in told


def test_what_a_flag_names_and_how_its_file_is_shown(elsewhere):
    path = package_data.of_flag("bert_config_file", "nezha_tiny")
    assert path == str(CONFIGS / "nezha_tiny.json")
    assert package_data.of_flag("task_name", "nezha_tiny") == "nezha_tiny"
    assert package_data.shown(path) == "nezha_tf/configs/nezha_tiny.json"
    for other in ("configs/nezha_tiny.json", str(elsewhere / "a"), "nezha_tf/a"):
        assert package_data.shown(other) == other
