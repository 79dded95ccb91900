"""Draws valid settings of the programs for some time, runs them, and looks for faults.

  python tests/soak.py --minutes=60 --seed=1
  python tests/soak.py --seed=1 --first_case=17 --num_cases=1

This is not part of the tests, which try the same every time; it tries something new. The draws
depend only on the seed and the number of the case. For each fault, it prints the shell commands
that reproduce it, and keeps the folder of the case.
"""

import argparse
import collections
import importlib
import itertools
import pathlib
import shlex
import shutil
import sys
import tempfile
import time

from nezha_tf.util import console

with console.stderr_held_back():  # messages of TensorFlow's import on the machine
    from soak_cases.case import Case, faults_noted

# How often each kind is drawn; making data is fastest.
WEIGHTS = {"data": 8, "pretraining": 3, "finetuning": 2}


def main():
    options = parse()
    root = pathlib.Path(options.folder or tempfile.mkdtemp(prefix="nezha_soak_")).resolve()
    tally = Tally()
    ends = time.monotonic() + 60 * options.minutes
    with console.progress(desc="cases", unit="case") as bar:
        for number in itertools.islice(itertools.count(options.first_case), options.num_cases):
            if time.monotonic() > ends:
                break
            case = Case(options.seed, number, root / f"case_{number}")
            case.kind = case.rng.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
            if options.kinds and case.kind not in options.kinds.split(","):
                shutil.rmtree(case.folder)
                continue
            began = time.monotonic()
            with faults_noted(case):
                importlib.import_module(f"soak_cases.{case.kind}").run(case)
            tally.add(case, time.monotonic() - began)
            bar.set_postfix_str(f"{case.kind}, {tally.faults} faults", refresh=False)
            bar.update()
            if case.faults:
                bar.write(told(case, options.seed))
            else:
                shutil.rmtree(case.folder)
    print(tally.tables())
    sys.exit(1 if tally.faults else 0)


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--minutes", type=float, default=10, help="no case begins later")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first_case", type=int, default=0)
    parser.add_argument("--num_cases", type=int, help="as many as there is time for, if not given")
    parser.add_argument("--kinds", help=f"of {','.join(WEIGHTS)}; other cases are skipped")
    parser.add_argument("--folder", help="where cases run and faults stay; a new one, if not given")
    return parser.parse_args()


def told(case, seed):
    """Returns lines that describe the faults of a case."""
    lines = [f"case {case.number} of seed {seed} ({case.kind}), kept in {case.folder}:"]
    lines += [f"  FAULT {law}: {detail}" for law, detail in case.faults]
    script = shlex.quote(str(pathlib.Path(__file__).resolve()))
    again = f"{sys.executable} {script} --seed={seed} --first_case={case.number} --num_cases=1"
    return "\n".join([*lines, *case.commands, f"# or all of it: {again}"])


class Tally:
    """Counts the cases and checks."""

    def __init__(self):
        self.faults = 0
        self._kinds = {}
        self._laws, self._broken = collections.Counter(), collections.Counter()

    def add(self, case, seconds):
        """Counts a case and its duration in seconds."""
        found = self._kinds.setdefault(case.kind, collections.Counter())
        found["cases"] += 1
        found["programs"] += case.programs
        found["checks"] += case.checks.total()
        found["faults"] += len(case.faults)
        found["seconds"] += seconds
        self.faults += len(case.faults)
        self._laws += case.checks
        self._broken += collections.Counter(law for law, _ in case.faults)

    def tables(self):
        """Returns the tables to print at the end."""
        names = ("cases", "programs", "checks", "faults", "seconds")
        rows = [("", *names)]
        for kind, found in sorted(self._kinds.items()):
            rows.append((kind, *(f"{found[name]:,.0f}" for name in names)))
        laws = [("", "checks", "faults")]
        laws += [(law, f"{n:,}", self._broken[law]) for law, n in sorted(self._laws.items())]
        return f"{console.table('what was run', rows)}\n{console.table('laws', laws)}"


if __name__ == "__main__":
    main()
