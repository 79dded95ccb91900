"""Seconds of a pretraining step on CPU: ours against Hugging Face's Nezha on PyTorch."""

import importlib.util

from absl import app, flags
from contenders import Size, make_our_step, make_peer_step
from timing import milliseconds, ratio, run_in_turns

FLAGS = flags.FLAGS
flags.DEFINE_multi_string(
    "size",
    ["4,256,4,1024,128,16,20", "4,256,4,1024,512,4,76", "2,768,12,3072,128,8,20"],
    "layers,hidden,heads,intermediate,length,batch,predictions; may be repeated",
)
flags.DEFINE_integer("rounds", 10, "turns that each side gets")
flags.DEFINE_integer("steps", 5, "steps in a turn")
flags.DEFINE_bool("graph", False, "time our step without XLA too")


def main(_):
    if not all(map(importlib.util.find_spec, ("torch", "transformers"))):
        raise app.UsageError("PyTorch and transformers are missing: pip install -e '.[bench]'")
    forms = {"XLA": True, "graph": False} if FLAGS.graph else {"XLA": True}
    names = [f"ours, {form}" for form in forms]
    shown = ["size", *(f"{name} ms" for name in names), "peer ms"]
    print(" | ".join([*shown, *(f"{name} / peer" for name in names)]), flush=True)
    for text in FLAGS.size:
        size = Size(*map(int, text.split(",")))
        makers = {
            name: (make_our_step, size, "functional_relative", jit_compile)
            for name, jit_compile in zip(names, forms.values(), strict=True)
        }
        makers["peer"] = (make_peer_step, size)
        times = run_in_turns(makers, FLAGS.rounds, FLAGS.steps)
        shown = [text, *(milliseconds(times[name]) for name in makers)]
        shown += [ratio(times[name], times["peer"]) for name in names]
        print(" | ".join(shown), flush=True)


if __name__ == "__main__":
    app.run(main)
