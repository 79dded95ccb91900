"""A program for tests of ablations: it knows nothing of models and takes no time."""

import json
import os
import sys
import time

from absl import app, flags

FLAGS = flags.FLAGS
flags.DEFINE_string("output_dir", None, "")
flags.DEFINE_string("start", "", "")
flags.DEFINE_integer("seed", 0, "")
flags.DEFINE_float("rate", 1.0, "")
flags.DEFINE_float("seconds", 0.0, "")
flags.DEFINE_bool("fails", False, "")
flags.DEFINE_list("note", [], "")


def main(_):
    os.makedirs(FLAGS.output_dir, exist_ok=True)
    with open(os.path.join(FLAGS.output_dir, "runs"), "a") as file:
        file.write("+")
    if FLAGS.fails:
        print("reading", file=sys.stderr)
        sys.exit("toy: error: no such thing")
    before = 0.0
    if FLAGS.start:
        with open(os.path.join(FLAGS.start, "eval_results.json")) as file:
            before = json.load(file)["score"]
    time.sleep(FLAGS.seconds)
    found = {"score": before + FLAGS.rate * FLAGS.seed, "name": "toy"}
    with open(os.path.join(FLAGS.output_dir, "eval_results.json"), "w") as file:
        json.dump(found, file)


if __name__ == "__main__":
    app.run(main)
