"""The forms in which ours and the peer are compared, and the table of a comparison.

Each side has a name: "ours, float32, XLA" or "peer, bfloat16, compiled, masked positions". What
counts is the ratio to the peer's best form.
"""

import importlib.util
import re
from typing import NamedTuple

import limits
import numpy as np
from absl import app, flags
from machine import has_cpp_compiler, peer_environment
from timing import milliseconds, ratio, run_in_turns

flags.DEFINE_string("sides", "", "regular expression: only sides whose names contain a match")


class Form(NamedTuple):
    """How a side computes.

    Attributes:
      precision: "float32"; "bfloat16": products in bfloat16, weights in float32 (Keras's
        mixed_bfloat16, torch.autocast); or "bfloat16 weights": all in bfloat16 (prediction only).
      is_compiled: whether XLA compiles ours, or torch.compile the peer.
    """

    precision: str
    is_compiled: bool

    @property
    def policy(self):
        """The name of Keras's dtype policy."""
        return "mixed_bfloat16" if self.precision == "bfloat16" else "float32"

    def autocast(self, torch, device="cpu"):
        """Returns the context in which PyTorch computes."""
        return torch.autocast(device, torch.bfloat16, enabled=self.precision == "bfloat16")


OURS = {
    f"ours, {precision}, {name}": Form(precision, is_compiled)
    for precision in ("float32", "bfloat16")
    for name, is_compiled in (("XLA", True), ("graph", False))
}


def peers(*precisions):
    """Returns the peer's forms in these precisions, dict of name to `Form`."""
    compiled = {"eager": False, "compiled": True} if has_cpp_compiler() else {"eager": False}
    return {
        f"peer, {precision}, {name}": Form(precision, is_compiled)
        for precision in precisions
        for name, is_compiled in compiled.items()
    }


def check_packages():
    """Ends the program with a line where the peer is missing."""
    if not all(map(importlib.util.find_spec, ("torch", "transformers"))):
        raise app.UsageError("PyTorch and transformers are missing: pip install -e '.[bench]'")


def compare(title, makers, rounds, steps, examples, least, batches=1):
    """Times all sides in turns and prints a table.

    Args:
      title: the line above it.
      makers: dict of the sides' names to (function, arguments); see `run_in_turns`.
      rounds, steps: see `run_in_turns`.
      examples: examples in a step.
      least: what `limits.least` returned for a step.
      batches: batches in a step; times are those of one.
    """
    makers = wanted(makers)
    peer_names = [name for name in makers if name.startswith("peer")]
    if not peer_names:
        raise app.UsageError(f"--sides={flags.FLAGS.sides}: no form of the peer is among them")
    environments = dict.fromkeys(peer_names, peer_environment())
    times = run_in_turns(makers, rounds, steps, environments)
    best = min(peer_names, key=lambda name: np.median(times[name]))
    print(f"{title}\n\n| side | ms | examples a second | / best form of the peer | / least |")
    print("| --- | --- | --- | --- | --- |")
    for name, seconds in times.items():
        rate = examples / np.median(seconds)
        shown = (milliseconds(seconds / batches), f"{rate:.1f}")
        limit = limits.of(name, least)
        of_limit = f"{np.median(seconds) / limit:.1f}" if limit else ""
        print(f"| {name} | {' | '.join(shown)} | {ratio(seconds, times[best])} | {of_limit} |")
    told = ", ".join(f"{name} {1000 * limit / batches:.1f}" for name, limit in least.items())
    print(f"\nThe best form of the peer: {best.removeprefix('peer, ')}")
    print(f"Least ms by products and weights: {told}\n", flush=True)


def wanted(sides):
    """Returns those of a dict of names that --sides names."""
    return {name: side for name, side in sides.items() if re.search(flags.FLAGS.sides, name)}
