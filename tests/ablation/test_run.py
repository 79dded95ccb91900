"""Ablations of a program that takes no time: what runs, how often, and what is told."""

import contextlib
import json
import pathlib
import shutil
import signal
import statistics
import subprocess
import sys

import pytest
from conftest import REPOSITORY
from toy_ablation import FILE, settings
from waiting import TIME_LIMIT, ended, read_line, wait_until

from nezha_tf.ablation.run import run
from nezha_tf.util.errors import UserError

pytestmark = pytest.mark.processes


def runs_of(folder):
    """Returns how often each job was run, by its folder."""
    return {
        str(path.parent.relative_to(folder / "out")): len(path.read_text())
        for path in folder.rglob("runs")
    }


def programs_in(folder):
    """Returns the command lines of running processes that name a folder."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            found.append(path.read_bytes().decode(errors="replace"))
    return [command for command in found if str(folder) in command]


def test_an_ablation_runs_each_job_once_and_compares(tmp_path, capsys):
    run(settings(tmp_path))
    # Without those of the first stage of `fast`, which are the same.
    expected = {f"first/plain/seed{seed}" for seed in (1, 3)}
    expected |= {f"second/{setting}/seed{seed}" for setting in ("plain", "fast") for seed in (1, 3)}
    assert runs_of(tmp_path) == dict.fromkeys(expected, 1)
    table = (tmp_path / "out" / "ablation.md").read_text()
    assert table.startswith("**second**\n\n| setting | runs | score | difference | p |\n")
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()[4:]]
    for row, name, factor in zip(rows, ("plain", "fast"), (3, 12), strict=True):
        values = [factor * seed for seed in (1, 3)]
        shown = f"{statistics.mean(values):.4f} ± {statistics.stdev(values):.4f}"
        assert row[:3] == [name, "2", shown]
    assert rows[0][3:] == ["", ""] and rows[1][3] == "+18.0000"
    assert table in capsys.readouterr().out
    found = json.loads((tmp_path / "out" / "ablation.json").read_text())
    assert [score["values"] for score in found] == [{"3": 9.0, "1": 3.0}, {"3": 36.0, "1": 12.0}]
    assert (tmp_path / "out" / "ablation.png").read_bytes().startswith(b"\x89PNG")
    # Again, with a seed more.
    run(settings(tmp_path, seeds=("3", "1", "2")))
    assert "9 runs, 6 of them done before" in capsys.readouterr().out
    assert set(runs_of(tmp_path).values()) == {1} and len(runs_of(tmp_path)) == 9
    # The folder's path may be written in another way.
    run(settings(tmp_path, settings=("fast",), output_dir=f"{tmp_path}/./out/"))
    assert "4 runs, 4 of them done before" in capsys.readouterr().out
    assert "plain" not in (tmp_path / "out" / "ablation.md").read_text()


def test_what_fails_is_told_at_the_end_and_goes_on_when_it_is_mended(tmp_path, capsys):
    # Of `fast`; that no run has the metric f1 is no mistake if some failed.
    broken = FILE.replace('"score"', '"score", "f1"') + "first.fails = true\n"
    with pytest.raises(UserError) as caught:
        run(settings(tmp_path, broken, seeds=("1",)))
    assert str(caught.value).startswith("1 run failed: first/fast/seed1: status 1: toy: error: no")
    assert runs_of(tmp_path) == {
        "first/plain/seed1": 1,
        "second/plain/seed1": 1,
        "first/fast/seed1": 1,
    }
    assert "| plain | 1 | 3.0000 |" in capsys.readouterr().out
    # What is done is not done again with other flags.
    with pytest.raises(UserError, match=r"made with other flags \(--rate=2, --rate=3\); take an"):
        run(settings(tmp_path, FILE.replace("rate = 2", "rate = 3"), seeds=("1",)))
    assert sum(runs_of(tmp_path).values()) == 3


def test_flags_that_a_program_does_not_take_are_told_before_anything_runs(tmp_path):
    for change, words in (
        ("second.rat = 10", "second/fast/seed3: .*'rat'"),
        ("second.rate = 'x'", "second/fast/seed3: .*rate"),
    ):
        with pytest.raises(UserError, match=words) as caught:
            run(settings(tmp_path, FILE.replace("second.rate = 10", change)))
        assert "\n" not in str(caught.value) and not runs_of(tmp_path)


@pytest.mark.parametrize("flag", ("flagfile", "note"))
def test_another_content_of_a_file_is_another_run(tmp_path, flag):
    """Of a flag file, or of one of several files, also beside one that cannot be read."""
    path, other = tmp_path / "common.flags", tmp_path / "other.flags"
    path.write_text("--rate=5\n")
    other.write_text("--rate=2\n")
    # Linux opens the last file, and fails when its first byte is read.
    names = f"{other},{tmp_path}/[c]*.flags,/proc/self/mem" if flag == "note" else path
    text = FILE.replace("flags.rate = 2", f'flags.{flag} = "{names}"')
    run(settings(tmp_path, text, seeds=("1",)))
    path.write_text("--rate=6\n")
    message = rf"out/first/plain/seed1 was made with another content of {path}; take another"
    with pytest.raises(UserError, match=message):
        run(settings(tmp_path, text, seeds=("1", "3")))
    path.write_text("--rate=5\n")
    run(settings(tmp_path, text, seeds=("1", "3")))
    assert set(runs_of(tmp_path).values()) == {1}


def test_records_that_are_damaged_or_of_other_flags(tmp_path):
    run(settings(tmp_path, seeds=("1",)))
    path = tmp_path / "out" / "first" / "plain" / "seed1.json"
    record = json.loads(path.read_text())
    for change, message in (
        ({"flags": 3}, "seed1.json: flags is not as nezha"),
        ({"flags": None}, "seed1.json: flags is not as nezha"),
        ({"files": ["x"]}, "seed1.json: files is not as nezha"),
        ({"made_from": "x"}, "seed1.json: made_from is not as nezha"),
        ({"flags": [3, {}, None]}, "was made with other flags"),
    ):
        path.write_text(json.dumps(record | change))
        with pytest.raises(UserError, match=message):
            run(settings(tmp_path, seeds=("1",)))
    assert set(runs_of(tmp_path).values()) == {1}


def test_a_remote_folder_is_refused_before_anything_runs(tmp_path):
    with pytest.raises(UserError, match="--output_dir=gs://bucket/out is not on this machine"):
        run(settings(tmp_path, output_dir="gs://bucket/out"))


@pytest.mark.parametrize("number", (signal.SIGHUP, signal.SIGINT))
def test_a_signal_ends_the_programs_and_the_same_command_goes_on(tmp_path, number):
    slow = FILE.replace("flags.rate = 2", "flags.rate = 2\nflags.seconds = 100")
    given = settings(tmp_path, slow, seeds=("1",))
    command = [
        sys.executable,
        str(REPOSITORY / "tools" / "run_ablation.py"),
        f"--ablation_file={given.ablation_file}",
        f"--output_dir={given.output_dir}",
        "--seeds=1",
    ]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_until(lambda: runs_of(tmp_path), process)
    assert len(programs_in(tmp_path)) == 2  # the tool and its program
    process.send_signal(number)
    result = ended(process)
    assert result.returncode == (130 if number == signal.SIGINT else 75), result
    assert len(result.stderr.splitlines()) == 1, result
    assert not programs_in(tmp_path)
    (record,) = tmp_path.rglob("seed1.json")
    assert json.loads(record.read_text())["is_done"] is False
    # The program could go on from what it has saved, and without this flag that is another run.
    with pytest.raises(UserError, match=r"made with other flags \(--seconds=100\); take another"):
        run(settings(tmp_path, seeds=("1",)))
    shutil.rmtree(record.with_suffix(""))
    run(settings(tmp_path, seeds=("1",)))
    assert set(runs_of(tmp_path).values()) == {1}


def test_what_was_made_from_a_removed_run_is_no_result(tmp_path):
    """The first stage is made anew with another rate, as the message about its flags says."""
    run(settings(tmp_path, seeds=("1",)))
    first, second = (tmp_path / "out" / stage / "plain" / "seed1" for stage in ("first", "second"))
    changed = FILE.replace("rate = 2", "rate = 5")

    def remove(folder):
        shutil.rmtree(folder)
        folder.with_suffix(".json").unlink()

    remove(first)
    told = r"out/second/\w+/seed1 was made from first/plain/seed1, which was removed or made anew"
    for _ in range(2):
        with pytest.raises(UserError, match=told):
            run(settings(tmp_path, changed, seeds=("1",)))
    for setting in ("plain", "fast"):
        remove(second.parent.parent / setting / "seed1")
    run(settings(tmp_path, changed, seeds=("1",)))
    found = json.loads((tmp_path / "out" / "ablation.json").read_text())
    assert [score["values"] for score in found] == [{"1": 6.0}, {"1": 15.0}]


def test_two_at_a_time_in_one_folder_are_refused(tmp_path):
    code = f"""
import time
from nezha_tf.util import locks
with locks.held({str(tmp_path / "out" / "ablation.lock")!r}, "a folder"):
    print("held", flush=True)
    time.sleep({TIME_LIMIT})
"""
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    try:
        assert read_line(process.stdout) == "held\n"
        with pytest.raises(UserError, match="out"):
            run(settings(tmp_path))
    finally:
        process.kill()
        process.communicate()
    assert not runs_of(tmp_path)
