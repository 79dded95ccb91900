"""The flags of a run by step: against a list of all flags that it was started with."""

import json
import os
import re
import signal

import laws
import pytest
from commands import assert_one_line, run, run_pretraining, start_pretraining
from hypothesis import given
from hypothesis import strategies as st
from waiting import wait_until

from nezha_tf import NezhaConfig
from nezha_tf.training import flag_history
from nezha_tf.training.flag_history import Change, FlagHistory

CONFIG = NezhaConfig(vocab_size=9)


def take(folder, step, flags, config=CONFIG):
    history = FlagHistory(str(folder), step)
    changes = history.take(flags, config)
    history.write()
    return changes


@laws.examples(40)
@given(
    st.lists(
        st.tuples(
            st.integers(1, 6),
            st.dictionaries(
                st.sampled_from(["seed", "rate", "output_dir"]), st.integers(0, 2) | st.none()
            ),
        ),
        max_size=6,
    )
)
def test_the_changes_give_the_flags_of_every_step(tmp_path_factory, starts):
    """A run is started again and again, each time from any step that it has reached."""
    folder, flags_at, reached = tmp_path_factory.mktemp("run"), {}, 0
    for steps, flags in [(2, {"seed": 1}), *starts]:
        step = min(steps, reached)  # the step from which it continues
        changes = take(folder, step, flags)
        assert all(change.step == step for change in changes)
        given = {f"--{k}": str(v) for k, v in flags.items() if v is not None and k != "output_dir"}
        if not step:
            flags_at = {}
        flags_at = {n: told for n, told in flags_at.items() if n < step}
        reached = step + 3
        flags_at.update(dict.fromkeys(range(step, reached), given))
        now = flag_history.begun_with(str(folder))
        changes = flag_history.changes_in(str(folder))
        for n, expected in flags_at.items():
            for change in changes:
                if change.step == n:
                    now[change.name] = change.after
            found = {name: value for name, value in now.items() if name.startswith("--")}
            assert {name: v for name, v in found.items() if v is not None} == expected


def test_keys_of_the_configuration_are_told_like_flags(tmp_path):
    assert take(tmp_path, 0, {"seed": 1, "plot": False}) == []
    other = NezhaConfig(vocab_size=9, hidden_dropout_prob=0.3)
    changes = take(tmp_path, 7, {"seed": 1, "plot": True, "init_checkpoint": "a"}, other)
    name = "bert_config.json hidden_dropout_prob"
    assert changes == [Change(7, "--init_checkpoint", None, "a"), Change(7, name, "0.1", "0.3")]
    assert flag_history.note_of(changes) == (
        "flags that changed since the last start: --init_checkpoint a (was not given), not read: "
        f"the run continues; {name} 0.3 (was 0.1)"
    )
    assert take(tmp_path, 9, {"seed": 1, "init_checkpoint": "a"}, other) == []
    assert flag_history.note_of([]) == ""


def test_a_run_of_before_has_its_flag_file_alone(tmp_path):
    (tmp_path / "run.flags").write_text("--seed=1\n--output_dir=elsewhere\n--do_train=true\n")
    CONFIG.to_json_file(str(tmp_path / "bert_config.json"))
    changes = take(tmp_path, 5, {"seed": 2, "do_train": True, "output_dir": "here"})
    assert changes == [Change(5, "--seed", "1", "2")]
    assert flag_history.begun_with(str(tmp_path))["--seed"] == "1"
    (tmp_path / "flags_history.jsonl").unlink()
    (tmp_path / "run.flags").unlink()
    assert take(tmp_path, 5, {"seed": 2}) == []


@pytest.mark.processes
def test_what_a_run_goes_on_with_is_told_and_kept(folder):
    first = run_pretraining(folder, "--num_train_steps=2")
    assert first.returncode == 0 and "flags that changed" not in first.stdout
    again = run_pretraining(folder, "--num_train_steps=2", "--seed=9")
    # What is not read is told, but no step has it.
    told, _, then = again.stdout.partition("nothing to train")
    assert "flags that changed since the last start: --seed 9 (was 12345)\n" in told and then
    changes = ("--num_train_steps=4", "--seed=7", "--init_checkpoint=run/model.ckpt-2")
    second = run_pretraining(folder, *changes)
    assert second.returncode == 0 and second.stderr == "", second.stderr
    line = next(line for line in second.stdout.splitlines() if "flags that changed" in line)
    assert "--seed 7 (was 12345)" in line and "model.ckpt-2 (was not given), not read" in line
    flags = (folder / "run" / "run.flags").read_text()
    assert flags.startswith("# From step 2 on;") and "--seed=7" in flags
    card = (folder / "run" / "README.md").read_text(encoding="utf-8")
    assert "| 2 | `--seed` | 12345 | 7 |" in card and "from random weights" in card
    same = run("run_pretraining.py", "--flagfile=run/run.flags", folder=folder)
    assert same.returncode == 0 and "nothing to train" in same.stdout
    assert "flags that changed" not in same.stdout
    entries = (folder / "run" / "flags_history.jsonl").read_text().splitlines()
    assert [json.loads(entry)["step"] for entry in entries] == [0, 2]


def saved_steps(folder):
    """Returns the steps of the whole checkpoints; one that is being written has another name."""
    names = [path.stem for path in folder.glob("run/model.ckpt-*.index")]
    return [int(found[1]) for name in names if (found := re.fullmatch(r"model\.ckpt-(\d+)", name))]


@pytest.mark.processes
def test_a_second_run_in_the_same_folder_is_refused(folder):
    long = ("--num_train_steps=100000", "--save_checkpoints_steps=2")
    first = start_pretraining(folder, *long)
    try:
        wait_until(lambda: saved_steps(folder), first)
        os.kill(
            first.pid, signal.SIGSTOP
        )  # it is still running, but must not slow down the second one
        second = run_pretraining(folder, "--num_train_steps=3", "--seed=2")
        assert_one_line(second, f"another run (process {first.pid} on", "is writing run;")
    finally:
        first.kill()
        first.wait()
    # It was killed: the folder is free again.
    steps = max(saved_steps(folder))
    third = run_pretraining(folder, f"--num_train_steps={steps + 2}")
    assert third.returncode == 0, third.stderr
    assert not (folder / "run" / "run.lock").exists()
