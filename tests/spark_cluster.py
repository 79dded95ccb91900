"""A Spark cluster of processes of its own on this machine: a master and workers."""

import contextlib
import os
import pathlib
import re
import signal
import subprocess

from waiting import wait_until


def spark_home():
    """The folder of pyspark, which has a whole Spark in it."""
    import pyspark

    return pathlib.Path(pyspark.__file__).parent


class Cluster:
    """A master and workers that have a core each; a context manager that ends all of them.

    Attributes:
      address: of the master.
      folder: of logs and of the workers' files.
    """

    def __init__(self, folder, workers=2):
        self.folder = folder
        self._count = workers
        self._stack = contextlib.ExitStack()
        self.workers = []

    def __enter__(self):
        host = ("--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
        _, log = self._start("master", "org.apache.spark.deploy.master.Master", *host)
        found = self._wait_for(log, r"Starting Spark master at (spark://[\w.:]+)")
        self.address = found[1]
        for number in range(self._count):
            self.add_worker(number)
        return self

    def __exit__(self, *exception):
        self._stack.close()

    def add_worker(self, number):
        """Starts a worker and waits until the master knows it."""
        sizes = ("--cores", "1", "--memory", "1g", "--work-dir", str(self.folder / "work"))
        name = f"worker{number}"
        kind = "org.apache.spark.deploy.worker.Worker"
        host = ("--host", "127.0.0.1", "--webui-port", "0")
        process, log = self._start(name, kind, *host, *sizes, self.address)
        self._wait_for(log, "Successfully registered with master")
        self.workers.append(process)

    def kill_worker(self, number):
        """Kills a worker with its executor and their Python processes, as a machine that dies."""
        os.killpg(self.workers[number].pid, signal.SIGKILL)

    def _start(self, name, kind, *arguments):
        log = self.folder / f"{name}.log"
        environment = os.environ | {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_NO_DAEMONIZE": "1"}
        with open(log, "w") as file:
            process = subprocess.Popen(
                [str(spark_home() / "bin" / "spark-class"), kind, *arguments],
                stdout=file,
                stderr=file,
                env=environment,
                start_new_session=True,
            )
        self._stack.callback(process.wait)
        self._stack.callback(_kill_group, process)
        return process, log

    def _wait_for(self, log, pattern):
        wait_until(lambda: re.search(pattern, log.read_text()), seconds_between=0.1)
        return re.search(pattern, log.read_text())


def _kill_group(process):
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
