"""The flags of every program that trains: where, how long, how, and what is recorded."""

from absl import flags

DISTRIBUTION = ("default", "one_device", "mirrored", "multi_worker", "tpu")


def define(is_sweep=False):
    """Defines the flags; the calling program adopts them as its own.

    Args:
      is_sweep: whether --learning_rate is a list of rates, each of which is tried.
    """
    _place()
    _course()
    _learning_rate(is_sweep)
    _recipe()
    _numbers()
    _record()
    _export()


def flag_text(value):
    """Returns a flag's value as it is written in a flag file."""
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(value) if isinstance(value, list) else str(value)


def _place():
    flags.DEFINE_enum("distribution_strategy", "default", DISTRIBUTION, "Where it is run.")
    flags.DEFINE_integer("num_gpus", None, "GPUs of this machine; all, if not given.", 0)
    flags.DEFINE_string("tpu", None, "Name or address of a TPU; 'local' for this machine's.")
    flags.DEFINE_enum(
        "input_sharding",
        "element",
        ["element", "file"],
        "How workers share the examples: the same batches whatever their number, or each worker "
        "files of its own.",
    )
    flags.DEFINE_integer("steps_per_loop", 10, "Most steps between two looks from Python.", 1)
    flags.DEFINE_bool("jit_compile", True, "Compile the step with XLA.")


def _course():
    flags.DEFINE_integer("train_batch_size", 32, "Examples in an update, over all replicas.", 1)
    flags.DEFINE_integer(
        "gradient_accumulation_steps", 1, "Micro-batches that a replica's part is cut into.", 1
    )
    flags.DEFINE_integer("eval_batch_size", 8, "Examples in an evaluation step.", 1)
    flags.DEFINE_integer("num_train_steps", 100_000, "Training steps.", 1)
    flags.DEFINE_integer("max_eval_steps", 100, "Batches in an evaluation.", 1)
    flags.DEFINE_integer("save_checkpoints_steps", 1000, "Steps between checkpoints.", 1)
    flags.DEFINE_integer("keep_checkpoint_max", 5, "Checkpoints that are kept.", 1)
    flags.DEFINE_bool(
        "keep_best", True, "Keep the checkpoint with the best held-out results beside them."
    )
    flags.DEFINE_integer(
        "early_stopping_patience",
        0,
        "Evaluations in a row that are no better than the best one and end the run; 0: any.",
        0,
    )
    flags.DEFINE_integer(
        "skip_corrupt_records", 0, "Corrupt records that are passed over before it is an error.", 0
    )
    flags.DEFINE_integer(
        "seed",
        12345,
        "Of initial weights, dropout and the order of examples.",
        lower_bound=0,
        upper_bound=2**32 - 1,
    )


def _learning_rate(is_sweep):
    text = "The rate at the end of the warm-up"
    if is_sweep:
        flags.DEFINE_list("learning_rate", ["5e-05"], f"{text}; of several each is tried.")
    else:
        flags.DEFINE_float("learning_rate", 5e-5, f"{text}.", 0)


def _recipe():
    flags.DEFINE_integer("num_warmup_steps", 10_000, "Steps of linear warm-up.", 0)
    flags.DEFINE_float(
        "warmup_proportion", None, "The warm-up as a share of the steps, in its place.", 0, 1
    )
    flags.DEFINE_enum("optimizer", "lamb", ["lamb", "adamw"], "Which optimizer.")
    flags.DEFINE_enum("lamb_variant", "nezha", ["nezha", "paper"], "Whose LAMB.")
    flags.DEFINE_enum("adamw_variant", "bert", ["bert", "paper"], "Whose AdamW.")
    flags.DEFINE_float("weight_decay_rate", 0.01, "Decay of all but LayerNorm and biases.", 0)
    flags.DEFINE_float("clip_norm", 1.0, "Bound of the gradients' global norm; above 0.", 0)
    flags.DEFINE_enum("schedule", "nezha", ["nezha", "bert"], "Whether decay meets the warm-up.")
    flags.DEFINE_float("decay_power", 1.0, "Exponent of the decay; 1 is linear.", 0)
    flags.DEFINE_float("layer_decay", 1.0, "Rate of a layer, as a share of the next one's.", 0, 1)
    flags.DEFINE_integer("freeze_layers", 0, "First layers that stay, with the embeddings.", 0)
    flags.DEFINE_float("label_smoothing", 0.0, "Share of the target spread over all pieces.", 0, 1)
    flags.DEFINE_float(
        "adversarial_epsilon",
        0.0,
        "Length by which an example's word embeddings are also moved against the model; 0: not.",
        0,
    )
    flags.DEFINE_float(
        "ema_decay", 0.0, "Decay of the weights' average, which is then evaluated; 0: none.", 0, 1
    )
    flags.DEFINE_float(
        "divergence_factor", 3.0, "A loss this far above its lowest ends the run; 0: never.", 0
    )
    flags.DEFINE_integer("divergence_patience", 5, "Entries of the record that it must last.", 1)


def _numbers():
    policies = ["float32", "mixed_float16", "mixed_bfloat16"]
    flags.DEFINE_enum("precision", "float32", policies, "Compute dtype.")
    # The start and the growth are those of NEZHA's optimization.py.
    flags.DEFINE_float("initial_loss_scale", 2.0**32, "Of mixed_float16, as those below.")
    flags.DEFINE_integer("loss_scale_growth_steps", 1000, "Good steps before it grows.", 1)
    flags.DEFINE_float("loss_scale_growth_factor", 2.0, "What it grows by.")
    flags.DEFINE_float("loss_scale_backoff_factor", 0.5, "What a step that overflows does to it.")
    flags.DEFINE_integer(
        "max_skipped_steps", 100, "Steps in a row without finite gradients that end the run.", 1
    )


def _record():
    flags.DEFINE_integer("log_steps", 10, "Steps between entries of the record.", 1)
    flags.DEFINE_list("profile_steps", None, "Two steps; what lies between is profiled.")
    flags.DEFINE_float(
        "peak_tflops", None, "What a device can do at this precision, for the utilisation.", 0
    )
    flags.DEFINE_bool("plot", False, "Draw curves.png at the end; needs the extra [plot].")


def _export():
    flags.DEFINE_bool(
        "do_export", False, "Write a SavedModel that takes raw text, with the best checkpoint."
    )
    flags.DEFINE_string("export_dir", None, "Its folder; export in --output_dir, if not given.")
