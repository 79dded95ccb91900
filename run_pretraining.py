"""Pretrains a model on TFRecords: masked LM and next-sentence prediction.

python run_pretraining.py --flagfile=configs/sample.flags
"""

import sys

try:
    from nezha_tf import cli
except ImportError as error:
    sys.exit(f"{error}; install the project first: pip install -e .")

from absl import flags

FLAGS = flags.FLAGS

flags.DEFINE_string("bert_config_file", None, "The model's configuration, JSON.")
flags.DEFINE_string("input_file", None, "TFRecords to train on: names or globs, comma-separated.")
flags.DEFINE_string("eval_file", None, "TFRecords to evaluate on, likewise.")
flags.DEFINE_string("output_dir", None, "Checkpoints and results; a run goes on from there.")
flags.DEFINE_string("init_checkpoint", None, "TF1 checkpoint, or one of ours, to start from.")
flags.DEFINE_integer("max_seq_length", 128, "Length of the examples.", lower_bound=1)
flags.DEFINE_integer("max_predictions_per_seq", 20, "Their predictions.", lower_bound=1)
flags.DEFINE_bool("do_train", False, "Train.")
flags.DEFINE_bool("do_eval", False, "Evaluate: after training, and at each checkpoint of it.")
flags.DEFINE_integer("train_batch_size", 32, "Examples in a training step.", lower_bound=1)
flags.DEFINE_integer("eval_batch_size", 8, "Examples in an evaluation step.", lower_bound=1)
flags.DEFINE_float("learning_rate", 5e-5, "The rate at the end of the warm-up.", lower_bound=0)
flags.DEFINE_integer("num_train_steps", 100_000, "Training steps.", lower_bound=1)
flags.DEFINE_integer("num_warmup_steps", 10_000, "Steps of linear warm-up.", lower_bound=0)
flags.DEFINE_integer("save_checkpoints_steps", 1000, "Steps between checkpoints.", lower_bound=1)
flags.DEFINE_integer("keep_checkpoint_max", 5, "Checkpoints that are kept.", lower_bound=1)
flags.DEFINE_integer("max_eval_steps", 100, "Batches in an evaluation.", lower_bound=1)
flags.DEFINE_integer("log_steps", 10, "Steps between entries of the record.", lower_bound=1)
flags.DEFINE_enum("optimizer", "lamb", ["lamb", "adamw"], "Which optimizer.")
flags.DEFINE_enum("lamb_variant", "nezha", ["nezha", "paper"], "Whose LAMB.")
flags.DEFINE_float("weight_decay_rate", 0.01, "Decay of all but LayerNorm and biases.")
flags.DEFINE_float("clip_norm", 1.0, "Bound of the gradients' global norm; above 0.")
flags.DEFINE_enum("schedule", "nezha", ["nezha", "bert"], "Whether the decay meets the warm-up.")
flags.DEFINE_float("decay_power", 1.0, "Exponent of the decay; 1 is linear.", lower_bound=0)
flags.DEFINE_enum(
    "precision", "float32", ["float32", "mixed_float16", "mixed_bfloat16"], "Compute dtype."
)
flags.DEFINE_integer(
    "seed",
    12345,
    "Of initial weights, dropout and the order of examples.",
    lower_bound=0,
    upper_bound=2**32 - 1,
)
flags.DEFINE_bool("plot", False, "Draw curves.png at the end; needs the extra [plot].")


def main():
    from nezha_tf.training.pretraining import pretrain

    names = [flag.name for flag in FLAGS.get_key_flags_for_module(sys.argv[0])]
    pretrain({name: FLAGS[name].value for name in names})


if __name__ == "__main__":
    cli.run(main)
