"""What a position encoding costs on CPU, beside absolute positions, in our own model."""

from absl import app, flags
from contenders import Size, make_our_step
from memory import peak_memory
from timing import in_fresh_process, milliseconds, ratio, run_in_turns

FLAGS = flags.FLAGS
flags.DEFINE_multi_string(
    "size",
    ["4,256,4,1024,128,16,20", "4,256,4,1024,512,4,76"],
    "layers,hidden,heads,intermediate,length,batch,predictions; may be repeated",
)
flags.DEFINE_integer("rounds", 10, "turns that each side gets")
flags.DEFINE_integer("steps", 5, "steps in a turn")
flags.DEFINE_bool("jit_compile", True, "compile the step by XLA")
flags.DEFINE_string("encoding", "functional_relative", "the position_encoding that is measured")


def main(_):
    encodings = (FLAGS.encoding, "absolute")
    names = [f"{name} {unit}" for unit in ("ms", "MB") for name in encodings]
    print(" | ".join(["size", *names, "ratio of time", "ratio of memory"]), flush=True)
    for text in FLAGS.size:
        size = Size(*map(int, text.split(",")))
        makers = {name: (make_our_step, size, name, FLAGS.jit_compile) for name in encodings}
        times = run_in_turns(makers, FLAGS.rounds, FLAGS.steps)
        memory = [in_fresh_process(peak_memory, *maker) for maker in makers.values()]
        shown = [text, *(milliseconds(times[name]) for name in encodings)]
        shown += [f"{value:.0f}" for value in memory]
        shown += [ratio(*(times[name] for name in encodings)), f"{memory[0] / memory[1]:.2f}"]
        print(" | ".join(shown), flush=True)


if __name__ == "__main__":
    app.run(main)
