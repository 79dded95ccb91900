"""Fine-tuning: random tasks made from the sample text, from random or pretrained weights."""

import json

from soak_cases import classification, comprehension, pretraining, tagging, training, writing
from soak_cases.data import as_flags

TASKS = (classification, tagging, comprehension, writing)
PRECISIONS = ("float32", "float32", "float32", "mixed_bfloat16", "mixed_float16")


def run(case):
    """Trains, evaluates and predicts, checks the results, and predicts again."""
    task = case.rng.choice(TASKS)
    flags = train(case, task, case.rng.choice(PRECISIONS))
    folder = case.folder / "whole" / "run"
    before = predictions(folder)
    if case.some(0.5):
        case.works(task.PROGRAM, *as_flags(flags), where="again")
        same = predictions(case.folder / "again" / "run") == before
        case.law("the same command gives the same predictions", same)
        return
    later = {**flags, "do_train": False, "do_eval": False}
    case.works(task.PROGRAM, *as_flags(later), where="whole")
    case.law("predicting later gives the same", predictions(folder) == before)


def train(case, task, precision):
    """Trains a drawn model on a drawn task and checks what is left; returns the flags.

    Args:
      case: the `Case`.
      task: one of `TASKS`.
      precision: the flag.
    """
    rng = case.rng
    length = rng.randint(12, 64)
    segments = rng.choice((2, 6)) if task is not writing else 6
    # A target has its own places.
    config = training.write_config(case, 2 * length, segments)
    num_train_steps = rng.randint(2, 6)
    flags = {
        **training.draw_recipe(case, config, num_train_steps),
        "do_lower_case": case.some(0.7),
        "precision": precision,
        "do_train": True,
        "do_eval": True,
        "do_predict": True,
        **_start(case),
    }
    flags |= task.draw(case, length, flags["do_lower_case"])
    if case.some(0.2):
        # With a frozen encoder these are refused, unless they are off.
        off = {"adversarial_epsilon": 0.0, "freeze_layers": 0, "layer_decay": 1.0}
        off["recompute"] = False
        off |= {"r_drop_alpha": 0.0} if "r_drop_alpha" in flags else {}
        flags |= {"layer_mix": True, **off}
    elif "init_checkpoint" in flags and case.some(0.3):
        flags |= {"lora_rank": rng.randint(1, 3), "freeze_layers": 0}
    if task is comprehension and flags["r_drop_alpha"]:
        # Without dropout these are refused.
        _with_dropout(case.inputs / "config.json")
    by_epochs = task is not writing and case.some(0.25)
    if by_epochs:
        for name in ("num_train_steps", "save_checkpoints_steps"):
            del flags[name]
        flags["num_train_epochs"] = 1.0
    result = case.works(task.PROGRAM, *as_flags(flags), where="whole")
    folder = case.folder / "whole" / "run"
    if not by_epochs:
        saved = training.check_record(case, folder, flags)
        training.check_checkpoints(case, folder, flags, saved)
    training.check_opens(case, folder, flags)
    results = json.loads((folder / "eval_results.json").read_text())
    # Nearly equal results in float32 may change their order with the batch size.
    task.check(case, folder, flags, results if precision == "float32" else None)
    case.law("the results are shown", "results in run" in result.stdout, result.stdout[-300:])
    return flags


def _start(case):
    """Returns the flags of the initial weights: random ones, or those of a short pretraining."""
    if case.some(0.5):
        return {}
    data = pretraining.make_data(case)
    recipe = {
        **data,
        "bert_config_file": "../inputs/config.json",
        "output_dir": "run",
        "train_batch_size": 4,
        "num_train_steps": 2,
        "num_warmup_steps": 1,
        "do_train": True,
        "jit_compile": False,
    }
    path = case.inputs / "config.json"
    config = json.loads(path.read_text())
    most = max(config["max_position_embeddings"], data["max_seq_length"])
    path.write_text(json.dumps({**config, "max_position_embeddings": most}))
    case.works(pretraining.PROGRAM, *as_flags(recipe), where="start")
    return {"init_checkpoint": "../start/run/model.ckpt-2"}


def _with_dropout(path):
    """Gives a configuration without dropout some."""
    config = json.loads(path.read_text())
    if not config["hidden_dropout_prob"] and not config["attention_probs_dropout_prob"]:
        path.write_text(json.dumps({**config, "hidden_dropout_prob": 0.1}))


def predictions(folder):
    """Returns the bytes of the files of predictions in a folder, by name."""
    return {path.name: path.read_bytes() for path in folder.glob("*predictions*")}
