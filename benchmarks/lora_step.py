"""The time of a training step with adapters against that of the whole model, in turns.

python lora_step.py --size=4,256,4,1024,128,32
"""

import machine
import numpy as np
from absl import app, flags
from classifiers import Size, make_ours
from forms import OURS, wanted
from timing import milliseconds, run_in_turns

FLAGS = flags.FLAGS
flags.DEFINE_multi_string(
    "size",
    ["4,256,4,1024,128,32", "12,768,12,3072,128,8"],
    "layers,hidden,heads,intermediate,longest,batch; may be repeated",
)
flags.DEFINE_integer("rank", 8, "rank of the adapters")
flags.DEFINE_integer("examples", 256, "examples that a turn goes through")
flags.DEFINE_integer("rounds", 5, "turns that each side gets")


def main(_):
    machine.show()
    for text in FLAGS.size:
        size = Size(*map(int, text.split(",")))
        print(f"\n{text}, rank {FLAGS.rank}, {FLAGS.examples} reviews in a turn\n")
        print("| form | whole model, ms | adapters, ms | adapters / whole |")
        print("| --- | --- | --- | --- |")
        for name, form in wanted(OURS).items():
            job = (size, "reviews", FLAGS.examples, True, form, True)
            sides = {"whole": (make_ours, *job), "adapters": (make_ours, *job, FLAGS.rank)}
            times = run_in_turns(sides, FLAGS.rounds, 1, {})
            whole, adapters = times["whole"], times["adapters"]
            found = np.median(adapters / whole)
            print(f"| {name} | {milliseconds(whole)} | {milliseconds(adapters)} | {found:.2f} |")


if __name__ == "__main__":
    app.run(main)
