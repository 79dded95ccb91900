"""One case: random files, programs that run on them as a user runs them, and checks."""

import collections
import contextlib
import os
import random
import shlex
import shutil
import signal
import subprocess
import sys
import time

from commands import start
from conftest import REPOSITORY
from waiting import ended

# The slowest of these programs take half a minute; a program that takes longer hangs.
TIME_LIMIT = 300
SECONDS_BETWEEN_LOOKS = 0.02
LONGEST_DETAIL = 600
INPUTS = "inputs"


class Abandoned(Exception):
    """A check failed that the rest of the case needs; the fault is noted already."""


class Case:
    """A case and its folder: `inputs` has what is drawn, and each run has a folder beside it.

    Attributes:
      number: of the case.
      rng: `random.Random` of seed and number alone.
      folder, inputs: `pathlib.Path`s.
      kind: what it is a case of, for the tables.
      programs: how many have run.
      checks: `collections.Counter` of laws, how often each was looked at.
      faults: list of (law, detail), the first of each law.
    """

    def __init__(self, seed, number, folder):
        self.number = number
        self.rng = random.Random(f"soak {seed} {number}")
        self.folder = folder
        self.inputs = folder / INPUTS
        self.kind = ""
        self.programs = 0
        self.checks = collections.Counter()
        self.faults = []
        self._lines = [
            f"export PYTHONPATH={shlex.quote(str(REPOSITORY))}",
            f'here=$(mktemp -d); cp -r {shlex.quote(str(self.inputs))} "$here"; cd "$here"',
        ]
        shutil.rmtree(folder, ignore_errors=True)
        self.inputs.mkdir(parents=True)

    @property
    def commands(self):
        """Returns the shell commands that reproduce the case elsewhere."""
        return [*self._lines]

    def law(self, name, holds, detail=""):
        """Counts a check, and notes a fault if it fails; returns `holds`."""
        self.checks[name] += 1
        if not holds and name not in dict(self.faults):
            self.faults.append((name, str(detail)[:LONGEST_DETAIL]))
        return holds

    def require(self, name, holds, detail=""):
        """Like `law`, but if the check fails, the case ends."""
        if not self.law(name, holds, detail):
            raise Abandoned(name)

    def some(self, share):
        """Returns True with a probability."""
        return self.rng.random() < share

    def run(self, script, *arguments, where, stop=None):
        """Runs a program to its end, or until a signal ends it.

        Args:
          script: path within the repository.
          *arguments: of the program.
          where: name of the folder within the case that it runs in.
          stop: None, or (signal, function of the seconds since the start that says whether it is
            to be sent now).

        Returns:
          `subprocess.CompletedProcess` with `stdout` and `stderr` as text, and its `seconds`.
        """
        folder = self.folder / where
        folder.mkdir(exist_ok=True)
        process, began, sent = start(script, *arguments, folder=folder), time.monotonic(), None
        seconds = 0.0
        while process.poll() is None and seconds < TIME_LIMIT:
            seconds = time.monotonic() - began
            if stop and sent is None and stop[1](seconds):
                os.kill(process.pid, stop[0])
                sent = seconds
            time.sleep(SECONDS_BETWEEN_LOOKS)
        if process.poll() is None:
            process.kill()
        result = ended(process)
        result.seconds = time.monotonic() - began
        self.programs += 1
        line = shlex.join([sys.executable, str(REPOSITORY / script), *map(str, arguments)])
        if sent is not None:
            line = f"timeout -s {stop[0].name.removeprefix('SIG')} {sent:.2f} {line}"
        self._tell(f'(mkdir -p "$here/{where}"; cd "$here/{where}"; {line})', result)
        self.require("a program ends", seconds < TIME_LIMIT, line)
        return result

    def works(self, script, *arguments, where):
        """Runs a program that must succeed; returns the result of `run`."""
        result = self.run(script, *arguments, where=where)
        told = f"{script}: status {result.returncode}, {result.stderr[-LONGEST_DETAIL // 2 :]}"
        self.require("a program ends well", result.returncode == 0, told)
        return result

    def shell(self, line):
        """Runs a shell command in the folder of the case."""
        options = {"capture_output": True, "text": True, "timeout": TIME_LIMIT}
        result = subprocess.run(line, shell=True, cwd=self.folder, **options)
        self._tell(line, result)
        self.require("a line of the shell works", result.returncode == 0, result.stderr)

    def _tell(self, line, result):
        self._lines.append(line)
        with open(self.folder / "log.txt", "a", encoding="utf-8") as log:
            log.write(f"$ {line}\n{result.stdout}{result.stderr}status {result.returncode}\n\n")


@contextlib.contextmanager
def faults_noted(case):
    """Ends a case if a necessary check fails, or if the soak itself fails."""
    try:
        yield
    except Abandoned:
        pass
    except Exception as error:
        # The soak does not understand the program's output, or the soak itself is wrong.
        frame = error.__traceback__
        while frame.tb_next:
            frame = frame.tb_next
        place = f"{os.path.basename(frame.tb_frame.f_code.co_filename)}:{frame.tb_lineno}"
        case.law("the soak can read what is left", False, f"{error!r} at {place}")


def after_seconds(seconds):
    """Returns a condition for `Case.run`: the given number of seconds has passed."""
    return signal.SIGKILL, lambda passed: passed >= seconds
