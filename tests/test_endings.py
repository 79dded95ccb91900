"""The signals that ask a program to end."""

import itertools
import os
import signal
import sys

import pytest
from terminals import Terminal
from waiting import TIME_LIMIT, wait_until

from nezha_tf.util import endings

# It shows lines, and after the signal more of them, in the terminal and in a file. Between the end
# of a terminal and its signal, which are microseconds apart, a line is an error: so lines are rare.
PROGRAM = """
import itertools, sys, time
from nezha_tf.util import endings
names = []
with endings.asked(names.append):
    for count in itertools.count():
        print("line", count, flush=True)
        print("line", count, file=sys.stderr, flush=True)
        if names:
            break
        time.sleep(0.2)
    for _ in range(3):
        print(names, flush=True)
open("names", "w").write(str(names))
"""


def test_a_closed_terminal_ends_nothing_before_its_time(tmp_path):
    terminal = Terminal((sys.executable, "-c", PROGRAM), tmp_path)
    wait_until(lambda: "line 1" in terminal.shown(), terminal.process)
    terminal.close()
    assert terminal.process.wait(TIME_LIMIT) == 0
    assert (tmp_path / "names").read_text() == "['SIGHUP']"


def test_an_open_terminal_shows_what_comes_after_a_signal(tmp_path):
    terminal = Terminal((sys.executable, "-c", PROGRAM), tmp_path)
    wait_until(lambda: "line 1" in terminal.shown(), terminal.process)
    terminal.process.send_signal(signal.SIGHUP)
    assert terminal.process.wait(TIME_LIMIT) == 0
    assert terminal.shown().count("['SIGHUP']") == 3
    terminal.close()


@pytest.fixture
def before():
    """What the signals do in this process, which is set back after the test."""
    old = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    found = {number: lambda *_: None for number in old}
    for number, does in found.items():
        signal.signal(number, does)
    yield found
    for number, does in old.items():
        signal.signal(number, does)


@pytest.mark.parametrize(
    "sent", list(itertools.product((signal.SIGTERM, signal.SIGHUP), repeat=2)), ids=str
)
def test_the_first_signal_counts(before, sent):
    names = []
    with endings.asked(names.append):
        for number in sent:
            os.kill(os.getpid(), number)
    assert names == [sent[0].name]
    assert {number: signal.getsignal(number) for number in before} == before


def test_an_ignored_hangup_stays_ignored(before):
    """nohup starts programs so."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    names = []
    with endings.asked(names.append):
        os.kill(os.getpid(), signal.SIGHUP)
    assert names == [] and signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
