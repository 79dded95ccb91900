"""Apache Spark, on this machine or a cluster: a task makes a shard.

pyspark is imported only when this engine is chosen. It needs Java 17 or later.
"""

import contextlib
import itertools
import logging
import os
import re
import shlex
import shutil
import signal
import sys
import tempfile
import threading
import warnings
from concurrent import futures

from nezha_tf.corpus.runners.work import error_of, failure
from nezha_tf.util import console
from nezha_tf.util.errors import Terminated, UserError, first_line, require_modules

# A program that spark-submit has started finds Spark's options in the gateway of this variable.
_GATEWAY = "PYSPARK_GATEWAY_PORT"
_OPTIONS_OF_PYSPARK = "PYSPARK_SUBMIT_ARGS"
_SECONDS_BETWEEN_LOOKS = 1.0
# Spark's log says what went wrong in such lines: "Error: Unrecognized option: --a",
# "24/11/26 ERROR Client: All masters are unresponsive!", "Exception in thread ...: why".
_CAUSE = re.compile(r"^(?:Error: |.*? ERROR [\w.$]+: |Exception in thread \S+ )(.*)$", re.MULTILINE)


class SparkRunner:
    """An engine, see `runners`."""

    OPTIONS = "spark_options"

    def __init__(self, name, options):
        """Starts Spark's Java process, which checks the options; the cluster is not asked yet.

        Raises:
          UserError: pyspark or Java is not installed, or an option is wrong.
        """
        self.name = name
        # Of versions of pandas, for example, with which shards have nothing to do.
        warnings.filterwarnings("ignore", module=r"pyspark\b")
        # It logs an interrupt with its traceback before it passes it on.
        logging.getLogger("py4j").setLevel(logging.CRITICAL)
        require_modules("--runner=spark needs pyspark", "spark", "pyspark")
        from pyspark import java_gateway

        _check(options)
        # Spark's log; shown only if something fails. The file goes with this process.
        self._log = tempfile.TemporaryFile()
        self._gateway = None
        with _environment(options):
            try:
                self._gateway = java_gateway.launch_gateway(popen_kwargs={"stderr": self._log})
            except Exception as error:
                message = self._cause() or first_line(error)
                raise UserError(f"--spark_options={options}: {message}") from error

    def run(self, function, places):
        # A thread that waits for an answer of Java cannot be interrupted, so another one waits.
        with self._context() as context, futures.ThreadPoolExecutor(1) as waiting:
            try:
                # One place for each task, so that a task that fails repeats the work of one shard.
                tasks = context.parallelize(places, len(places))
                job = waiting.submit(tasks.foreach, function)
                _wait_for(job, context, len(places))
            except (KeyboardInterrupt, Terminated):
                context.cancelAllJobs()
                raise
            except Exception as error:
                of_python = "PythonException" in str(error)
                shown = error_of(self.name, error, of_python, self._cause())
                if shown is error:
                    raise
                raise shown from error

    @contextlib.contextmanager
    def _context(self):
        """Yields a `SparkContext`, which holds workers of the cluster until the block ends."""
        from pyspark import SparkContext

        interrupts = signal.getsignal(signal.SIGINT)
        try:
            context = SparkContext(gateway=self._gateway)
        except Exception as error:
            message = self._cause() or first_line(error)
            raise failure(self.name, f"Spark did not start: {message}") from error
        try:
            if threading.current_thread() is threading.main_thread():
                signal.signal(signal.SIGINT, interrupts)  # pyspark has taken them
            context.setLogLevel("ERROR")
            where = f", {context.uiWebUrl}" if context.uiWebUrl else ""
            console.tell(f"{context.applicationId} on {context.master}{where}", flush=True)
            yield context
        finally:
            context.stop()

    def _cause(self):
        """Returns the last line of Spark's log that says what went wrong, or ""."""
        self._log.seek(0)
        causes = _CAUSE.findall(self._log.read().decode("utf-8", "replace"))
        return causes[-1].strip() if causes else ""


def _check(options):
    java = os.path.join(os.environ.get("JAVA_HOME", ""), "bin", "java")
    if _GATEWAY not in os.environ and not (os.access(java, os.X_OK) or shutil.which("java")):
        raise UserError(
            "--runner=spark needs Java 17 or later: install it (Debian: openjdk-17-jre-headless), "
            "or set JAVA_HOME"
        )
    try:
        parts = shlex.split(options)
    except ValueError as error:
        raise UserError(f"--spark_options={options}: {error}") from error
    if parts and _GATEWAY in os.environ:
        raise UserError("--spark_options: spark-submit has started this program; pass them to it")
    for part in parts[:1]:
        if not part.startswith("-"):
            raise UserError(f"--spark_options={options}: {part} is no option; it begins with --")
    for before, value in itertools.pairwise(parts):
        # Spark leaves such a property out and says so in its log only.
        if before in ("--conf", "-c") and not value.startswith("spark."):
            raise UserError(
                f"--spark_options={options}: {value}: Spark's properties begin with spark."
            )


@contextlib.contextmanager
def _environment(options):
    """Sets what pyspark reads when it starts Java."""
    # Workers have Python at the same place as this machine, if the user tells no other one.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    before = os.environ.get(_OPTIONS_OF_PYSPARK)
    # If an option comes twice, the last one counts: a --name of the user does.
    os.environ[_OPTIONS_OF_PYSPARK] = f"--name=nezha_tf {options} pyspark-shell"
    try:
        yield
    finally:
        del os.environ[_OPTIONS_OF_PYSPARK]
        if before is not None:
            os.environ[_OPTIONS_OF_PYSPARK] = before


def _wait_for(job, context, total):
    """Waits for a job of `total` tasks; shows how many have ended, on terminals only."""
    tracker = context.statusTracker()
    with console.progress(total=total, desc="making", unit="shard") as bar:
        while not futures.wait([job], _SECONDS_BETWEEN_LOOKS).done:
            stages = filter(None, map(tracker.getStageInfo, tracker.getActiveStageIds()))
            bar.update(sum(stage.numCompletedTasks for stage in stages) - bar.n)
        job.result()
        bar.update(total - bar.n)
