"""Examples a second in fine-tuning and prediction on CPU: ours against Hugging Face's Nezha."""

import importlib.util

from absl import app, flags
from classifiers import Size, make_ours, make_peer
from timing import milliseconds, ratio, run_in_turns

FLAGS = flags.FLAGS
flags.DEFINE_multi_string(
    "size",
    ["4,256,4,1024,128,32", "12,768,12,3072,128,32"],
    "layers,hidden,heads,intermediate,longest,batch; may be repeated",
)
flags.DEFINE_enum("texts", "reviews", ["reviews", "pairs"], "whose lengths the examples have")
flags.DEFINE_integer("examples", 512, "examples that a step goes through")
flags.DEFINE_integer("rounds", 5, "turns that each side gets")
flags.DEFINE_integer("steps", 1, "times in a turn through the examples")
flags.DEFINE_enum("mode", "train", ["train", "predict"], "what is timed")

SIDES = {
    "ours, buckets": (make_ours, True),
    "ours, one length": (make_ours, False),
    "peer, longest of the batch": (make_peer, True),
    "peer, one length": (make_peer, False),
}


def main(_):
    if not all(map(importlib.util.find_spec, ("torch", "transformers"))):
        raise app.UsageError("PyTorch and transformers are missing: pip install -e '.[bench]'")
    for text in FLAGS.size:
        size = Size(*map(int, text.split(",")))
        job = (size, FLAGS.texts, FLAGS.examples, FLAGS.mode == "train")
        makers = {name: (make, *job, shortens) for name, (make, shortens) in SIDES.items()}
        times = run_in_turns(makers, FLAGS.rounds, FLAGS.steps)
        print(f"{FLAGS.mode}, {text}, {FLAGS.examples} examples as long as {FLAGS.texts}, ms")
        for name, seconds in times.items():
            print(f"  {name}: {milliseconds(seconds)}")
        for ours in list(SIDES)[:2]:
            for peer in list(SIDES)[2:]:
                print(f"  {ours} / {peer}: {ratio(times[ours], times[peer])}", flush=True)


if __name__ == "__main__":
    app.run(main)
