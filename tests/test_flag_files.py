"""The flag files of configs/: their programs accept them, and the files they name fit together."""

import dataclasses
import fnmatch
import math
import re

import pytest
from commands import flags_of
from conftest import REPOSITORY, RESOURCES
from examples_programs import program

from nezha_tf import FullTokenizer, NezhaConfig
from nezha_tf.corpus.shard_files import shard_names
from nezha_tf.data.schema import UNMASKED_FEATURES
from nezha_tf.objectives.table import OBJECTIVES
from nezha_tf.tasks.classification.data_sets import DATA_SETS
from nezha_tf.tasks.pretraining.settings import PretrainingSettings
from nezha_tf.tasks.prompting.pattern import Pattern, label_tokens
from nezha_tf.tasks.seq2seq.settings import Seq2SeqSettings
from nezha_tf.training import recipe

FLAG_FILES = sorted(path.name for path in (REPOSITORY / "configs").glob("*.flags"))
PATH_FLAGS = ("bert_config_file", "input_file", "eval_file", "vocab_file", "init_checkpoint")


CLUE_TASKS = program("clue").TASKS
PROMPTED = ("bustm", "csl", "ocnli", "tnews", "wsc")
PROGRAMS = {
    "question_generation": "run_seq2seq.py",
    "translation": "run_seq2seq.py",
    "understanding": "run_classifier.py",  # and the flag files that include it
    "sentiment": "run_classifier.py",
    "ocnli": "run_classifier.py",
    "people_daily_ner": "run_ner.py",
    "cmrc2018": "run_mrc.py",
    "clue": "run_classifier.py",
    **{f"prompt_{name}": "run_classifier.py" for name in PROMPTED},
    **{f"clue_{task.name}": task.program for task in CLUE_TASKS},
}


# The objectives that make their examples of text that is not masked, and their runs on the sample.
OF_UNMASKED = [name for name, each in OBJECTIVES.items() if each.reads == UNMASKED_FEATURES]
RUNS_OF_UNMASKED = [f"sample_{name}.flags" for name in OF_UNMASKED]
# Data flag files whose examples others read than the flag file of the same name.
READERS = {
    "sample_unmasked_data.flags": RUNS_OF_UNMASKED,
    "budget_data.flags": [f"budget_{name}.flags" for name in ("hour", "day", "gpu_day", "gpus")],
    "mini_data.flags": [],  # its outputs are named by examples/mini.sh
}


def program_of(name):
    if name.endswith("_data.flags"):
        return "tools/create_pretraining_data.py"
    return PROGRAMS.get(name.removesuffix(".flags"), "run_pretraining.py")


# Of the programs whose flag files say the number of steps.
SETTINGS = {"run_pretraining.py": PretrainingSettings, "run_seq2seq.py": Seq2SeqSettings}


def settings_with(settings_class, flags):
    names = {field.name for field in dataclasses.fields(settings_class)} & set(flags)
    return settings_class(**{name: flags[name] for name in names})


def files_of(program):
    return [name for name in FLAG_FILES if program_of(name) == program]


@pytest.fixture(scope="module")
def values():
    """Returns a function from the name of a flag file to a dict of all flags of its program."""
    found = {}

    def read(name):
        if name not in found:
            found[name] = flags_of(program_of(name), f"--flagfile=configs/{name}")
        return found[name]

    return read


@pytest.mark.parametrize("name", FLAG_FILES)
def test_its_program_takes_every_flag(name, values):
    flags = values(name)
    if "do_train" in flags:
        if flags["num_train_steps"]:  # otherwise the data decides
            recipe.check(settings_with(SETTINGS[program_of(name)], flags))
        # These are for a model whose files are given.
        is_for_any = name.startswith(("clue", "prompt", "continued"))
        assert flags["do_train"] and (flags["bert_config_file"] or is_for_any)


@pytest.mark.parametrize("name", FLAG_FILES)
def test_files_of_the_repository_are_there(name, values):
    flags = values(name)
    paths = [flags[flag] for flag in PATH_FLAGS if flags.get(flag)]
    # Files in out/ are made by another command.
    for path in (path for path in paths if not path.startswith("out/")):
        assert (REPOSITORY / path).is_file(), path


@pytest.mark.parametrize(
    "name, reader",
    [
        (name, reader)
        for name in files_of("tools/create_pretraining_data.py")
        for reader in READERS.get(name, (name.replace("_data", ""),))
    ],
)
def test_the_run_reads_what_its_data_flags_make(name, reader, values):
    made, run = values(name), values(reader)
    for read, written in (("input_file", "output_file"), ("eval_file", "eval_output_file")):
        for count in (1, 4) if "*" in run[read] else (1,):
            for path in shard_names(made[written], count):
                assert fnmatch.fnmatch(path, run[read]), path
    config = NezhaConfig.from_json_file(REPOSITORY / run["bert_config_file"])
    assert made["max_predictions_per_seq"] < made["max_seq_length"]
    assert made["max_seq_length"] <= config.max_position_embeddings


@pytest.mark.parametrize("name, length", (("mini.flags", 128), ("mini_512.flags", 512)))
def test_the_runs_of_mini_read_what_its_script_makes(name, length, values):
    script, run = (REPOSITORY / "examples" / "mini.sh").read_text(encoding="utf-8"), values(name)
    for read, written in (("input_file", "output_file"), ("eval_file", "eval_output_file")):
        [made] = re.findall(rf"--{written}=(\S+)", script)
        patterns = [part.rpartition(":")[0] for part in run[read].split(",")]
        for part in ("modern", "books"):
            path = made.replace("$out", "out/mini").replace("${part}", part)
            for shard in shard_names(path.replace("$length", str(length)), 4):
                assert sum(fnmatch.fnmatch(shard, pattern) for pattern in patterns) == 1, shard


@pytest.mark.parametrize("name", files_of("run_pretraining.py"))
def test_what_the_records_beside_the_examples_tell_is_not_said_again(name, values):
    told = ["max_seq_length", "pair", "do_lower_case"]
    if not values(name)["dynamic_masking"]:  # otherwise the run decides how many
        told.append("max_predictions_per_seq")
    for flag in told:
        assert values(name)[flag] is None, flag


@pytest.mark.parametrize("name", files_of("run_seq2seq.py"))
def test_the_model_takes_the_pairs(name, values):
    flags = values(name)
    config = NezhaConfig.from_json_file(REPOSITORY / flags["bert_config_file"])
    length = flags["max_source_length"] + flags["max_target_length"]
    assert length <= config.max_position_embeddings and config.type_vocab_size == 6


@pytest.mark.parametrize("objective", OF_UNMASKED)
def test_an_objective_of_unmasked_text_has_a_run_on_the_sample(objective, values):
    run = values(f"sample_{objective}.flags")
    assert run["objectives"] == objective and objective in run["output_dir"]
    config = NezhaConfig.from_json_file(REPOSITORY / run["bert_config_file"])
    assert max(OBJECTIVES[objective].segment_ids) < config.type_vocab_size


def test_phase_2_goes_on_where_phase_1_ends(values):
    first, second = values("large_batch_phase1.flags"), values("large_batch_phase2.flags")
    end = f"{first['output_dir']}/model.ckpt-{first['num_train_steps']}"
    assert second["init_checkpoint"] == end
    assert second["bert_config_file"] == first["bert_config_file"]
    assert second["output_dir"] != first["output_dir"]


def test_the_large_batch_recipe_is_the_published_one(values):
    first, second = values("large_batch_phase1.flags"), values("large_batch_phase2.flags")
    # The square-root rule from batch size 512 on, and a warmup that grows with the batch size.
    batch = first["train_batch_size"]
    assert batch == second["train_batch_size"] == 32_768
    assert first["learning_rate"] == pytest.approx(5 / (2**3 * 1000) * math.sqrt(batch / 512))
    assert first["num_train_steps"] == math.ceil(0.9 * 512_000_000 / batch)
    assert recipe.warmup_steps(settings_with(PretrainingSettings, first)) == pytest.approx(
        512_000_000 / batch / 5, abs=1
    )
    assert (second["learning_rate"], second["num_train_steps"]) == (4e-3, 1563)
    assert recipe.warmup_steps(settings_with(PretrainingSettings, second)) == 200
    for flags in (first, second):
        micro_batch, rest = divmod(batch, 64 * flags["gradient_accumulation_steps"])
        assert micro_batch > 0 and rest == 0
        assert flags["eval_batch_size"] % 64 == 0


@pytest.mark.parametrize("name", PROMPTED)
def test_the_words_fit_the_pattern(name, values):
    """With the bundled vocabulary, for the classes of the data set."""
    flags, data_set = values(f"prompt_{name}.flags"), DATA_SETS[name]
    tokenizer = FullTokenizer(RESOURCES / "vocab.txt")
    is_pair = data_set.is_pair
    pattern = Pattern(flags["pattern"], tokenizer, flags["max_seq_length"], is_pair)
    assert label_tokens(data_set.labels, flags["label_words"], tokenizer, pattern.num_blanks)
