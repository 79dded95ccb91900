"""Runs jobs: several at once, each once, after those that it needs."""

import concurrent.futures
import contextlib
import datetime
import graphlib
import hashlib
import itertools
import json
import os
import secrets
import subprocess
import sys
import threading
import time

from nezha_tf.programs.table import arguments_of
from nezha_tf.util import console, endings, files, forms, package_data, storage
from nezha_tf.util.cores import available_cores
from nezha_tf.util.errors import STATUS_TERMINATED, Terminated, UserError
from nezha_tf.util.parts import patterns_in

_TITLE, _HINT = "FATAL Flags parsing error:", "Pass --helpshort"
# Larger files that flags name are data, whose reading at each call would take long.
_MOST_BYTES = 1 << 20
_RECORD = {
    "flags": forms.May([forms.is_anything]),
    "files": forms.May({str: forms.is_anything}),
    "made_from": forms.May({str: forms.is_anything}),
}
# What libraries of arithmetic take the number of their threads from.
_THREADS = ("TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS", "OMP_NUM_THREADS")


def check(jobs):
    """Raises a `UserError` if a job's program does not take its flags.

    It parses them, which absl does without running it.
    """
    with concurrent.futures.ThreadPoolExecutor(available_cores()) as pool:
        for job, answer in zip(jobs, pool.map(_parsed, jobs), strict=True):
            if answer.returncode:
                # absl puts a title before the error, and a hint after it.
                error = answer.stderr.rpartition(_TITLE)[2].partition(_HINT)[0]
                raise UserError(f"{job.name}: {_last_line(error)}")


def _parsed(job):
    command = [*_command(job), "--only_check_args"]
    return subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)


class Runner:
    """Runs the jobs of an ablation in processes, `num_jobs` at a time (0: one for each core).

    FOLDER.json beside a job's folder records its flags, the digests of small files that these
    name (flag files, configurations), whether it has ended well (then it is not run again), and
    which runs of other jobs it was made from. Its output is in FOLDER.log.
    """

    def __init__(self, folder, num_jobs):
        cores = available_cores()
        self._folder = folder
        self._num_jobs = num_jobs or cores
        threads = str(max(1, cores // self._num_jobs))
        self._environment = {**dict.fromkeys(_THREADS, threads), **os.environ}
        self._processes = set()
        self._lock = threading.Lock()
        self._is_stopping = False

    def is_done(self, job):
        """Whether the job has ended well before.

        Raises:
          UserError: it was made with other flags or files, or from what is not there any more.
        """
        record, folder = self._record(job.name), self._path(job)
        if record is None:
            return False
        # Records of version 0.2 are of jobs that have ended, and name no others.
        is_done = record.get("is_done", True)
        if not is_done and not (os.path.isdir(folder) and os.listdir(folder)):
            return False
        other = "take another --output_dir, or remove it and the .json beside it"
        if record.get("flags") != list(job.flags) or record.get("program") != job.program:
            flags = sorted(set(map(str, record.get("flags", ()))) ^ set(job.flags))
            raise UserError(f"{folder} was made with other flags ({', '.join(flags)}); {other}")
        digests = self._digests(job)
        for path, digest in record.get("files", {}).items():
            if digests.get(path, digest) != digest:
                raise UserError(f"{folder} was made with another content of {path}; {other}")
        for name, made in record.get("made_from", {}).items():
            if self._made(name) != made:
                raise UserError(
                    f"{folder} was made from {name}, which was removed or made anew since; remove "
                    "it and the .json beside it"
                )
        return is_done

    def run(self, jobs):
        """Runs those of a list of different `Job`s that are not done, each after those it needs.

        Returns a dict of job name to why it failed. If the process is interrupted, or asked to end
        (`endings`, `Terminated`), the programs are ended first.
        """
        by_name = {job.name: job for job in jobs}
        graph = graphlib.TopologicalSorter({job.name: job.needs for job in jobs})
        graph.prepare()
        failures, running = {}, {}
        with self._pool() as pool, console.progress(total=len(jobs), unit="run") as bar:
            while True:
                for name in graph.get_ready():
                    running[pool.submit(self._outcome, by_name[name])] = name
                if not running:
                    return failures
                done, _ = concurrent.futures.wait(
                    running, return_when=concurrent.futures.FIRST_COMPLETED
                )
                for future in done:
                    name = running.pop(future)
                    failure, seconds = future.result()
                    bar.update()
                    if failure:
                        failures[name] = failure
                    else:
                        graph.done(name)
                    if seconds is not None:
                        took = datetime.timedelta(seconds=round(seconds))
                        line = f"{time.strftime('%T')} {name}: {failure or 'done'}, {took}"
                        bar.write(line, file=sys.stdout)
                        sys.stdout.flush()

    @contextlib.contextmanager
    def _pool(self):
        """Yields threads that wait for programs; after an error these programs are ended."""
        with (
            endings.asked(_terminated),
            concurrent.futures.ThreadPoolExecutor(self._num_jobs) as pool,
        ):
            try:
                yield pool
            except BaseException:
                self._stop()
                pool.shutdown(cancel_futures=True)
                raise

    def _stop(self):
        with self._lock:
            self._is_stopping = True
            for process in self._processes:
                process.terminate()

    def _outcome(self, job):
        """Returns (why it failed, or None; seconds, or None if it was done before)."""
        if self.is_done(job):
            return None, None
        start = time.monotonic()
        os.makedirs(os.path.dirname(self._path(job)), exist_ok=True)
        log = self._path(job, ".log")
        record = {
            "program": job.program,
            "flags": job.flags,
            "files": self._digests(job),
            "made": secrets.token_hex(8),
            "made_from": {name: self._made(name) for name in job.needs},
        }
        self._write(job, {**record, "is_done": False})
        with storage.open_anew(log) as output:
            status = self._status(job, output)
        if status == 0:
            self._write(job, {**record, "is_done": True})
            return None, time.monotonic() - start
        with open(log, encoding="utf-8", errors="replace") as file:
            line = _last_line(file.read())
        return f"status {status}: {line} (see {log})", time.monotonic() - start

    def _status(self, job, output):
        with self._lock:
            if self._is_stopping:
                return STATUS_TERMINATED
            # In a session of its own, so that the terminal's interrupt comes to this process
            # alone, which then ends the programs in order.
            process = subprocess.Popen(
                _command(job),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=self._environment,
                start_new_session=True,
            )
            self._processes.add(process)
        try:
            return process.wait()
        finally:
            with self._lock:
                self._processes.discard(process)

    def _digests(self, job):
        """Returns {path: SHA-256} of the small files that a job's flags name.

        Those in the folder of all output are of jobs. What cannot be read is left to the program.
        """
        digests = {}
        for path in itertools.chain(*map(_local_files, job.flags)):
            is_output = os.path.abspath(path).startswith(os.path.abspath(self._folder) + os.sep)
            with contextlib.suppress(OSError):
                if not is_output and os.path.getsize(path) <= _MOST_BYTES:
                    with open(path, "rb") as file:
                        digests[path] = hashlib.file_digest(file, "sha256").hexdigest()
        return digests

    def _made(self, name):
        """Returns what tells this run of a job from others, or None."""
        return (self._record(name) or {}).get("made")

    def _record(self, name):
        path = os.path.join(self._folder, name) + ".json"
        record = files.read_object(path)
        if record is not None:
            forms.require(record, _RECORD, path)
        return record

    def _write(self, job, record):
        files.write_text(self._path(job, ".json"), json.dumps(record, indent=2) + "\n")

    def _path(self, job, ending=""):
        return os.path.join(self._folder, job.name) + ending


def _command(job):
    return [sys.executable, *arguments_of(job.program), *job.flags]


def _local_files(flag):
    """Returns the files of this machine that a flag's value names: names and globs with commas."""
    name, _, value = flag.removeprefix("--").partition("=")
    with contextlib.suppress(UserError):
        value = package_data.of_flag(name, value)
    patterns = [each for each in patterns_in(value) if not storage.is_remote(each)]
    return [path for path in itertools.chain(*map(storage.glob, patterns)) if os.path.isfile(path)]


def _terminated(name):
    raise Terminated(f"stopped by {name}; the same command goes on")


def _last_line(text):
    lines = [line for line in text.replace("\r", "\n").splitlines() if line.strip()]
    return lines[-1].strip() if lines else "no output"
