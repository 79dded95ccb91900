"""The head of a benchmark's output: the machine, the versions, and how fast products are here."""

import ctypes.util
import importlib.metadata
import importlib.util
import os
import pathlib
import shutil
import time

from timing import THREADS, import_tensorflow, import_torch, in_fresh_process

# What products of matrices are built from, in the order in which they came.
INSTRUCTION_SETS = (
    "avx2",
    "fma",
    "avx512f",
    "avx_vnni",
    "avx512_vnni",
    "avx512_bf16",
    "avx512_fp16",
    "amx_tile",
    "amx_bf16",
    "amx_int8",
    "asimd",
    "sve",
    "bf16",
)
PACKAGES = ("tensorflow", "keras", "torch", "transformers")
# What torch.backends.xeon.run_cpu, PyTorch's own launcher, looks for, in its order.
ALLOCATORS = ("tcmalloc", "tcmalloc_minimal", "jemalloc")
# Without them: glibc keeps what is freed, so a step has no page faults after the first.
OF_GLIBC = {
    "MALLOC_ARENA_MAX": "1",
    "MALLOC_MMAP_MAX_": "0",
    "MALLOC_TRIM_THRESHOLD_": str(2**40),
}
SIDE = 2048
# GFLOP/s.
VERY_SLOW = 5


def show():
    """Prints the head, which takes some seconds: products are timed.

    Returns:
      dict of "float32" and "bfloat16" to the operations a second of the fastest product.
    """
    cpu = _cpu()
    model = ", ".join(
        f"{name} {cpu[name]}" for name in ("vendor_id", "cpu family", "model") if name in cpu
    )
    found = cpu.get("flags", cpu.get("Features", "")).split()
    sets = [name for name in INSTRUCTION_SETS if name in found]
    versions = [f"{name} {_version(name)}" for name in PACKAGES]
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    print(f"processor: {cpu.get('model name', 'unknown')} ({model})")
    print(f"cores: {len(os.sched_getaffinity(0))}; threads a side: {THREADS}")
    print(f"instruction sets: {', '.join(sets)}; not there: {', '.join(_absent(sets))}")
    print(f"date: {time.strftime('%Y-%m-%d %H:%M')}; load of 1, 5 and 15 minutes: {load}")
    print(f"versions: {', '.join(versions)}")
    print(f"PyTorch's allocator: {_allocator()[0]}")
    if not has_cpp_compiler():
        print("no C++ compiler (CXX, or g++): torch.compile is left out")
    return _shown_rates()


def require_bytecode():
    """Exits where each start would compile the sources of packages again, as no user's does.

    With PYTHONDONTWRITEBYTECODE, and packages that pip did not compile, TensorFlow's import takes
    seconds longer.
    """
    for name in PACKAGES:
        found = importlib.util.find_spec(name)
        if found and not os.path.exists(importlib.util.cache_from_source(found.origin)):
            folder = os.path.dirname(os.path.dirname(found.origin))
            raise SystemExit(f"{name} is not compiled: python -m compileall -q {folder}")


def _absent(sets):
    """Returns the sets for bfloat16 that an x86 processor could have and this one does not show."""
    of_x86 = ("avx512f", "avx512_bf16", "amx_bf16")
    return [name for name in of_x86 if name not in sets]


def peer_environment():
    """Returns what a process of PyTorch has in its environment, dict of str."""
    # One thread compiles, in the process itself: others would not be stopped in the others' turns.
    return {**_allocator()[1], "TORCHINDUCTOR_COMPILE_THREADS": "1"}


def has_cpp_compiler():
    """Whether there is what torch.compile needs on a CPU."""
    return shutil.which(os.environ.get("CXX", "g++")) is not None


def _allocator():
    """Returns (what it is, variables of the environment that choose it)."""
    given = os.environ.get("BENCHMARK_ALLOCATOR")
    path = given or next(filter(None, map(ctypes.util.find_library, ALLOCATORS)), None)
    if path is None:
        settings = " ".join(f"{name}={value}" for name, value in OF_GLIBC.items())
        return f"neither tcmalloc nor jemalloc is installed; glibc's with {settings}", OF_GLIBC
    environment = {"LD_PRELOAD": path}
    if "jemalloc" in path:
        environment["MALLOC_CONF"] = "oversize_threshold:1,background_thread:true,metadata_thp:auto"
    return f"{path} by LD_PRELOAD", environment


def _shown_rates():
    """Prints a table of the rates of a product of two square matrices; returns what `show` does."""
    rates = in_fresh_process(_tensorflow_rates)
    rates |= in_fresh_process(_torch_rates, environment=peer_environment())
    print(f"\n| GFLOP/s of [{SIDE}, {SIDE}] x [{SIDE}, {SIDE}] | float32 | bfloat16 |")
    print("| --- | --- | --- |")
    for name, values in rates.items():
        print(f"| {name} | {' | '.join(f'{value:.0f}' for value in values)} |")
    print(flush=True)
    columns = zip(*rates.values(), strict=True)
    return dict(
        zip(("float32", "bfloat16"), (1e9 * max(column) for column in columns), strict=True)
    )


def _tensorflow_rates():
    tf = import_tensorflow()
    rates = {}
    for name, jit_compile in {"TensorFlow, graph": False, "TensorFlow, XLA": True}.items():
        product = tf.function(tf.matmul, jit_compile=jit_compile, autograph=False)
        rates[name] = [
            _rate(product, lambda shape, dtype=dtype: tf.random.normal(shape, dtype=dtype))
            for dtype in (tf.float32, tf.bfloat16)
        ]
    return rates


def _torch_rates():
    torch = import_torch()
    return {
        "PyTorch": [
            _rate(torch.matmul, lambda shape, dtype=dtype: torch.randn(shape, dtype=dtype))
            for dtype in (torch.float32, torch.bfloat16)
        ]
    }


def _rate(product, make_matrix):
    """Returns GFLOP/s of the fastest of ten products, which other work disturbs least.

    Where products of smaller matrices are very slow, as of bfloat16 on processors without it, their
    rate is returned: larger ones would take minutes.
    """
    rate = 0.0
    for side in (SIDE // 8, SIDE):
        matrix = make_matrix((side, side))
        product(matrix, matrix)
        seconds = []
        for _ in range(10):
            start = time.perf_counter()
            product(matrix, matrix)
            seconds.append(time.perf_counter() - start)
        rate = 2 * side**3 / min(seconds) / 1e9
        if rate < VERY_SLOW:
            break
    return rate


def _cpu():
    """Returns the entries of the first processor, dict of str."""
    lines = pathlib.Path("/proc/cpuinfo").read_text().split("\n\n")[0].splitlines()
    pairs = (line.partition(":") for line in lines)
    return {name.strip(): value.strip() for name, _, value in pairs}


def _version(name):
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "missing"
