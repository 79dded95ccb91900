"""The package as it is installed: a wheel in an environment and a folder without the repository."""

import os
import subprocess
import sys
import zipfile

import pytest
from commands import assert_one_line
from conftest import REPOSITORY
from waiting import TIME_LIMIT

import nezha_tf
from nezha_tf.programs.table import PROGRAMS
from nezha_tf.util.errors import install_command

pytestmark = pytest.mark.processes


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A folder with the content of a wheel that is made of what git would take."""
    source, wheels, folder = (tmp_path_factory.mktemp(n) for n in ("source", "wheels", "packages"))
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.check_output(listed, cwd=REPOSITORY, text=True).split("\0")
    for name in filter(None, names):
        if name.startswith("nezha_tf/") or "/" not in name:
            target = source / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if (REPOSITORY / name).is_file():
                target.write_bytes((REPOSITORY / name).read_bytes())
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps"]
    command += ["--no-build-isolation", f"--wheel-dir={wheels}", str(source)]
    subprocess.run(command, check=True, timeout=TIME_LIMIT)
    (wheel,) = wheels.iterdir()
    with zipfile.ZipFile(wheel) as file:
        file.extractall(folder)
    return folder


@pytest.fixture
def start(installed, tmp_path):
    """Returns a function: runs `python ARGUMENTS` in an empty folder, with the wheel's content."""

    def started(*arguments):
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(installed)},
            capture_output=True,
            text=True,
            timeout=TIME_LIMIT,
            check=False,
        )

    return started


def test_it_is_whole_and_has_a_version(installed, start):
    code = (
        "import importlib.metadata as m, nezha_tf; print(nezha_tf.__file__, nezha_tf.__version__, "
        "m.version('nezha_tf'), m.entry_points(name='nezha_tf')['nezha_tf'].load().__module__)"
    )
    told = start("-c", code)
    assert told.returncode == 0, told.stderr
    assert told.stdout.split() == [
        str(installed / "nezha_tf" / "__init__.py"),
        nezha_tf.__version__,
        nezha_tf.__version__,
        "nezha_tf.programs.start",
    ]
    package = REPOSITORY / "nezha_tf"
    for path in package.rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts:
            name = path.relative_to(REPOSITORY)
            assert (installed / name).read_bytes() == path.read_bytes(), name
    assert not [path for path in installed.iterdir() if not path.name.startswith("nezha_tf")]


def test_the_way_of_the_readme(start, tmp_path):
    listed = start("-m", "nezha_tf")
    assert listed.returncode == 0 and len(listed.stdout.splitlines()) == 1 + len(PROGRAMS)
    data = start("-m", "nezha_tf", "create_pretraining_data", "--flagfile=sample_data")
    assert data.returncode == 0 and data.stderr == "", data.stderr
    flags = ("--num_train_steps=2", "--num_warmup_steps=1", "--nojit_compile", "--max_eval_steps=1")
    run = start("-m", "nezha_tf", "run_pretraining", "--flagfile=sample", *flags)
    assert run.returncode == 0 and run.stderr == "", run.stderr
    folder = tmp_path / "out" / "sample" / "nezha_tiny"
    assert (folder / "eval_results.json").is_file()
    card = (folder / "README.md").read_text()
    assert "Trained by `python -m nezha_tf run_pretraining`" in card
    assert "nezha_tf/configs/nezha_tiny.json" in card and str(tmp_path.parent) not in card
    # The record of the run starts it again.
    again = start("-m", "nezha_tf", "run_pretraining", "--flagfile=out/sample/nezha_tiny/run.flags")
    assert again.returncode == 0 and "changed" not in again.stdout, again.stderr


def test_an_ablation_starts_the_programs_by_name(start, tmp_path):
    (tmp_path / "own.toml").write_text(
        """
        [stages.data]
        program = "tools/create_pretraining_data.py"
        is_seeded = false
        [stages.data.flags]
        flagfile = "sample_data"
        dupe_factor = 1
        output_file = "{output}/train.tfrecord"
        eval_output_file = "{output}/eval.tfrecord"
        [settings.only]
        """
    )
    told = start("-m", "nezha_tf", "run_ablation", "--ablation_file=own.toml", "--output_dir=out")
    assert told.returncode == 0 and told.stderr == "", told.stderr
    assert (tmp_path / "out" / "data" / "only" / "train.tfrecord").is_file()
    wrong = ("--ablation_file=objectives", "--paths=corpus=own.toml", "--output_dir=out/b")
    told = start("-m", "nezha_tf", "run_ablation", *wrong)
    assert_one_line(told, "examples/sample_lines.py", "is not a file or a program of nezha_tf")


def test_what_is_missing_is_installed_by_the_name_of_the_package(start):
    code = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "from nezha_tf.pictures.fonts import require_matplotlib as r\n"
        "from nezha_tf.util.errors import UserError, install_command\n"
        "print(install_command())\n"
        "try: r()\n"
        "except UserError as error: print(error)"
    )
    first, second = start("-c", code).stdout.splitlines()
    assert first == "pip install nezha_tf" and second.endswith(": pip install 'nezha_tf[plot]'")
    assert install_command() == "pip install -e . in the clone"
    assert install_command("plot") == "pip install -e '.[plot]' in the clone"


def test_without_its_libraries_it_says_what_to_install(start):
    code = "import sys; sys.modules['absl'] = None; import nezha_tf.programs.start as s; s.choose()"
    told = start("-c", code)
    assert_one_line(told, "install the project first: pip install nezha_tf")
