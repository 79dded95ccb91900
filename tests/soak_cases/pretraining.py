"""Pretraining: random models and recipes on random data, stopped and continued, twice the same."""

import json
import signal

from nezha_tf.data import schema
from nezha_tf.modeling.replaced_tokens import REDUCTION
from nezha_tf.objectives.table import OBJECTIVES
from soak_cases import corpora, training
from soak_cases.data import MASKINGS, USER_DICT, as_flags

PROGRAM = "run_pretraining.py"
DYNAMIC = ("whole_word", "token", "ngram", "span")
PRECISIONS = ("float32", "float32", "mixed_bfloat16", "mixed_float16")
LAW = "stopped or not, a run ends with the same weights"


def run(case):
    """Trains with random flags, and again in another folder with an interruption."""
    flags = draw_run(case)
    case.works(PROGRAM, *as_flags(flags), where="whole")
    folder = case.folder / "whole" / "run"
    saved = training.check_record(case, folder, flags)
    training.check_checkpoints(case, folder, flags, saved)
    check_results(case, folder, flags)
    training.check_opens(case, folder, flags)
    check_again(case, folder, flags)


def draw_run(case):
    """Makes data and draws flags of a run on them; returns dict of flag to value."""
    rng = case.rng
    data = make_data(case)
    segments = rng.choice((2, 6))
    config = training.write_config(case, data["max_seq_length"], segments)
    recipe = training.draw_recipe(case, config, rng.randint(3, 8))
    flags = {
        **recipe,
        **data,
        "do_train": True,
        "do_eval": case.some(0.7),
        "max_eval_steps": rng.randint(1, 4),
        "label_smoothing": rng.choice((0.0, 0.1)),
        "precision": rng.choice(PRECISIONS),
        "initial_loss_scale": rng.choice((2.0**32, 1024.0)),
    }
    if case.some(0.7):
        is_masked, is_packed = "dynamic_masking" not in data, data["pair"] == "packed"
        possible = possible_objectives(config, is_masked, is_packed)
        chosen = rng.sample(possible, rng.randint(1, min(4, len(possible))))
        flags["objectives"] = ",".join(f"{name}:{rng.randint(1, 3)}" for name in chosen)
    return flags


def possible_objectives(config, is_masked, is_packed):
    """Returns the names of the objectives for a model, and for masked or packed examples."""
    sizes = [config[n] for n in ("hidden_size", "num_attention_heads", "intermediate_size")]
    has_room = all(size % REDUCTION == 0 for size in sizes)
    return [
        name
        for name, objective in OBJECTIVES.items()
        if max(objective.segment_ids) < config["type_vocab_size"]
        and not (is_masked and objective.reads == schema.UNMASKED_FEATURES)
        and (objective.has_packed_texts or not is_packed)
        and (has_room or name != "replaced_tokens")  # its generator has a quarter of each size
    ]


def make_data(case):
    """Makes examples of the sample in the folder `data`; returns the flags that read them."""
    rng = case.rng
    documents = rng.sample(corpora.sample(), rng.randint(10, 30))
    text = "\n\n".join("\n".join(document) for document in documents)
    (case.inputs / "text.txt").write_text(text + "\n", encoding="utf-8")
    masking = rng.choice(MASKINGS)
    lengths = {"max_seq_length": rng.randint(8, 64)}
    common = {"vocab_file": corpora.VOCABULARY, "do_lower_case": case.some(0.7)}
    common["pair"] = rng.choice(("nsp", "sop", "none", "packed"))
    settings = {
        **common,
        **lengths,
        "input_file": "../inputs/text.txt",
        "output_file": "train.tfrecord",
        "eval_output_file": "eval.tfrecord",
        "eval_share": 0.2,
        "num_output_shards": rng.randint(1, 3),
        "num_workers": 1,
        "masking": masking,
    }
    if masking == "entity":
        corpora.write_user_dict(case, documents)
        settings["user_dict"] = USER_DICT
    if masking == "none":
        lengths["max_predictions_per_seq"] = rng.randint(1, 12)
        common["dynamic_masking"] = rng.choice(DYNAMIC)
    else:
        lengths["max_predictions_per_seq"] = settings["max_predictions_per_seq"] = rng.randint(
            1, 12
        )
        settings["dupe_factor"] = rng.randint(1, 2)
    case.works("tools/create_pretraining_data.py", *as_flags(settings), where="data")
    files = {"input_file": "../data/train*.tfrecord", "eval_file": "../data/eval*.tfrecord"}
    return {**common, **lengths, **files}


def check_results(case, folder, flags):
    """Checks that the final results are those that were logged at the last step."""
    path = folder / "eval_results.json"
    case.law("with --do_eval there are results", path.exists() == flags["do_eval"])
    if not flags["do_eval"]:
        return
    results = json.loads(path.read_text())
    entries = corpora.read_json_lines(folder / "metrics.jsonl")
    last = next(entry for entry in reversed(entries) if "eval_loss" in entry)
    recorded = {name.removeprefix("eval_"): value for name, value in last.items()}
    recorded["global_step"] = recorded.pop("step")
    same = {name: results.get(name) for name in recorded} == recorded
    case.law("results are those of the last step", same, f"{results}, not {recorded}")
    shares = [value for name, value in results.items() if "accuracy" in name]
    case.law("accuracies are shares", all(0 <= share <= 1 for share in shares), results)


def check_again(case, whole, flags):
    """Runs it in another folder, stops it in some way, and checks that the weights are the same."""
    folder, last = case.folder / "again" / "run", flags["num_train_steps"]
    way = case.rng.choice((None, signal.SIGKILL, signal.SIGTERM, "deleted"))
    if way == "deleted":
        kept = case.rng.choice(training.steps_in(whole))
        later = [step for step in training.steps_in(whole) if step > kept]
        case.shell("mkdir again && cp -r whole/run again/run")
        for step in later:
            case.shell(f"rm again/run/model.ckpt-{step}.*")
    elif way:
        delay = case.rng.random()
        stop = way, when_saved(folder, delay)
        stopped = case.run(PROGRAM, *as_flags(flags), where="again", stop=stop)
        statuses = {signal.SIGKILL: (0, -9), signal.SIGTERM: (0, 75, -15)}[way]
        told = f"{stopped.returncode}: {stopped.stderr}"
        case.law("a signal ends a run as it should", stopped.returncode in statuses, told)
    case.works(PROGRAM, *as_flags(flags), where="again")
    training.check_same_weights(case, whole, folder, last, LAW)
    check_same_record(case, whole, folder, way)


def when_saved(folder, delay):
    """Returns a condition for `Case.run`: some time has passed since the first checkpoint."""
    first = []

    def is_due(seconds):
        if not first and folder.is_dir() and training.steps_in(folder):
            first.append(seconds)
        return bool(first) and seconds >= first[0] + delay

    return is_due


def check_same_record(case, whole, folder, way):
    """Compares the logs of two runs, except for their rates."""
    one, other = (_numbers(path / "metrics.jsonl") for path in (whole, folder))
    if way is signal.SIGTERM:  # a stop may come between two entries, and averages start again
        one, other = ([e for e in entries if "eval_loss" in e] for entries in (one, other))
        other = [entry for entry in other if entry["step"] in {e["step"] for e in one}]
    if way is signal.SIGKILL:
        # If a stop comes during an evaluation, the evaluation is not repeated.
        missing = [entry for entry in one if entry not in other and "eval_loss" in entry]
        one = [entry for entry in one if entry not in missing[:1]]
    differing = [pair for pair in zip(one, other, strict=False) if pair[0] != pair[1]]
    told = f"{len(one)} and {len(other)} entries, {differing[:1]}"
    case.law("stopped or not, a run records the same", one == other, told)


def _numbers(path):
    entries = corpora.read_json_lines(path)
    return [{n: v for n, v in entry.items() if n not in training.RATES} for entry in entries]
