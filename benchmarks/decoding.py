"""Seconds of a search on CPU: with a cache, without one, and Hugging Face's `generate`."""

import forms
import limits
import machine
import numpy as np
from absl import app, flags
from contenders import our_config
from decoders import Size, make_ours, make_peer
from memory import peak_memory
from timing import in_fresh_process, milliseconds, ratio, run_in_turns

FLAGS = flags.FLAGS
flags.DEFINE_multi_string(
    "size",
    ["4,256,4,1024,128,64,8,4", "4,256,4,1024,128,64,8,1"],
    "layers,hidden,heads,intermediate,source,target,batch,beams; may be repeated",
)
flags.DEFINE_integer("rounds", 5, "turns that each side gets")
flags.DEFINE_integer("steps", 2, "searches in a turn")
flags.DEFINE_enum(
    "against",
    "peers",
    ["peers", "forms", "recomputing", "memory"],
    "what is compared; forms: each precision, compiled or not, with --sides and without beams",
)
flags.DEFINE_list("targets", ["32", "64", "128"], "target lengths of the memory's figures")

OURS = {
    "masked": (make_ours, "masked", True),
    "shift": (make_ours, "shift", True),
}
PEERS = {"GPT-2": (make_peer, "gpt2"), "BERT": (make_peer, "bert")}
RECOMPUTING = {
    "recomputing, XLA": (make_ours, "masked", True, True),
    "recomputing, graph": (make_ours, "masked", False, True),
}


def main(_):
    for text in FLAGS.size:
        size = Size(*map(int, text.split(",")))
        if FLAGS.against == "memory":
            _show_memory(text, size)
        elif FLAGS.against == "forms":
            _compare_forms(text, size)
        elif FLAGS.against == "recomputing":
            _compare(text, size, {"masked": OURS["masked"]}, RECOMPUTING)
        else:
            forms.check_packages()
            _compare(text, size, OURS, PEERS)


def _compare(text, size, ours, others):
    """Prints a search's time and tokens a second of each side, and how often ours is as fast."""
    makers = {
        name: (make, size, *arguments) for name, (make, *arguments) in (ours | others).items()
    }
    times = run_in_turns(makers, FLAGS.rounds, FLAGS.steps)
    tokens = size.batch * size.target
    print(f"{text}: ms a search; tokens a second")
    for name, seconds in times.items():
        print(f"  {name}: {milliseconds(seconds)}; {tokens / np.median(seconds):.0f}")
    for other in others:
        for name in ours:
            print(f"  {other} / {name}: {ratio(times[other], times[name])}", flush=True)


def _compare_forms(text, size):
    """Prints the table of all forms; a step is the search of a batch."""
    forms.check_packages()
    rates = machine.show()
    makers = {
        name: (make_ours, size, "shift", form.is_compiled, False, form.policy)
        for name, form in forms.OURS.items()
    }
    makers |= {
        f"{name}, {kind}": (make_peer, size, kind, form)
        for name, form in forms.peers("float32", "bfloat16").items()
        for kind in ("gpt2", "bert")
    }
    lengths = [size.source + size.target] * size.batch
    least = limits.least(rates, our_config(size), lengths, size.target, False, size.target)
    title = f"Searches, {text}"
    forms.compare(title, makers, FLAGS.rounds, FLAGS.steps, size.batch, least)


def _show_memory(text, size):
    """Prints the peak of memory of searches of several target lengths."""
    for target in FLAGS.targets:
        longer = size._replace(target=int(target))
        found = in_fresh_process(peak_memory, make_ours, longer, "masked", True)
        print(f"{text}, target {target}: {found:.0f} MB", flush=True)


if __name__ == "__main__":
    app.run(main)
