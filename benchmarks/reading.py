"""Records a second that the reader parses and batches: masked before, and masked as they are read.

The same text twice: masked records, and unmasked ones that are masked in the graph. Each side is
a process of its own, and they take turns. With --step, also how many examples a second a training
step of the size takes.
"""

import os
import pathlib
import tempfile

import numpy as np
from absl import app, flags
from contenders import Size, make_our_step
from timing import import_tensorflow, ratio, run_in_turns

FLAGS = flags.FLAGS
flags.DEFINE_string("input_file", None, "text; the bundled sample many times over, if none")
flags.DEFINE_multi_integer("batch", [32, 256], "examples in a batch; may be repeated")
flags.DEFINE_integer("rounds", 8, "turns that each side gets")
flags.DEFINE_integer("records", 50_000, "records that are read in a turn")
flags.DEFINE_bool("step", True, "compare with a training step on 4 layers of 256, batch 32")

RESOURCES = pathlib.Path(__file__).resolve().parent.parent / "nezha_tf" / "resources"
VOCAB_FILE = str(RESOURCES / "vocab.txt")
POLICIES = ("whole_word", "token", "ngram", "span")
LENGTH, PREDICTIONS = 128, 20
SAMPLES = 80  # copies of the bundled text that make some 20,000 examples


def main(_):
    print(" | ".join(["batch", "side", "records a second (most)", "rate / static"]), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        files = make_records(folder, FLAGS.input_file)
        for batch in FLAGS.batch:
            steps = FLAGS.records // batch
            makers = {"static": (make_reading, files["whole_word"], None, batch, steps)}
            for name in POLICIES:
                makers[name] = (make_reading, files["none"], name, batch, steps)
            times = run_in_turns(makers, FLAGS.rounds, 1)
            for name, seconds in times.items():
                rates = steps * batch / seconds
                shown = f"{np.median(rates):,.0f} ({rates.max():,.0f})"
                print(f"{batch} | {name} | {shown} | {ratio(times['static'], seconds)}", flush=True)
        if FLAGS.step:
            compare_with_step(files)


def compare_with_step(files):
    """Prints how many times what a training step takes the reader gives."""
    size = Size(4, 256, 4, 1024, LENGTH, 32, PREDICTIONS)
    steps = FLAGS.records // size.batch
    times = run_in_turns(
        {
            "step": (make_our_step, size, "functional_relative", True),
            "static": (make_reading, files["whole_word"], None, size.batch, steps),
            "whole_word": (make_reading, files["none"], "whole_word", size.batch, steps),
        },
        max(2, FLAGS.rounds // 2),
        1,
    )
    print(f"a step takes {size.batch / np.median(times['step']):,.0f} examples a second")
    for name in ("static", "whole_word"):
        print(f"{name} / step: {ratio(times['step'] * steps, times[name])}")


def make_records(folder, input_file):
    """Writes the two sets, once through the text; returns dict of masking to file."""
    from nezha_tf.corpus.create import create_pretraining_data

    if not input_file:
        input_file = os.path.join(folder, "sample.txt")
        text = (RESOURCES / "sample_corpus.txt").read_text(encoding="utf-8")
        pathlib.Path(input_file).write_text("\n\n".join([text] * SAMPLES), encoding="utf-8")
    files = {}
    for masking in ("whole_word", "none"):
        files[masking] = os.path.join(folder, f"{masking}.tfrecord")
        create_pretraining_data(
            input_file=input_file,
            output_file=files[masking],
            vocab_file=VOCAB_FILE,
            masking=masking,
            dupe_factor=1,
            num_output_shards=1,
        )
    return files


def make_reading(path, policy, batch, steps):
    """Returns a callable that takes so many training batches from the reader."""
    import_tensorflow()

    from nezha_tf import Vocabulary
    from nezha_tf.data.reader import ExampleReader
    from nezha_tf.data.schema import FEATURES, UNMASKED_FEATURES, Lengths, Limits
    from nezha_tf.objectives.dynamic_masking import DynamicMasking
    from nezha_tf.objectives.policies import DEFAULT_MASKED_LM_PROB, POLICIES

    vocabulary, lengths = Vocabulary.from_file(VOCAB_FILE), Lengths(LENGTH, PREDICTIONS)
    features, transforms = FEATURES, ()
    if policy:
        masking = DynamicMasking(vocabulary, POLICIES[policy], lengths, DEFAULT_MASKED_LM_PROB)
        features, transforms = UNMASKED_FEATURES, (masking,)
    limits = Limits(len(vocabulary), 2)
    reader = ExampleReader([path], lengths, limits, features=features, transforms=transforms)
    batches = reader.training_batches(batch, seed=1).take(steps)

    def read():
        # Anew each time: what was read ahead in the turn before would count for this one.
        for _ in batches:
            pass

    return read


if __name__ == "__main__":
    app.run(main)
