"""The memory of earlier tokens: chunks against one long pass, resumed runs, and what is refused."""

import json
import shutil

import commands
import keras
import numpy as np
import pytest
import tensorflow as tf
from commands import assert_one_line, create_data
from records import encode_values, write
from small_encoders import narrow_config

from nezha_tf.data import schema
from nezha_tf.data.stream_reader import StreamReader
from nezha_tf.modeling import attention_mask
from nezha_tf.modeling.encoder import with_memory
from nezha_tf.modeling.pretraining import NezhaForPermutationLM
from nezha_tf.objectives.objective import ExampleSettings
from nezha_tf.objectives.table import OBJECTIVES
from nezha_tf.objectives.terms import MASKED_LM, TokenLoss
from nezha_tf.training.evaluation import Evaluation
from nezha_tf.training.memory import Memory

ENCODINGS = ("functional_relative", "learned_relative", "rotary")
CHUNK, CHUNKS, LAYERS, WIDTH = 6, 4, 3, 8
WHOLE = CHUNK * CHUNKS


def model_of(encoding):
    keras.utils.set_random_seed(0)
    config = narrow_config(encoding, max_relative_position=9)
    return NezhaForPermutationLM(config)


def random_tokens(rows=2):
    ids = np.random.default_rng(0).integers(5, 40, (rows, WHOLE))
    return {
        "input_ids": tf.constant(ids, tf.int32),
        "input_mask": tf.ones(ids.shape, tf.int32),
        "segment_ids": tf.zeros(ids.shape, tf.int32),
    }


def chunks_of(batch):
    for start in range(0, WHOLE, CHUNK):
        yield {name: values[:, start : start + CHUNK] for name, values in batch.items()}


def empty_memory(length, rows=2):
    states = tf.zeros((rows, LAYERS, length, WIDTH))
    return {"memory": states, "memory_mask": tf.zeros((rows, length), tf.int32)}


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_chunks_with_a_memory_are_one_long_pass(encoding):
    """With a memory that covers all; a shorter one gives the same only for the first chunks."""
    encoder, tokens = model_of(encoding).encoder, random_tokens()
    mask = attention_mask.left_to_right(tokens["input_mask"])
    whole = encoder({**tokens, "attention_mask": mask})["sequence_output"]
    for length, equal_chunks in ((WHOLE, CHUNKS), (CHUNK, 2)):
        memory = empty_memory(length)
        for number, chunk in enumerate(chunks_of(tokens)):
            mask = attention_mask.left_to_right(chunk["input_mask"])
            inputs = {**chunk, "attention_mask": mask, **memory}
            outputs = encoder(inputs, all_outputs=True)
            memory = with_memory(inputs, outputs)
            expected = whole[:, number * CHUNK : (number + 1) * CHUNK]
            difference = np.abs(outputs["sequence_output"] - expected).max()
            assert difference < 1e-5 if number < equal_chunks else difference > 1e-3


def test_predictions_of_both_streams_with_a_memory_are_those_of_one_long_pass():
    """For permutations of each chunk, and a later chunk ranks above an earlier one."""
    model, tokens = model_of("functional_relative"), random_tokens()
    rng = np.random.default_rng(1)
    # The first token of a chunk ranks lowest, so that each prediction sees a token at least.
    orders = [[0, *(1 + rng.permutation(CHUNK - 1))] for _ in range(2 * CHUNKS)]
    ranks = np.reshape(orders, (2, WHOLE))
    places = np.tile([1, 4], (2, CHUNKS)) + np.repeat(np.arange(CHUNKS) * CHUNK, 2)
    offsets = np.repeat(np.arange(CHUNKS) * CHUNK, CHUNK)
    loss = TokenLoss(lambda batch: batch["ranks"], (MASKED_LM,), has_query_stream=True)
    whole = {
        **tokens,
        "ranks": tf.constant(ranks + offsets, tf.int32),
        "masked_lm_positions": tf.constant(places, tf.int32),
    }
    expected = model(loss.inputs(whole))["masked_lm_logits"]
    memory = empty_memory(WHOLE)
    for number, chunk in enumerate(chunks_of({**tokens, "ranks": tf.constant(ranks, tf.int32)})):
        chunk["masked_lm_positions"] = tf.constant([[1, 4]] * 2, tf.int32)
        inputs = loss.inputs({**chunk, **memory})
        outputs = model(inputs, all_outputs=True)
        memory = with_memory(inputs, outputs)
        found = outputs["masked_lm_logits"]
        np.testing.assert_allclose(found, expected[:, 2 * number : 2 * number + 2], atol=2e-5)


def test_no_gradient_flows_into_the_memory():
    encoder, chunk = model_of("rotary").encoder, next(chunks_of(random_tokens()))
    states = tf.random.stateless_normal((2, LAYERS, 4, WIDTH), (1, 2))
    memory = {"memory": states, "memory_mask": tf.ones((2, 4), tf.int32)}
    with tf.GradientTape() as tape:
        tape.watch(states)
        total = tf.reduce_sum(encoder({**chunk, **memory})["sequence_output"] ** 2)
    assert tape.gradient(total, states) is None


def test_an_evaluation_in_chunks_has_the_loss_of_one_long_pass(tmp_path):
    """Through reader, memory and compiled step; a second evaluation begins anew."""
    tokens = random_tokens(1)["input_ids"][0].numpy().tolist()
    records = [
        {
            "input_ids": tokens[start : start + CHUNK],
            "input_mask": [1] * CHUNK,
            "segment_ids": [0] * CHUNK,
            "word_starts": [0] * CHUNK,
            "next_sentence_labels": [0],
        }
        for start in range(0, WHOLE, CHUNK)
    ]
    encoded = [encode_values(values, schema.UNMASKED_FEATURES) for values in records]
    path, lengths = write(tmp_path / "text.tfrecord", encoded), schema.Lengths(CHUNK, 1)
    objective, model = OBJECTIVES["causal"], model_of("functional_relative")
    reader = StreamReader(
        [path],
        lengths,
        schema.Limits(40, 2),
        features=schema.UNMASKED_FEATURES,
        transforms=objective.transforms(ExampleSettings(lengths)),
    )
    strategy = tf.distribute.get_strategy()
    memory = Memory(strategy, model, 1, WHOLE)
    loss = objective.loss(of_pairs=False)
    evaluate = Evaluation(strategy, model, loss, reader, 1, 99, str(tmp_path), True, memory)
    first, second = evaluate(), evaluate()
    whole = {**random_tokens(1), "segment_ids": tf.fill((1, WHOLE), 2)}
    # The last token of a record predicts nothing.
    weights = np.tile([1.0] * (CHUNK - 1) + [0.0], (1, CHUNKS))
    whole["next_token_weights"] = tf.constant(weights, tf.float32)
    mean = loss.losses(model(loss.inputs(whole), all_outputs=True), whole)["next_token_loss"]
    expected = float(mean.sum / mean.weight)
    assert abs(first["next_token_loss"] - expected) < 1e-5 and first == second


@pytest.fixture(scope="module")
def stream(tmp_path_factory):
    """A folder with a configuration, and examples in the order of the text."""
    folder = tmp_path_factory.mktemp("stream")
    config = {**commands.CONFIG, "type_vocab_size": 6}
    (folder / "config.json").write_text(json.dumps(config))
    arguments = ("--masking=none", "--pair=stream", "--max_predictions_per_seq=20")
    result = create_data(folder, *arguments, "--eval_output_file=eval.tfrecord")
    assert result.returncode == 0, result.stderr
    return folder


def run_pretraining(folder, *changes):
    with_memory = ("--objectives=causal", "--memory_length=24", *changes)
    return commands.run_pretraining(folder, *with_memory)


def weights_of(folder, step):
    reader = tf.train.load_checkpoint(str(folder / f"model.ckpt-{step}"))
    return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}


def test_a_resumed_run_remembers(stream):
    """A run that goes on from its second step has the same weights and memory, bit for bit."""
    arguments = ("--num_train_steps=4", "--save_checkpoints_steps=2")
    whole = run_pretraining(stream, *arguments, "--output_dir=whole")
    assert whole.returncode == 0, whole.stderr
    (stream / "parts").mkdir()
    for path in (stream / "whole").glob("model.ckpt-2*"):
        shutil.copy(path, stream / "parts")
    resumed = run_pretraining(stream, *arguments, "--output_dir=parts")
    assert resumed.returncode == 0 and "continuing from" in resumed.stdout, resumed.stderr
    whole, parts = (weights_of(stream / name, 4) for name in ("whole", "parts"))
    assert whole["nezha_tf/memory"].shape == (4, 1, 24, 16)
    assert whole["nezha_tf/memory"].any() and set(whole) == set(parts)
    for name, values in whole.items():
        np.testing.assert_array_equal(values, parts[name], name)
    refused = run_pretraining(stream, *arguments, "--output_dir=parts", "--train_batch_size=2")
    assert_one_line(refused, "nezha_tf/memory has shape [4, 1, 24, 16]", "flags")
    evaluated = run_pretraining(
        stream,
        "--output_dir=whole",
        "--nodo_train",
        "--do_eval",
        "--eval_file=eval.tfrecord",
        "--eval_batch_size=2",
        "--eval_memory_length=96",
    )
    assert evaluated.returncode == 0, evaluated.stderr
    assert "next_token_perplexity" in evaluated.stdout


def test_each_part_of_an_evaluation_begins_without_a_memory(stream):
    """Its results are those of the part alone, whatever was read before it."""
    flags = ("--do_eval", "--eval_batch_size=2", "--max_eval_steps=2", "--save_checkpoints_steps=2")
    first = ("--do_eval", "--eval_file=eval.tfrecord", "--num_train_steps=2")
    results = {}
    for files in ("eval.tfrecord", "train.tfrecord", "train.tfrecord:1,eval.tfrecord:1"):
        changes = (*first, *flags, "--output_dir=of_parts", f"--eval_file={files}")
        ended = run_pretraining(stream, *changes, *(("--nodo_train",) if results else ()))
        assert ended.returncode == 0, ended.stderr
        results[files] = json.loads((stream / "of_parts" / "eval_results.json").read_text())
    *alone, both = results.values()
    assert alone[0]["loss"] != alone[1]["loss"]
    for part, expected in zip(("eval", "train"), alone, strict=True):
        assert both[f"loss/{part}"] == pytest.approx(expected["loss"], rel=1e-6)


@pytest.mark.parametrize(
    "changes, parts",
    [
        (("--objectives=bidirectional",), ("--memory_length=24", "causal or permutation alone")),
        (("--objectives=causal,permutation",), ("--memory_length=24", "alone")),
        (("--gradient_accumulation_steps=2",), ("--gradient_accumulation_steps=2",)),
        (("--skip_corrupt_records=1",), ("--skip_corrupt_records=1",)),
        (("--adversarial_epsilon=0.5",), ("--adversarial_epsilon=0.5",)),
        (("--train_batch_size=4000",), ("cannot fill 4000 streams",)),
        (("--bert_config_file=absolute.json",), ("relative positions", "absolute.json")),
    ],
)
def test_what_a_memory_does_not_go_with(stream, changes, parts):
    config = {**commands.CONFIG, "type_vocab_size": 6, "use_relative_position": False}
    (stream / "absolute.json").write_text(json.dumps(config))
    arguments = ("--output_dir=refused", "--num_train_steps=2", *changes)
    assert_one_line(run_pretraining(stream, *arguments), *parts)


def test_the_order_of_the_text_is_asked_for(prepared, stream):
    arguments = ("--num_train_steps=2", f"--bert_config_file={stream / 'config.json'}")
    result = run_pretraining(prepared, *arguments, "--output_dir=shuffled")
    assert_one_line(result, "--memory_length=24", "--pair=nsp", "--pair=stream")
