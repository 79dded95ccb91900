"""What --recompute saves of memory, and what it costs in time, beside a step without it.

python recomputation.py --size=4,256,4,1024,512,16,76
"""

from absl import app, flags
from contenders import Size, make_our_step
from memory import peak_memory
from timing import in_fresh_process, milliseconds, ratio, run_in_turns

FLAGS = flags.FLAGS
flags.DEFINE_multi_string(
    "size",
    ["4,256,4,1024,512,16,76"],
    "layers,hidden,heads,intermediate,length,batch,predictions,tokens of the vocabulary (default: "
    "21128); may be repeated",
)
flags.DEFINE_integer("rounds", 6, "turns that each side gets; 0: only the memory is measured")
flags.DEFINE_integer("steps", 3, "steps in a turn")
flags.DEFINE_bool("jit_compile", True, "compile the step by XLA")
flags.DEFINE_string("encoding", "functional_relative", "the position_encoding")


def main(_):
    columns = ["size", "recomputed ms", "kept ms", "ratio of time"]
    print(" | ".join([*columns, "recomputed MB", "kept MB", "ratio of memory"]), flush=True)
    for text in FLAGS.size:
        size = Size(*map(int, text.split(",")))
        makers = {
            recompute: (
                make_our_step,
                size,
                FLAGS.encoding,
                FLAGS.jit_compile,
                "float32",
                recompute,
            )
            for recompute in (True, False)
        }
        shown = [text, "", "", ""]
        if FLAGS.rounds:
            times = run_in_turns(makers, FLAGS.rounds, FLAGS.steps)
            shown = [text, *map(milliseconds, times.values()), ratio(*times.values())]
        memory = [in_fresh_process(peak_memory, *maker) for maker in makers.values()]
        shown += [*(f"{value:.0f}" for value in memory), f"{memory[0] / memory[1]:.2f}"]
        print(" | ".join(shown), flush=True)


if __name__ == "__main__":
    app.run(main)
