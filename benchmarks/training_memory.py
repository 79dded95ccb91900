"""What the memory of a training process is made of, stage by stage.

python training_memory.py --size=4,256,4,1024,128,64,20,8000
TF_ONEDNN_USE_SYSTEM_ALLOCATOR=1 python training_memory.py --recompute
"""

import pathlib

from absl import app, flags
from contenders import Size, our_train_step, random_batch
from memory import resident
from timing import import_tensorflow

FLAGS = flags.FLAGS
flags.DEFINE_string(
    "size",
    "4,256,4,1024,128,64,20,8000",
    "layers,hidden,heads,intermediate,length,batch,predictions,tokens of the vocabulary",
)
flags.DEFINE_bool("recompute", False, "as the flag of the programs")
flags.DEFINE_bool("jit_compile", True, "compile the steps by XLA")


def main(_):
    print("stage | resident at its end, MB | most resident in it, MB", flush=True)
    _tell("Python")
    import_tensorflow().zeros(1)
    _tell("import of TensorFlow")
    size = Size(*map(int, FLAGS.size.split(",")))
    step, *_, model = our_train_step(
        size, "functional_relative", FLAGS.jit_compile, recompute=FLAGS.recompute
    )
    import tensorflow as tf

    from nezha_tf.objectives.bert import Bidirectional
    from nezha_tf.training.devices import give_back_memory
    from nezha_tf.training.evaluation import make_eval_step

    _tell("model and moments")
    batch = {name: tf.constant(values) for name, values in random_batch(size).items()}
    step.on_batch(batch)
    _tell("first step: traced, compiled, computed")
    give_back_memory()
    _tell("freed memory given back")
    for _ in range(2):
        step.on_batch(batch)
    _tell("two more steps")
    strategy = tf.distribute.get_strategy()
    evaluate = make_eval_step(strategy, model, Bidirectional().loss(), FLAGS.jit_compile)
    evaluate(batch)
    _tell("first evaluation: traced, compiled, computed")
    give_back_memory()
    step.on_batch(batch)
    _tell("freed memory given back, a step")


def _tell(stage):
    print(f"{stage} | {resident('VmRSS'):,.0f} | {resident('VmHWM'):,.0f}", flush=True)
    # "5" sets the kernel's record of the peak back to what is resident now.
    pathlib.Path("/proc/self/clear_refs").write_text("5")


if __name__ == "__main__":
    app.run(main)
