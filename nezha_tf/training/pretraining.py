"""A pretraining run from its flags: what `run_pretraining.py` does."""

import os
import time

import keras
import numpy as np
import tensorflow as tf

from nezha_tf import console, files
from nezha_tf.checkpoints import load_tf1_checkpoint
from nezha_tf.checkpoints.tf1 import global_step_of
from nezha_tf.config import NezhaConfig
from nezha_tf.data.reader import ExampleReader
from nezha_tf.data.schema import Lengths, Limits
from nezha_tf.errors import UserError, require_flag
from nezha_tf.modeling.pretraining import NezhaForPreTraining
from nezha_tf.objectives.pretraining import MaskedLanguageModel
from nezha_tf.optimization.adamw import AdamWeightDecay
from nezha_tf.optimization.lamb import Lamb
from nezha_tf.optimization.schedules import WarmupPolynomialDecay
from nezha_tf.training import loop
from nezha_tf.training.checkpoint import RunCheckpoints, training_state
from nezha_tf.training.evaluation import Evaluation
from nezha_tf.training.precision import DynamicLossScale
from nezha_tf.training.step import make_train_step
from nezha_tf.training.summaries import RunRecord


def pretrain(flags):
    """Trains, evaluates or both.

    Args:
      flags: the flags of run_pretraining.py, by name.

    Raises:
      UserError: bad flags, files or data.
    """
    _check(flags)
    keras.utils.set_random_seed(flags["seed"])
    config = NezhaConfig.from_json_file(flags["bert_config_file"])
    train_reader = _reader(flags, "input_file", config) if flags["do_train"] else None
    eval_reader = _reader(flags, "eval_file", config) if flags["do_eval"] else None
    model = NezhaForPreTraining(config, dtype=flags["precision"])
    print(_description(model, config, flags))
    started = time.monotonic()
    evaluation = None
    if eval_reader:
        evaluation = Evaluation(
            model,
            eval_reader,
            flags["eval_batch_size"],
            flags["max_eval_steps"],
            flags["output_dir"],
        )
    rows, trained = [], {}
    if train_reader:
        step, trained = _train(model, train_reader, evaluation, flags)
        rows += [(f"train {name}", _number(value)) for name, value in trained.items()]
    else:
        step = _load_for_evaluation(model, flags)
        _record_settings(config, flags, "eval.flags")
    if evaluation:
        found = {n.removeprefix("eval_"): v for n, v in trained.items() if n.startswith("eval_")}
        results = evaluation.write(step, found or evaluation())
        rows = [row for row in rows if not row[0].startswith("train eval_")]
        rows += [(f"eval {name}", _number(value)) for name, value in results.items()]
    rows.append(("seconds", f"{time.monotonic() - started:.0f}"))
    print(console.table(f"results in {flags['output_dir']}", rows))
    if flags["plot"]:
        from nezha_tf.training.plot import plot_curves

        print(f"curves in {plot_curves(flags['output_dir'])}")


def _train(model, reader, evaluation, flags):
    """Trains from scratch, from --init_checkpoint, or from where this folder's run stopped.

    Returns:
      (step reached, last entry of the record).
    """
    optimizer = _optimizer(flags)
    loss_scale = DynamicLossScale() if flags["precision"] == "mixed_float16" else None
    step_function = make_train_step(
        model, MaskedLanguageModel(), optimizer, flags["clip_norm"], loss_scale
    )
    batches_read = tf.Variable(0, dtype=tf.int64, trainable=False)
    state = training_state(model, optimizer, loss_scale, batches_read=batches_read)
    checkpoints = RunCheckpoints(flags["output_dir"], state, flags["keep_checkpoint_max"])
    restored = checkpoints.restore_newest()
    if restored:
        print(f"going on from {restored}")
    elif flags["init_checkpoint"]:
        # Heads that a published checkpoint lacks keep their random start.
        report = load_tf1_checkpoint(model, flags["init_checkpoint"], may_be_missing=("cls/",))
        print(_loaded(flags["init_checkpoint"], report))
    start_step = int(optimizer.iterations)
    if start_step >= flags["num_train_steps"]:
        print(f"nothing to train: {restored} is at step {start_step} already")
        return start_step, {}
    _record_settings(model.config, flags, "run.flags")
    record = RunRecord(flags["output_dir"], start_step, flags["num_train_steps"])
    try:
        return flags["num_train_steps"], loop.train(
            step_function,
            reader.guarded(
                reader.training_batches(flags["train_batch_size"], flags["seed"], int(batches_read))
            ),
            start_step=start_step,
            num_train_steps=flags["num_train_steps"],
            batches_read=batches_read,
            loss_scale=loss_scale,
            checkpoints=checkpoints,
            save_checkpoints_steps=flags["save_checkpoints_steps"],
            log_steps=flags["log_steps"],
            record=record,
            evaluate=evaluation,
        )
    finally:
        record.close()


def _check(flags):
    if not (flags["do_train"] or flags["do_eval"]):
        raise UserError("nothing to do: pass --do_train, --do_eval or both")
    needed = ["bert_config_file", "output_dir"]
    needed += ["input_file"] * flags["do_train"] + ["eval_file"] * flags["do_eval"]
    for name in needed:
        require_flag(flags[name], name)
    if flags["clip_norm"] <= 0:
        raise UserError(f"--clip_norm={flags['clip_norm']} must be above 0")
    if flags["do_train"] and flags["num_warmup_steps"] >= flags["num_train_steps"]:
        raise UserError(
            f"--num_warmup_steps={flags['num_warmup_steps']} must be less than "
            f"--num_train_steps={flags['num_train_steps']}"
        )
    if flags["plot"]:
        from nezha_tf.training.plot import require_matplotlib

        require_matplotlib()


def _reader(flags, flag, config):
    lengths = Lengths(flags["max_seq_length"], flags["max_predictions_per_seq"])
    rows = config.max_position_embeddings
    if config.position_encoding == "absolute" and lengths.max_seq_length > rows:
        raise UserError(
            f"--max_seq_length={lengths.max_seq_length} is past the table of absolute positions "
            f"of {flags['bert_config_file']} (max_position_embeddings {rows})"
        )
    limits = Limits(config.vocab_size, config.type_vocab_size)
    return ExampleReader(files.expand(flags[flag], flag), lengths, limits)


def _optimizer(flags):
    schedule = WarmupPolynomialDecay(
        flags["learning_rate"],
        flags["num_train_steps"],
        flags["num_warmup_steps"],
        flags["schedule"],
        flags["decay_power"],
    )
    if flags["optimizer"] == "lamb":
        return Lamb(schedule, flags["lamb_variant"], weight_decay_rate=flags["weight_decay_rate"])
    return AdamWeightDecay(schedule, weight_decay_rate=flags["weight_decay_rate"])


def _loaded(checkpoint, report):
    """Returns a line on a load: whence, and what was missing there or not taken from there."""
    line = f"weights from {checkpoint}"
    if report.missing:
        line += f"; not in it, so fresh: {', '.join(report.missing)}"
    if report.unused:
        line += f"; in it, but not in this model: {', '.join(report.unused)}"
    return line


def _load_for_evaluation(model, flags):
    """Loads the newest checkpoint of the folder, or else --init_checkpoint; returns its step.

    The folder goes first, as in the originals: there --init_checkpoint is where a run began.
    """
    checkpoints = RunCheckpoints(flags["output_dir"], {})
    steps = checkpoints.steps()
    if not flags["init_checkpoint"] and not steps:
        raise UserError(
            f"no checkpoint in {flags['output_dir']} to evaluate; pass --init_checkpoint, or "
            "train first"
        )
    checkpoint = checkpoints.path(steps[-1]) if steps else flags["init_checkpoint"]
    print(_loaded(checkpoint, load_tf1_checkpoint(model, checkpoint)))
    return steps[-1] if steps else global_step_of(checkpoint)


def _record_settings(config, flags, name):
    """Writes the resolved flags (a flag file again) and the config beside the checkpoints."""
    lines = (f"--{name}={_flag_text(value)}\n" for name, value in sorted(flags.items()))
    files.write_text(os.path.join(flags["output_dir"], name), "".join(lines))
    config.to_json_file(os.path.join(flags["output_dir"], "bert_config.json"))


def _flag_text(value):
    return str(value).lower() if isinstance(value, bool) else "" if value is None else value


def _description(model, config, flags):
    weights = sum(int(np.prod(variable.shape)) for variable in model.trainable_variables)
    return (
        f"{config.num_hidden_layers} layers of {config.hidden_size}, "
        f"{config.num_attention_heads} heads, {config.position_encoding} positions, "
        f"{weights / 1e6:.1f} M weights, {flags['precision']}, on {_device()}"
    )


def _device():
    gpus = tf.config.list_physical_devices("GPU")
    if not gpus:
        return "the CPU"
    return tf.config.experimental.get_device_details(gpus[0]).get("device_name", gpus[0].name)


def _number(value):
    if isinstance(value, int) or value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.4g}"
