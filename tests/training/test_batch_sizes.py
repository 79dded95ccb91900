"""Batches that grow: their sizes, the examples in them, and runs that go on."""

import contextlib
import io
import json
import math
import os

import laws
import numpy as np
import pytest
import tensorflow as tf
from commands import run_pretraining
from hypothesis import given
from hypothesis import strategies as st
from records import CONFIG_OF_NUMBERS, LIMITS, write_numbers

from nezha_tf.checkpoints.run_folder import read_metrics
from nezha_tf.data.reader import ExampleReader
from nezha_tf.data.schema import Lengths
from nezha_tf.optimization.schedules import SCHEDULES, make_schedule
from nezha_tf.tasks.pretraining.settings import PretrainingSettings
from nezha_tf.tasks.pretraining.task import Pretraining
from nezha_tf.training import recipe
from nezha_tf.training.batch_sizes import BatchSizes, ByExamples
from nezha_tf.training.loop import Feed
from nezha_tf.training.run import run
from nezha_tf.util.errors import UserError


@laws.examples(40)
@given(st.integers(1, 5), st.integers(0, 4), st.integers(1, 60), st.integers(0, 200))
def test_each_size_comes_equally_often_and_fits_the_one_before(initial, doublings, steps, batch):
    size = initial << doublings
    sizes = BatchSizes(size, initial if doublings else None, steps)
    listed = [sizes.of(number).size for number in range(batch + 1)]
    assert listed == sorted(listed) and set(listed) <= {initial << n for n in range(doublings + 1)}
    assert sizes.examples(batch) == sum(listed[:batch])
    grown = next(number for number in range(10**6) if sizes.of(number).size == size)
    if doublings:
        # Each size takes its part of the steps, at most as many more as a batch of the last has.
        part = grown / doublings
        assert part == int(part) and 0 <= part - steps / doublings < 2**doublings
        assert all(sizes.of(int(part) * n).size == initial << n for n in range(doublings))
    else:
        assert grown == 0
    stage = sizes.of(batch)
    first = listed.index(stage.size)
    assert (stage.first, stage.skipped * stage.size) == (first, sum(listed[:first]))
    assert stage.end == (math.inf if stage.size == size else stage.first + part)


@laws.examples(10)
@given(st.sampled_from(sorted(SCHEDULES)), st.integers(1, 3), st.integers(1, 40), st.booleans())
def test_the_rate_follows_the_examples(name, doublings, growth, has_warmup):
    """Each step has the rate that batches of the last size have after as many examples."""
    settings = PretrainingSettings(
        train_batch_size=8,
        initial_batch_size=8 >> doublings,
        batch_growth_steps=growth,
        num_train_steps=growth + 40,
        num_warmup_steps=growth // 2 if has_warmup else 0,
        schedule=name,
        learning_rate=1.0,
        decay_proportion=0.1,
    )
    sizes = BatchSizes(8, 8 >> doublings, growth)
    length, warmup = (
        sum(sizes.of(n).size for n in range(steps)) / 8
        for steps in (settings.num_train_steps, settings.num_warmup_steps)
    )
    plain = SCHEDULES[name].schedule(1.0, length, warmup, **SCHEDULES[name].options(settings))
    assert recipe.course(settings) == (length, warmup)
    rate = ByExamples(make_schedule(settings, length, warmup), sizes)
    examples = 0
    for step in range(settings.num_train_steps):
        assert float(rate(tf.constant(step, tf.int64))) == pytest.approx(
            float(plain(tf.constant(examples / 8))), abs=1e-5
        )
        examples += sizes.of(step).size


@pytest.mark.parametrize("initial", (32, 64, 3, 12, 33))
def test_sizes_that_do_not_come_to_the_last_are_refused(initial):
    with pytest.raises(UserError, match=rf"--initial_batch_size={initial} does not come to "):
        BatchSizes(32, initial, 100)


def test_a_batch_goes_on_where_the_one_before_ended(tmp_path):
    """From any batch on, the examples are those of the run that reads one after the other."""
    paths = write_numbers(tmp_path, 21, 16)
    reader = ExampleReader(paths, Lengths(8, 2), LIMITS)
    one_by_one = iter(reader.training_batches(1, 5))
    numbers = [int(next(one_by_one)["input_ids"][0, 0]) for _ in range(120)]
    sizes = BatchSizes(12, 3, 6)  # 4 batches of 3, 4 of 6, then of 12
    assert [sizes.of(batch).size for batch in (0, 3, 4, 7, 8)] == [3, 3, 6, 6, 12]
    for start in (0, 2, 4, 6, 8, 11):
        feed = Feed(tf.distribute.get_strategy(), reader, sizes, 5)
        found, batches, read = [], feed.batches(start), start
        while len(found) < 30:
            if read == sizes.of(read - 1 if read > start else read).end:
                batches = feed.batches(read)
            batch = next(batches)["input_ids"][:, 0].numpy()
            assert len(batch) == sizes.of(read).size
            found, read = [*found, *batch.tolist()], read + 1
        skipped = sizes.examples(start)
        assert found == numbers[skipped : skipped + len(found)]


def settings_in(folder, **changes):
    (folder / "config.json").write_text(json.dumps(CONFIG_OF_NUMBERS))
    given = {
        "bert_config_file": str(folder / "config.json"),
        "input_file": ",".join(write_numbers(folder, 9, 6)),
        "max_seq_length": 8,
        "max_predictions_per_seq": 2,
        "train_batch_size": 8,
        "initial_batch_size": 2,
        "batch_growth_steps": 6,  # 4 steps of 2, 4 of 4, then of 8
        "num_warmup_steps": 0,
        "num_train_steps": 11,
        "schedule": "constant",
        "steps_per_loop": 3,
        "save_checkpoints_steps": 5,
        "log_steps": 1,
        "keep_checkpoint_max": 9,
        "jit_compile": False,
        "do_train": True,
    }
    return PretrainingSettings(**{**given, **changes})


def weights_in(folder, step):
    reader = tf.train.load_checkpoint(str(folder / f"model.ckpt-{step}"))
    return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The folder of a run that was never stopped."""
    folder = tmp_path_factory.mktemp("whole")
    with contextlib.redirect_stdout(io.StringIO()) as shown:
        run(settings_in(folder, output_dir=str(folder / "run")), Pretraining)
    told = [line for line in shown.getvalue().splitlines() if "examples in a batch" in line]
    assert told == [
        f"step {n}: from here on {size} examples in a batch" for n, size in ((4, 4), (8, 8))
    ]
    return folder / "run"


@pytest.mark.parametrize("stop", (3, 4, 9))
def test_a_run_that_goes_on_has_the_course_of_one_that_was_never_stopped(tmp_path, stop, whole):
    parted = tmp_path / "parted"
    run(settings_in(tmp_path, output_dir=str(parted), num_train_steps=stop), Pretraining)
    run(settings_in(tmp_path, output_dir=str(parted)), Pretraining)
    one, other = weights_in(whole, 11), weights_in(parted, 11)
    assert one.keys() == other.keys()
    for name, value in one.items():
        np.testing.assert_array_equal(value, other[name], name)
    # The rates count the examples that were in the steps; each has 8 tokens.
    for entry in read_metrics(str(whole)):
        assert entry["tokens_per_second"] == pytest.approx(8 * entry["examples_per_second"])


def test_the_length_of_a_part_is_counted_in_examples(tmp_path, capsys):
    one, other = write_numbers(tmp_path, 9, 6)
    parts = f"{one}:3,{other}:1"
    run(settings_in(tmp_path, input_file=parts, output_dir=str(tmp_path / "out")), Pretraining)
    # 4 x 2 + 4 x 4 + 3 x 8 examples, three quarters of them from the first part.
    text = capsys.readouterr().out
    assert "75.0% of the examples, 36 in this run" in text
    assert "25.0% of the examples, 12 in this run" in text


def test_half_of_the_run_is_the_default(tmp_path, capsys):
    changes = {"batch_growth_steps": None, "num_train_steps": 17}
    run(settings_in(tmp_path, output_dir=str(tmp_path / "out"), **changes), Pretraining)
    assert "step 8: from here on 8 examples in a batch" in capsys.readouterr().out


@pytest.mark.processes
def test_mistakes(folder):
    growth = ("--train_batch_size=16", "--initial_batch_size=4")
    by_clock = ("--train_minutes=5", "--num_warmup_steps=10000")  # the default
    mistakes = (
        (["--initial_batch_size=5", "--train_batch_size=16"], "--initial_batch_size=5 does not"),
        (["--batch_growth_steps=5"], "--batch_growth_steps=5 does nothing"),
        ([*growth, *by_clock], "pass --batch_growth_steps"),
        ([*growth, "--gradient_accumulation_steps=8"], "of a replica (--initial_batch_size=4)"),
        (
            [*growth, "--memory_length=8"],
            "--initial_batch_size=4 does nothing with --memory_length",
        ),
    )
    for flags, part in mistakes:
        result = run_pretraining(folder, *flags)
        assert result.returncode == 1 and result.stderr.count("\n") == 1, result.stderr
        assert part in result.stderr
        assert not os.path.exists(folder / "run" / "model.ckpt-1.index")
