"""Common parts of all cases that train: random models and recipes, and checks of a run's files."""

import json
import math

import keras
import numpy as np
import tensorflow as tf

import nezha_tf
from nezha_tf.checkpoints.name_table import tf1_names
from nezha_tf.config import POSITION_ENCODINGS
from soak_cases.corpora import VOCABULARY, read_json_lines

AVERAGE = "/ExponentialMovingAverage"
# The rates in a log entry.
RATES = ("examples_per_second", "tokens_per_second", "model_tflops_per_second")
RATES += ("model_flop_utilisation",)


def write_config(case, length, segments):
    """Draws the configuration of a tiny model for examples of a length; returns it."""
    rng = case.rng
    hidden = rng.choice((8, 16, 32))
    config = {
        "vocab_size": rng.choice((9103, 9200)),
        "hidden_size": hidden,
        "num_hidden_layers": rng.randint(1, 2),
        "num_attention_heads": rng.choice((1, 2, 4)),
        "intermediate_size": rng.choice((8, 33)),
        "hidden_act": rng.choice(("gelu", "gelu", "gelu_erf", "relu", "tanh")),
        "hidden_dropout_prob": rng.choice((0.0, 0.1, 0.4)),
        "attention_probs_dropout_prob": rng.choice((0.0, 0.1, 0.4)),
        "max_position_embeddings": length + rng.choice((0, 7)),
        "type_vocab_size": segments,
        "initializer_range": rng.choice((0.02, 0.2)),
        "position_encoding": rng.choice(tuple(POSITION_ENCODINGS)),
        "max_relative_position": rng.choice((1, 5, 64)),
        "layer_norm_eps": rng.choice((1e-12, 1e-5)),
        "embedding_size": rng.choice((None, None, 4)),
        "num_hidden_groups": rng.choice((None, None, 1)),
    }
    (case.inputs / "config.json").write_text(json.dumps(config, indent=1))
    return config


def draw_recipe(case, config, num_train_steps):
    """Draws the recipe of a training; returns a dict of flag to value."""
    rng = case.rng
    layers = config["num_hidden_layers"]
    freezes = range(layers + 1) if config["num_hidden_groups"] is None else (0, layers)
    accumulated = rng.choice((1, 1, 2, 3))
    recipe = {
        "vocab_file": VOCABULARY,
        "bert_config_file": "../inputs/config.json",
        "output_dir": "run",
        "train_batch_size": accumulated * rng.randint(1, 4),
        "gradient_accumulation_steps": accumulated,
        "eval_batch_size": rng.randint(1, 9),
        "num_train_steps": num_train_steps,
        "warmup_proportion": rng.choice((0.0, 0.3)),
        "save_checkpoints_steps": rng.randint(1, 4),
        "keep_checkpoint_max": rng.randint(1, 4),
        "log_steps": rng.randint(1, 3),
        "steps_per_loop": rng.choice((1, 2, 10)),
        "learning_rate": rng.choice((1e-5, 1e-3, 5e-3)),
        "optimizer": rng.choice(("lamb", "adamw")),
        "lamb_variant": rng.choice(("nezha", "paper")),
        "adamw_variant": rng.choice(("bert", "paper")),
        "schedule": rng.choice(("nezha", "bert")),
        "decay_power": rng.choice((1.0, 0.5, 2.0)),
        "weight_decay_rate": rng.choice((0.01, 0.0)),
        "clip_norm": rng.choice((1.0, 0.01)),
        "layer_decay": rng.choice((1.0, 0.8)),
        "freeze_layers": rng.choice((0, 0, rng.choice(freezes))),
        "adversarial_epsilon": rng.choice((0.0, 0.0, 0.5)),
        "ema_decay": rng.choice((0.0, 0.0, 0.9)),
        "divergence_factor": 0,
        "seed": rng.choice((0, 12345, rng.randrange(2**32))),
        "jit_compile": case.some(0.1),
    }
    all_frozen = recipe["freeze_layers"] == layers
    return {**recipe, "recompute": not all_frozen and case.some(0.3)}


def check_record(case, folder, recipe):
    """Checks the log of a run against the flags: every entry once, with finite numbers only."""
    entries = read_json_lines(folder / "metrics.jsonl")
    finite = [math.isfinite(value) for entry in entries for value in entry.values()]
    case.law("the log has finite numbers", all(finite), entries)
    steps = range(1, recipe["num_train_steps"] + 1)
    saved = [step for step in steps if _is_due(step, recipe, "save_checkpoints_steps")]
    logged = [step for step in steps if step in saved or _is_due(step, recipe, "log_steps")]
    trained = [entry["step"] for entry in entries if "learning_rate" in entry]
    case.law("each step is recorded once", trained == logged, f"{trained}, not {logged}")
    # Not every evaluation has a loss.
    evaluated = [entry["step"] for entry in entries if any("eval_" in name for name in entry)]
    wanted = saved if recipe.get("do_eval") else []
    case.law("each checkpoint is evaluated", evaluated == wanted, f"{evaluated}")
    rates = [entry["learning_rate"] for entry in entries if "learning_rate" in entry]
    most = recipe["learning_rate"] * (1 + 1e-6)
    case.law("rates are below --learning_rate", all(0 <= r <= most for r in rates), rates)
    return saved


def _is_due(step, recipe, flag):
    return step % recipe[flag] == 0 or step == recipe["num_train_steps"]


def check_checkpoints(case, folder, recipe, saved):
    """Checks the checkpoints of a run against the flags: the newest ones, and the best."""
    kept = set(saved[-recipe["keep_checkpoint_max"] :])
    best = folder / "best_checkpoint.json"
    case.law("with --do_eval there is a best one", best.exists() == bool(recipe.get("do_eval")))
    if best.exists():
        kept.add(json.loads(best.read_text())["global_step"])
    found = steps_in(folder)
    case.law("the newest checkpoints are kept", set(found) == kept, f"{found}, not {kept}")
    left = [path.name for path in folder.iterdir() if "tmp" in path.name]
    case.law("a run leaves nothing half-written", not left, left)


def steps_in(folder):
    """Returns the steps of the checkpoints in a folder, rising."""
    return sorted(int(path.stem.split("-")[1]) for path in folder.glob("model.ckpt-*.index"))


def tensors(folder, step):
    """Returns the contents of a checkpoint, a dict of name to array."""
    reader = tf.train.load_checkpoint(str(folder / f"model.ckpt-{step}"))
    return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}


def check_same_weights(case, one, other, step, law):
    """Checks that two folders have the same checkpoint of a step, bit by bit."""
    if not case.law(law, step in steps_in(other), f"no step {step}: {steps_in(other)}"):
        return
    ours, theirs = tensors(one, step), tensors(other, step)
    names = ours.keys() | theirs.keys()
    differing = [name for name in names if not _is_same(ours.get(name), theirs.get(name))]
    case.law(law, not differing, f"{len(differing)} tensors, {differing[:5]}")


def _is_same(one, other):
    return one is not None and other is not None and np.array_equal(one, other)


def check_opens(case, folder, recipe):
    """Checks that a folder opens as a model, with the weights of the best or newest checkpoint."""
    _, model = nezha_tf.load(folder)
    best, step = folder / "best_checkpoint.json", steps_in(folder)[-1]
    if best.exists():
        step = json.loads(best.read_text())["global_step"]
    saved, differing = tensors(folder, step), []
    for name, variable in tf1_names(model).items():
        if recipe.get("lora_rank") and name not in saved:
            continue  # It is the base's, or both together.
        averaged = saved.get(name + AVERAGE) if recipe["ema_decay"] else None
        value = saved[name] if averaged is None else averaged
        if not np.array_equal(variable.numpy(), value):
            differing.append(name)
    case.law("nezha_tf.load gives the saved weights", not differing, differing)
    finite = all(np.isfinite(value).all() for value in saved.values() if value.dtype.kind == "f")
    case.law("weights are finite", finite)
    keras.backend.clear_session()
