"""Making data: random texts and flags, checks of every record, and the same bytes every time."""

import collections
import json
import re

import google_crc32c
import numpy as np

from soak_cases import corpora, packing
from soak_cases.case import after_seconds
from soak_cases.rows import MASK, TOKENS, RowLaws, read_examples

PROGRAM = "tools/create_pretraining_data.py"
USER_DICT = "../inputs/words.txt"
MASKINGS = ("whole_word", "token", "ngram", "span", "entity", "none")
# How the program refuses valid flags on some texts, and what must then be true of the message, the
# flags, the documents, and whether bytes must be refused.
REFUSALS = {
    r"would hold no example: there is no text in its \d+ documents?": lambda *_: True,
    r"would hold no example: there is no text of two words in its \d+ documents?": (
        lambda line, settings, documents, _: settings["pair"] == "sop" and documents
    ),
    r"--num_output_shards=\d+ is more than the \d+ documents? of the corpus": (
        lambda line, settings, documents, _: _are_too_many(line, settings, len(documents))
    ),
    r"no text found; write one sentence per line": lambda line, settings, documents, _: (
        not documents
    ),
    r"--eval_output_file needs a corpus of at least 2 documents": (
        lambda line, settings, documents, _: len(documents) < 2
    ),
    r"line \d+: not UTF-8 at byte \d+ of the line": lambda *arguments: arguments[-1],
}


def run(case):
    """Makes data from a random corpus with random flags, and checks it."""
    settings = draw_settings(case)
    with_no_utf_8 = settings["on_invalid"] != "error" or case.some(0.05)
    input_file = corpora.write_corpus(case, with_no_utf_8)
    paths = list(case.inputs.glob("text-*"))
    documents, is_utf_8 = corpora.read_documents(paths, settings["on_invalid"])
    if "user_dict" in settings:
        corpora.write_user_dict(case, documents)
    flags = [f"--input_file={input_file}", *as_flags(settings)]
    workers = case.rng.sample((1, 2, 3), 2)
    made = case.run(PROGRAM, *flags, f"--num_workers={workers[0]}", where="whole")
    is_refused = settings["on_invalid"] == "error" and not is_utf_8
    if made.returncode or is_refused:
        check_refusal(case, made, settings, documents, is_refused)
        return
    tokens = corpora.Tokens(documents, settings["do_lower_case"])
    sets = {name: read_set(case, name, settings) for name in set_names(settings)}
    check_manifest(case, sets, settings, len(documents), tokens)
    for name, rows in sets.items():
        packing.check_rows(case, name, rows, settings, tokens)
    packing.check_whole(case, sets, settings, tokens)
    check_shares(case, sets, settings)
    checked = case.works(
        "tools/inspect_tfrecords.py", "--input_file=*.tfrecord", "--check", where="whole"
    )
    case.law("the inspector finds no fault", ": no fault" in checked.stdout, checked.stdout)
    case.works(PROGRAM, *flags, f"--num_workers={workers[1]}", where="again")
    check_same(case, "again", "any number of workers gives the same bytes")
    check_kill(case, flags, workers, made.seconds)


def draw_settings(case):
    """Draws flags of the program; returns a dict of name to value, with defaults."""
    rng = case.rng
    settings = {
        "output_file": "train.tfrecord",
        "vocab_file": corpora.VOCABULARY,
        "max_seq_length": rng.choice((rng.randint(5, 16), rng.randint(5, 128))),
        "max_predictions_per_seq": rng.randint(1, 20),
        "masked_lm_prob": rng.choice((0.15, 0.001, round(rng.uniform(0.01, 0.5), 3))),
        "dupe_factor": rng.randint(1, 3),
        "pair": rng.choice(("nsp", "sop", "none")),
        "masking": rng.choice(MASKINGS),
        "segmenter": rng.choice(("jieba", "rjieba")),
        "short_seq_prob": rng.choice((0.1, 0.0, 1.0, round(rng.random(), 2))),
        "random_next_prob": rng.choice((0.5, 0.0, 1.0, round(rng.random(), 2))),
        "num_output_shards": rng.choice((0, 0, 1, 2, 3, 5)),
        "do_lower_case": case.some(0.7),
        "on_invalid": rng.choice(("error", "error", "replace", "skip")),
        "random_seed": rng.choice((0, 12345, rng.randrange(2**31))),
    }
    if settings["masking"] == "none":
        settings |= {"max_predictions_per_seq": 20, "masked_lm_prob": 0.15, "dupe_factor": 1}
    if settings["masking"] == "token":
        settings["segmenter"] = "jieba"
    if settings["pair"] == "none":
        settings |= {"short_seq_prob": 0.1, "random_next_prob": 0.5}
    with_words = settings["masking"] != "token" and case.some(0.2)
    if settings["masking"] == "entity" or with_words:
        settings["user_dict"] = USER_DICT
    if case.some(0.4):
        settings["eval_output_file"] = "eval.tfrecord"
        settings["eval_share"] = rng.choice((0.05, 0.5, round(rng.random(), 2)))
    return settings


def as_flags(settings):
    """Returns the settings as flags of a command."""
    return [f"--{name}={value}" for name, value in settings.items()]


def set_names(settings):
    names = [settings["output_file"], settings.get("eval_output_file")]
    return list(filter(None, names))


def check_refusal(case, made, settings, documents, is_refused):
    """Checks a run that ended with an error, or that should have, and its message."""
    lines = made.stderr.strip().splitlines()
    case.require(
        "bad bytes are refused", made.returncode == 1, f"status {made.returncode}: {lines}"
    )
    case.require("a refusal is one line", len(lines) == 1, made.stderr)
    known = [pattern for pattern in REFUSALS if re.search(pattern, lines[0])]
    case.require("only what is told of is refused", known, lines[0])
    has_reason = REFUSALS[known[0]](lines[0], settings, documents, is_refused)
    case.law("a refusal has its reason", has_reason, lines[0])
    left = [path.name for path in (case.folder / "whole").iterdir() if path.suffix == ".tmp"]
    case.law("a refusal leaves nothing half-written", not left, left)


def _are_too_many(line, settings, num_documents):
    """Whether there are more shards than documents; some documents may be held out."""
    told = int(re.search(r"the (\d+) documents?", line)[1])
    is_right = told < num_documents if "eval_share" in settings else told == num_documents
    return is_right and settings["num_output_shards"] > told


def files_of(case, name):
    """Returns the TFRecord files of a set in order."""
    stem = name.removesuffix(".tfrecord")
    return sorted((case.folder / "whole").glob(f"{stem}*.tfrecord"))


def read_set(case, name, settings):
    """Returns the `Row`s of a set, file by file; damaged ones are left out."""
    laws, rows = RowLaws(case, settings), []
    for path in files_of(case, name):
        found = enumerate(read_examples(path), start=1)
        rows.append([laws.row(example, f"{path.name}, record {n}") for n, example in found])
        case.require("every record is an example", all(rows[-1]), path.name)
    return rows


def check_manifest(case, sets, settings, num_documents, tokens):
    """Checks the manifest against the files and the corpus."""
    text = (case.folder / "whole" / "manifest.json").read_text(encoding="utf-8")
    entries = json.loads(text)["data_sets"]
    case.require("the manifest names the sets", set(entries) == set(sets), set(entries))
    for name, rows in sets.items():
        entry, statistics = entries[name], entries[name]["statistics"]
        shards = [(shard["file"], shard["records"], shard["crc32c"]) for shard in entry["shards"]]
        found = [
            (path.name, len(of_file), f"{google_crc32c.value(path.read_bytes()):08x}")
            for path, of_file in zip(files_of(case, name), rows, strict=True)
        ]
        case.law("the manifest knows the files", shards == found, f"{shards} and {found}")
        counted = _counted([row for of_file in rows for row in of_file])
        told = {key: statistics[key] for key in counted}
        case.law("the manifest counts right", told == counted, f"{told} and {counted}")
        case.law("the vocabulary is counted", entry["vocab_size"] == len(TOKENS), entry)
    if settings["num_output_shards"]:
        wanted = settings["num_output_shards"]
        case.law("there are as many shards as wanted", len(sets["train.tfrecord"]) == wanted)
    sums = collections.Counter()
    for entry in entries.values():
        for key in ("documents", "sentences", "characters", "text_tokens"):
            sums[key] += entry["statistics"][key]
        sums["all documents"] += entry["totals"]["documents"]
    text = tokens.text.replace(corpora.BORDER, "")
    wanted = {
        "documents": tokens.documents,
        "sentences": tokens.sentences,
        "characters": tokens.characters,
        "text_tokens": len(text),
        "all documents": num_documents,
    }
    case.law("the text is counted", dict(sums) == wanted, f"{dict(sums)}, not {wanted}")


def _counted(rows):
    found = np.concatenate([row.found for row in rows])
    labels = np.concatenate([row.labels for row in rows])
    masked = int((found == MASK).sum())
    kept = int((found == labels).sum())
    return {
        "instances": len(rows),
        "label_1": sum(row.label for row in rows),
        "tokens": sum(len(segment) for row in rows for segment in row.segments),
        "length": sum(len(row.ids) for row in rows),
        "masked": masked,
        "kept": kept,
        "replaced": len(found) - masked - kept,
    }


def check_shares(case, sets, settings):
    """80 % of predictions are masked and 10 % kept, within six standard deviations."""
    if settings["masking"] in (
        "span",
        "none",
    ):  # these draw for several tokens at once, or not at all
        return
    counted = _counted([row for rows in sets.values() for of_file in rows for row in of_file])
    total = counted["masked"] + counted["kept"] + counted["replaced"]
    for name, share in (("masked", 0.8), ("kept", 0.1)):
        deviation = (share * (1 - share) * total) ** 0.5
        near = abs(counted[name] - share * total) <= 6 * deviation + 1
        case.law("8 of 10 are masked, 1 is kept", near, counted)


def check_same(case, where, law):
    """Checks that a folder has the files of the first run, byte for byte, and no others."""
    one, other = (_contents(case.folder / name) for name in ("whole", where))
    differing = [name for name in one.keys() | other.keys() if one.get(name) != other.get(name)]
    case.law(law, not differing, f"{where}: {sorted(differing)}")


def _contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def check_kill(case, flags, workers, seconds):
    """Kills the program once or twice, lets it continue, and checks that the bytes are the same."""
    for _ in range(case.rng.randint(1, 2)):
        moment = case.rng.random() * seconds
        workers_now = f"--num_workers={case.rng.choice(workers)}"
        case.run(PROGRAM, *flags, workers_now, where="killed", stop=after_seconds(moment))
    case.works(PROGRAM, *flags, f"--num_workers={workers[0]}", where="killed")
    check_same(case, "killed", "after kill -9 the same command gives the same bytes")
