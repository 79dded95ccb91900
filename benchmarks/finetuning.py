"""Examples a second in fine-tuning and prediction on CPU: ours against Hugging Face's Nezha.

With --texts=choices, questions with several choices: ours against Hugging Face's BERT.
"""

import forms
import limits
import machine
from absl import app, flags
from classifiers import BY_TOKENS, Size, make_ours, make_peer, random_examples
from contenders import our_config

FLAGS = flags.FLAGS
flags.DEFINE_multi_string(
    "size",
    ["4,256,4,1024,128,32", "12,768,12,3072,128,32"],
    "layers,hidden,heads,intermediate,longest,batch; may be repeated",
)
flags.DEFINE_enum(
    "texts", "reviews", ["reviews", "pairs", "choices"], "whose lengths the examples have"
)
flags.DEFINE_integer("examples", 512, "examples that a step goes through")
flags.DEFINE_integer("rounds", 5, "turns that each side gets")
flags.DEFINE_integer("steps", 1, "times in a turn through the examples")
flags.DEFINE_enum("mode", "train", ["train", "predict"], "what is timed")

# How long batches are: whether they are shortened to their longest text.
OUR_LENGTHS = {"buckets": True, BY_TOKENS: BY_TOKENS, "one length": False}
PEER_LENGTHS = {"longest of the batch": True, "one length": False}
PRECISIONS = {
    "train": ("float32", "bfloat16"),
    "predict": ("float32", "bfloat16", "bfloat16 weights"),
}


def main(_):
    forms.check_packages()
    rates = machine.show()
    sides = [
        (make_ours, forms.OURS, OUR_LENGTHS),
        (make_peer, forms.peers(*PRECISIONS[FLAGS.mode]), PEER_LENGTHS),
    ]
    for text in FLAGS.size:
        size = Size(*map(int, text.split(",")))
        job = (size, FLAGS.texts, FLAGS.examples, FLAGS.mode == "train")
        makers = {
            f"{name}, {length}": (make, *job, form, shortens)
            for make, its_forms, lengths in sides
            for name, form in its_forms.items()
            for length, shortens in lengths.items()
            if FLAGS.mode == "train" or length != BY_TOKENS
        }
        title = f"{FLAGS.mode}, {text}, {FLAGS.examples} examples as long as {FLAGS.texts}"
        forms.compare(title, makers, FLAGS.rounds, FLAGS.steps, FLAGS.examples, _least(rates, size))


def _least(rates, size):
    """Returns what `limits.least` does for a step, a pass through all examples."""
    ids, _ = random_examples(size, FLAGS.texts, FLAGS.examples)
    is_choices = FLAGS.texts == "choices"
    sequences = [each for example in ids for each in (example if is_choices else [example])]
    config = our_config(size, "absolute" if is_choices else "functional_relative")
    batches = -(-FLAGS.examples // size.batch)
    lengths = [len(each) for each in sequences if len(each)]
    return limits.least(rates, config, lengths, batches, FLAGS.mode == "train")


if __name__ == "__main__":
    app.run(main)
