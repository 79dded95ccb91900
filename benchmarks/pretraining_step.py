"""Seconds of a pretraining step on CPU: ours against Hugging Face's Nezha on PyTorch."""

import forms
import limits
import machine
from absl import app, flags
from contenders import Size, make_our_step, make_peer_step, our_config

FLAGS = flags.FLAGS
flags.DEFINE_multi_string(
    "size",
    ["4,256,4,1024,128,16,20", "4,256,4,1024,512,4,76", "2,768,12,3072,128,8,20"],
    "layers,hidden,heads,intermediate,length,batch,predictions; may be repeated",
)
flags.DEFINE_integer("rounds", 10, "turns that each side gets")
flags.DEFINE_integer("steps", 5, "steps in a turn")

# Where the peer scores the vocabulary; ours scores it at the masked positions.
HEADS = {"all positions": True, "masked positions": False}


def main(_):
    forms.check_packages()
    rates = machine.show()
    for text in FLAGS.size:
        size = Size(*map(int, text.split(",")))
        makers = {
            name: (make_our_step, size, "functional_relative", form.is_compiled, form.policy)
            for name, form in forms.OURS.items()
        }
        makers |= {
            f"{name}, {head}": (make_peer_step, size, form, has_all)
            for name, form in forms.peers("float32", "bfloat16").items()
            for head, has_all in HEADS.items()
        }
        lengths, masked = [size.length] * size.batch, size.predictions
        least = limits.least(rates, our_config(size), lengths, 1, True, masked)
        forms.compare(f"Training, {text}", makers, FLAGS.rounds, FLAGS.steps, size.batch, least)


if __name__ == "__main__":
    app.run(main)
