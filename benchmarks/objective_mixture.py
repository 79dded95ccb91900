"""What UniLM's mixture of objectives costs in a training step, beside the bidirectional one."""

from absl import app, flags
from contenders import Size, make_mixture_step, make_our_step
from timing import milliseconds, ratio, run_in_turns

FLAGS = flags.FLAGS
flags.DEFINE_multi_string(
    "size",
    ["4,256,4,1024,128,16,20", "4,256,4,1024,512,4,76"],
    "layers,hidden,heads,intermediate,length,batch,predictions; may be repeated",
)
flags.DEFINE_integer("rounds", 8, "turns that each side gets")
flags.DEFINE_integer("steps", 4, "steps in a turn")
flags.DEFINE_bool("jit_compile", True, "compile the step by XLA")


def main(_):
    print(" | ".join(["size", "mixture ms", "bidirectional ms", "ratio"]), flush=True)
    for text in FLAGS.size:
        size = Size(*map(int, text.split(",")))
        makers = {
            "mixture": (make_mixture_step, size, FLAGS.jit_compile),
            "bidirectional": (make_our_step, size, "functional_relative", FLAGS.jit_compile),
        }
        times = run_in_turns(makers, FLAGS.rounds, FLAGS.steps)
        shown = [text, *(milliseconds(times[name]) for name in makers), ratio(*times.values())]
        print(" | ".join(shown), flush=True)


if __name__ == "__main__":
    app.run(main)
