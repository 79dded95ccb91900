"""The summaries of runs, read with TensorBoard where it is installed."""

import functools

import numpy as np
import pytest
import tensorflow as tf
import toy_task
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, struct_pb2
from toy_finetuning import settings_in
from toy_task import ToyTask

from nezha_tf.checkpoints.run_folder import read_metrics
from nezha_tf.tasks.finetuning import sweep
from nezha_tf.training.model_card import changed_flags
from nezha_tf.training.summaries import Summaries, session_start

FLAGS = {
    "rate": 3e-5,
    "steps": 7,
    "on": True,
    "off": False,
    "name": "词" * 99,
    "labels": ("a,b", "c"),
}


@functools.cache
def session_class():
    """Returns a class for `HParamsPluginData` with a `SessionStartInfo`, as TensorBoard has it."""
    file = descriptor_pb2.FileDescriptorProto(
        name="plugin_data.proto", package="tensorboard.hparams"
    )
    file.syntax = "proto3"
    file.dependency.append("google/protobuf/struct.proto")
    field = descriptor_pb2.FieldDescriptorProto
    start = file.message_type.add(name="SessionStartInfo")
    entry = start.nested_type.add(name="HparamsEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, type=field.TYPE_STRING, label=1)
    entry.field.add(
        name="value", number=2, type=field.TYPE_MESSAGE, label=1, type_name=".google.protobuf.Value"
    )
    own = ".tensorboard.hparams.SessionStartInfo"
    start.field.add(
        name="hparams", number=1, type=field.TYPE_MESSAGE, label=3, type_name=f"{own}.HparamsEntry"
    )
    data = file.message_type.add(name="HParamsPluginData")
    data.field.add(
        name="session_start_info", number=3, type=field.TYPE_MESSAGE, label=1, type_name=own
    )
    pool = descriptor_pool.DescriptorPool()
    struct = descriptor_pb2.FileDescriptorProto()
    struct_pb2.DESCRIPTOR.CopyToProto(struct)
    pool.Add(struct)
    pool.Add(file)
    name = "tensorboard.hparams.HParamsPluginData"
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(name))


def plain(value):
    """Returns what a `google.protobuf.Value` holds."""
    return getattr(value, value.WhichOneof("kind"))


@pytest.mark.parametrize("count", (0, 1, 3, 6))
def test_the_flags_of_a_session_are_as_tensorboard_reads_them(count):
    flags = dict(list(FLAGS.items())[:count])
    found = session_class().FromString(session_start(flags)).session_start_info.hparams
    texts = {"labels": '"a,b",c'}
    assert {name: plain(value) for name, value in found.items()} == {
        name: texts.get(name, value) for name, value in flags.items()
    }


def test_a_run_that_is_told_nothing_writes_no_file(tmp_path):
    record = Summaries([])
    record.start(str(tmp_path), FLAGS, 4)
    record.end({}, None)
    assert not list(tmp_path.iterdir())


def events_in(folder):
    """Returns [(tag, step, summary)] of the files in a folder."""
    return [
        (value.tag, event.step, value)
        for path in sorted(folder.iterdir())
        for record in tf.data.TFRecordDataset(str(path))
        for event in [tf.compat.v1.Event.FromString(record.numpy())]
        for value in event.summary.value
    ]


@pytest.mark.parametrize("error, ends", ((None, 1), (ValueError(), 0)))
def test_a_session_ends_where_the_run_succeeds(tmp_path, error, ends):
    record = Summaries(["--rate=3e-05", "--on=true"])
    record.start(str(tmp_path), FLAGS, 4)
    record.scalars(5, {"loss": 2.5})
    record.scalars(6, {"loss": 1.5, "eval_f1": 0.5})
    record.end({}, error)
    events = events_in(tmp_path / "summaries")
    assert [(tag, step) for tag, step, _ in events] == [
        ("flags", 4),
        ("_hparams_/session_start_info", 4),
        ("loss", 5),
        ("loss", 6),
        ("eval_f1", 6),
        *[("_hparams_/session_end_info", 4)] * ends,
    ]
    text = tf.make_ndarray(events[0][2].tensor).item().decode()
    assert text == "    --rate=3e-05\n    --on=true\n"


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    folder = tmp_path_factory.mktemp("summaries")
    toy_task.write_files(folder)
    rates = {"learning_rate": ("0.01", "0.02"), "num_train_epochs": 1.0, "log_steps": 1}
    settings = settings_in(folder, folder / "out", do_predict=False, **rates)
    sweep.run(settings, ToyTask)
    return settings, folder / "out"


def members(out):
    return {rate: out / f"lr_{rate}" / "seed_12345" for rate in (0.01, 0.02)}


def test_tensorboard_shows_scalars_and_changed_flags(swept):
    accumulators = pytest.importorskip(
        "tensorboard.backend.event_processing.event_accumulator", reason="pip install tensorboard"
    )
    settings, out = swept
    for rate, folder in members(out).items():
        events = accumulators.EventAccumulator(
            str(folder / "summaries"), size_guidance={"tensors": 0}
        )
        events.Reload()
        for entry in read_metrics(str(folder)):
            step = entry.pop("step")
            for name, value in entry.items():
                found = {e.step: tf.make_ndarray(e.tensor_proto) for e in events.Tensors(name)}
                np.testing.assert_allclose(found[step], value, rtol=1e-6)
        (text,) = events.Tensors("flags")
        lines = tf.make_ndarray(text.tensor_proto).item().decode().splitlines()
        assert f"    --learning_rate={rate}" in lines and "    --do_eval=true" in lines
        assert len(lines) >= len(changed_flags(settings)) - 1  # one seed needs no --num_seeds
        assert events.summary_metadata["flags"].plugin_data.plugin_name == "text"


def test_tensorboard_shows_the_runs_of_a_sweep_side_by_side(swept):
    reason = "pip install tensorboard"
    pytest.importorskip("tensorboard.plugins.hparams.api_pb2", reason=reason)
    from tensorboard import context
    from tensorboard.backend.event_processing import data_provider, plugin_event_multiplexer
    from tensorboard.plugins import base_plugin
    from tensorboard.plugins.hparams import api_pb2, backend_context, list_session_groups

    _, out = swept
    events = plugin_event_multiplexer.EventMultiplexer().AddRunsFromDirectory(str(out))
    events.Reload()
    provider = data_provider.MultiplexerDataProvider(events, str(out))
    own = backend_context.Context(base_plugin.TBContext(data_provider=provider))
    asked = context.RequestContext()
    metadata = own.hparams_metadata(asked, "")
    experiment = own.experiment_from_metadata(asked, "", True, metadata, None)
    assert [info.name for info in experiment.hparam_infos if info.differs] == ["learning_rate"]
    metrics = [info.name.tag for info in experiment.metric_infos]
    assert {"eval_accuracy", "eval_loss"} <= set(metrics)
    request = api_pb2.ListSessionGroupsRequest(
        slice_size=9, allowed_statuses=[api_pb2.STATUS_SUCCESS], include_metrics=True
    )
    request.col_params.add(metric=api_pb2.MetricName(tag="eval_accuracy"))
    groups = list_session_groups.Handler(asked, own, "", request).run().session_groups
    assert len(groups) == 2
    for group in groups:
        rate = group.hparams["learning_rate"].number_value
        last = [e for e in read_metrics(str(members(out)[rate])) if "eval_accuracy" in e][-1]
        (accuracy,) = (m.value for m in group.metric_values if m.name.tag == "eval_accuracy")
        np.testing.assert_allclose(accuracy, last["eval_accuracy"], rtol=1e-6)
