"""The devices of a run: one device, several GPUs, several machines, or a TPU."""

import contextlib
import ctypes
import json
import os
import sys

import tensorflow as tf

from nezha_tf.modeling.compiled_parts import compiled_parts
from nezha_tf.util.errors import UserError, first_line, install_command

# The errors of a sum over all workers, or of a heartbeat, that another worker did not answer.
CAUSES = (
    tf.errors.UnavailableError,
    tf.errors.AbortedError,
    tf.errors.DeadlineExceededError,
    tf.errors.CancelledError,
    tf.errors.FailedPreconditionError,
    tf.errors.InternalError,
)
# A file of NVIDIA's driver on Linux.
NVIDIA_DRIVER = "/proc/driver/nvidia/version"
# Distance between the dropout seeds of two replicas: more than one replica can ever draw.
_SEED_STRIDE = 0x1000003


def make_strategy(name, num_gpus=None, tpu=None):
    """Sets up the devices; call it before anything else uses them.

    Args:
      name: "default" (TensorFlow's own choice of one device), "one_device" (the first GPU, or
        the CPU), "mirrored" (all GPUs of this machine, or all its logical CPUs),
        "multi_worker" (the cluster of the environment variable TF_CONFIG) or "tpu".
      num_gpus: how many GPUs of this machine to use; None for all.
      tpu: name or address of the TPU, for "tpu"; "local": the TPU of this machine.

    Returns:
      A `tf.distribute.Strategy`.

    Raises:
      UserError: there are fewer GPUs, there is no such TPU, TF_CONFIG is invalid, or the strategy
        does not use what was given.
    """
    if num_gpus is not None:
        _show_gpus(num_gpus)
    if (num_gpus or 0) > 1 and name in ("default", "one_device"):
        raise UserError(
            f"--num_gpus={num_gpus} needs --distribution_strategy=mirrored: {name} is one device"
        )
    if name == "multi_worker":
        return _multi_worker()
    if name == "tpu":
        return _tpu(tpu)
    if name == "mirrored":
        devices = tf.config.list_logical_devices("GPU") or tf.config.list_logical_devices("CPU")
        return tf.distribute.MirroredStrategy([device.name for device in devices])
    if name == "one_device":
        has_gpu = bool(tf.config.list_logical_devices("GPU"))
        return tf.distribute.OneDeviceStrategy("/gpu:0" if has_gpu else "/cpu:0")
    return tf.distribute.get_strategy()


def kind(strategy):
    """Returns "CPU", "GPU" or "TPU": the devices on which a strategy computes."""
    if isinstance(strategy, tf.distribute.TPUStrategy):
        return "TPU"
    return "GPU" if tf.config.list_logical_devices("GPU") else "CPU"


def description():
    """Returns the name of the first device, for the line at the start of a run.

    It says so if the machine has a GPU that TensorFlow does not see: without NVIDIA's libraries
    TensorFlow computes on the CPU, and its warning is one of the messages that `cli` holds back.
    """
    gpus = tf.config.get_visible_devices("GPU")
    if gpus:
        return tf.config.experimental.get_device_details(gpus[0]).get("device_name", gpus[0].name)
    is_hidden = os.environ.get("CUDA_VISIBLE_DEVICES", "0") in ("", "-1")
    if is_hidden or not os.path.exists(NVIDIA_DRIVER):
        return "the CPU"
    advice = install_command("gpu")
    return f"the CPU (TensorFlow does not see the NVIDIA GPU here: {advice})"


def num_processors(strategy):
    """Returns the number of devices of all workers; the logical CPUs of a worker are one."""
    return num_workers(strategy) if kind(strategy) == "CPU" else strategy.num_replicas_in_sync


def num_workers(strategy):
    """Returns the number of processes that train together, each started by a command."""
    resolver = strategy.cluster_resolver
    if resolver is None or resolver.task_type is None:
        return 1
    jobs = resolver.cluster_spec().as_dict()
    return max(1, sum(len(jobs.get(name, ())) for name in ("chief", "worker")))


def is_chief(strategy):
    """Whether this process is the one that writes: the only one, or the cluster's first."""
    resolver = strategy.cluster_resolver
    if resolver is None or not resolver.cluster_spec() or resolver.task_type is None:
        return True
    has_chief = "chief" in resolver.cluster_spec().jobs
    return resolver.task_type == "chief" or (
        not has_chief and resolver.task_type == "worker" and resolver.task_id == 0
    )


def check_batch_size(strategy, batch_size, flag):
    """Raises a `UserError` if a global batch cannot be divided over the replicas.

    Args:
      strategy: a `tf.distribute.Strategy`.
      batch_size: examples in the global batch.
      flag: name of the flag that gave it.
    """
    replicas = strategy.num_replicas_in_sync
    if batch_size % replicas:
        raise UserError(f"--{flag}={batch_size} must be a multiple of the {replicas} replicas")


def part_random_states(strategy, variables):
    """Gives each replica its own dropout; the first replica's state is unchanged.

    Keras starts all replicas with the same state, so the n-th example of every replica would
    get the same dropout mask.

    Args:
      strategy: a `tf.distribute.Strategy`.
      variables: the states of the model's seed generators, [2]: seed and count of draws.
    """
    if strategy.num_replicas_in_sync == 1:
        return

    @tf.function(autograph=False)
    def part():
        replica = tf.distribute.get_replica_context().replica_id_in_sync_group
        offset = tf.cast(replica, tf.int32) * _SEED_STRIDE
        for variable in variables:
            variable.assign_add(tf.cast(tf.stack([offset, 0]), variable.dtype))

    strategy.run(part)


def agree_on(strategy, number):
    """Whether all workers pass the same number. If not, they may all end at once.

    Args:
      strategy: the `tf.distribute.Strategy`.
      number: int of this worker, of at most nine digits: its square is summed in int64.

    Raises:
      One of `devices.CAUSES`: another worker has ended before the answer.
    """
    context = _per_worker(strategy, number)

    @tf.function(autograph=False)
    def spread():
        def replica(value):
            together = tf.distribute.get_replica_context()
            total = together.all_reduce(tf.distribute.ReduceOp.SUM, value)
            squares = together.all_reduce(tf.distribute.ReduceOp.SUM, value * value)
            return total * total == squares * together.num_replicas_in_sync

        return strategy.run(replica, args=(context,))

    agreed = bool(strategy.experimental_local_results(spread())[0])
    if not agreed:
        # The sum may be here before it is at another worker, which would find this one gone and
        # blame it. Who has a second sum knows that all have had the first.
        with contextlib.suppress(*CAUSES):
            spread()
    return agreed


def _per_worker(strategy, number):
    return strategy.experimental_distribute_values_from_function(
        lambda _: tf.constant(number, tf.int64)
    )


def _show_gpus(number):
    gpus = tf.config.list_physical_devices("GPU")
    if number > len(gpus):
        raise UserError(f"--num_gpus={number}: this machine has {len(gpus)}; pass a smaller number")
    tf.config.set_visible_devices(gpus[:number], "GPU")


def _multi_worker():
    text = os.environ.get("TF_CONFIG")
    try:
        cluster = json.loads(text or "")
        task, workers = cluster["task"], cluster["cluster"]
        workers[task["type"]][int(task["index"])]
    except (ValueError, LookupError, TypeError) as error:
        raise UserError(
            "--distribution_strategy=multi_worker needs the environment variable TF_CONFIG, "
            '{"cluster": {"worker": ["host:port", ...]}, "task": {"type": "worker", "index": 0}}; '
            f"it is {text!r}"
        ) from error
    try:
        return tf.distribute.MultiWorkerMirroredStrategy()
    except (tf.errors.OpError, RuntimeError, ValueError) as error:
        raise UserError(f"cannot join the cluster of TF_CONFIG: {first_line(error)}") from error


def _tpu(tpu):
    try:
        resolver = tf.distribute.cluster_resolver.TPUClusterResolver(tpu=tpu or "")
        tf.config.experimental_connect_to_cluster(resolver)
        tf.tpu.experimental.initialize_tpu_system(resolver)
        return tf.distribute.TPUStrategy(resolver)
    except (tf.errors.OpError, ValueError, OSError) as error:
        raise UserError(f"--tpu={tpu or ''}: no TPU there: {first_line(error)}") from error


def compiled(function, jit_compile, model, strategy):
    """Returns the `tf.function` of a part of a step that computes with the model.

    Args:
      function: function of tensors.
      jit_compile: whether XLA compiles it. With bfloat16 on a processor it compiles only the parts
        between the products (see `compiled_parts`), whole otherwise.
      model: a Keras model.
      strategy: the `tf.distribute.Strategy` in whose scope the model was made.
    """
    if not jit_compile:
        return tf.function(function, autograph=False)
    if model.compute_dtype == "bfloat16" and kind(strategy) == "CPU":
        return tf.function(compiled_parts()(function), autograph=False)
    return tf.function(function, jit_compile=True, autograph=False)


@contextlib.contextmanager
def with_memory_advice(advice):
    """In the block, turns TensorFlow's error of full memory into a `UserError` with an advice."""
    try:
        yield
    except tf.errors.ResourceExhaustedError as error:
        raise out_of_memory(error, advice) from error


def out_of_memory(error, advice):
    """Returns the `UserError` for a `tf.errors.ResourceExhaustedError`."""
    return UserError(f"out of memory ({first_line(error)}); {advice}")


def give_back_memory():
    """Gives freed memory back to the system, where the C library is glibc.

    XLA's compiler allocates and frees up to a gigabyte in small blocks, which glibc keeps for later
    ones (malloc_trim(3)). The buffers of a step are large, so they do not use it.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if trim is not None:
        trim(0)
