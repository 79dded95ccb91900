"""examples/supervise.sh starts again what others have ended, and nothing else."""

import os
import signal
import subprocess

import pytest
from conftest import REPOSITORY
from waiting import ended, wait_until

pytestmark = pytest.mark.processes

SCRIPT = str(REPOSITORY / "examples" / "supervise.sh")
# Notes each start, and ends with the next of the given statuses.
COMMAND = "echo start >> starts; set -- $STATUSES; shift $(($(wc -l < starts) - 1)); exit $1"


def supervise(folder, command, **environment):
    return subprocess.Popen(
        [SCRIPT, "bash", "-c", command],
        cwd=folder,
        env={**os.environ, "PAUSE": "0", **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize(
    "statuses, starts, status",
    [
        ("0", 1, 0),
        ("1 0", 1, 1),
        ("130 0", 1, 130),
        ("75 76 132 134 135 136 137 139 143 0", 10, 0),
        ("76 76 1 0", 3, 1),
    ],
)
def test_what_is_started_again(tmp_path, statuses, starts, status):
    result = ended(supervise(tmp_path, COMMAND, STATUSES=statuses))
    assert result.returncode == status
    assert (tmp_path / "starts").read_text() == "start\n" * starts
    assert result.stderr.count("\n") == starts - 1


def test_a_number_of_starts_is_the_most(tmp_path):
    result = ended(supervise(tmp_path, "echo start >> starts; exit 76", MOST_STARTS="3"))
    assert result.returncode == 76
    assert (tmp_path / "starts").read_text() == "start\n" * 3


@pytest.mark.parametrize("number", (signal.SIGTERM, signal.SIGINT, signal.SIGHUP))
def test_a_signal_ends_the_command_and_is_not_answered_by_a_new_start(tmp_path, number):
    # The command takes a while to end, as one that saves.
    command = "trap 'sleep 0.3; exit 75' TERM; echo start >> starts; while :; do sleep 0.05; done"
    process = supervise(tmp_path, command)
    wait_until((tmp_path / "starts").exists, process)
    process.send_signal(number)
    assert ended(process).returncode == 75
    assert (tmp_path / "starts").read_text() == "start\n"


def test_a_signal_between_the_start_of_a_command_and_its_noting(tmp_path):
    """Each step of the script takes a while, and the signal comes as soon as the command runs."""
    (tmp_path / "slowly").write_text('[[ $0 == *supervise.sh ]] && trap "sleep 0.2" DEBUG')
    command = "trap 'exit 75' TERM; echo start >> starts; while :; do sleep 0.05; done"
    process = supervise(tmp_path, command, BASH_ENV=str(tmp_path / "slowly"))
    wait_until((tmp_path / "starts").exists, process)
    process.send_signal(signal.SIGTERM)
    assert ended(process).returncode == 75
    assert (tmp_path / "starts").read_text() == "start\n"


def test_without_a_command(tmp_path):
    result = subprocess.run([SCRIPT], capture_output=True, text=True)
    assert result.returncode == 1 and "pass the command" in result.stderr
