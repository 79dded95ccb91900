"""What a training step of each pretraining objective costs, beside the bidirectional one.

python objectives.py --size=4,256,4,1024,128,32,20 --objectives=causal --objectives=permutation
"""

from absl import app, flags
from contenders import Size, make_objectives_step
from memory import peak_memory
from timing import in_fresh_process, milliseconds, ratio, run_in_turns

UNILM = "bidirectional:2,seq2seq:2,left_to_right:1,right_to_left:1"
FLAGS = flags.FLAGS
flags.DEFINE_multi_string(
    "size",
    ["4,256,4,1024,128,32,20"],
    "layers,hidden,heads,intermediate,length,batch,predictions,tokens of the vocabulary (default: "
    "21128); may be repeated",
)
flags.DEFINE_multi_string(
    "objectives",
    [
        UNILM,
        "causal",
        "permutation",
        "span_corruption",
        "infilling",
        "mass",
        "prefix",
        "replaced_tokens",
    ],
    "a mixture, as for run_pretraining.py; may be repeated",
)
flags.DEFINE_integer("rounds", 8, "turns that each side gets")
flags.DEFINE_integer("steps", 4, "steps in a turn")
flags.DEFINE_bool("jit_compile", True, "compile the step by XLA")


def main(_):
    columns = ["size", "objectives", "ms", "bidirectional ms", "ratio of time"]
    print(" | ".join([*columns, "MB", "bidirectional MB", "ratio of memory"]), flush=True)
    for text in FLAGS.size:
        size = Size(*map(int, text.split(",")))
        for objectives in FLAGS.objectives:
            makers = {
                name: (make_objectives_step, size, name, FLAGS.jit_compile)
                for name in (objectives, "bidirectional")
            }
            times = run_in_turns(makers, FLAGS.rounds, FLAGS.steps)
            memory = [in_fresh_process(peak_memory, *maker) for maker in makers.values()]
            shown = [text, objectives, *(milliseconds(times[name]) for name in makers)]
            shown += [ratio(*times.values()), *(f"{value:.0f}" for value in memory)]
            print(" | ".join([*shown, f"{memory[0] / memory[1]:.2f}"]), flush=True)


if __name__ == "__main__":
    app.run(main)
