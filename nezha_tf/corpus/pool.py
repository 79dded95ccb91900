"""A pool of worker processes."""

import multiprocessing
import os
import signal
import threading
import traceback
from multiprocessing import connection, resource_tracker

from nezha_tf.util.errors import UserError


class WorkerDied(Exception):
    """A worker ended without an answer, for example because it was killed when memory ran out.

    `exit_code` is its exit status, or minus the number of the signal that killed it.
    """

    def __init__(self, task, exit_code):
        super().__init__(f"a worker ended with {exit_code}")
        self.task = task
        self.exit_code = exit_code

    @property
    def cause(self):
        """The exit code in words."""
        if self.exit_code == -signal.SIGKILL:
            return "killed, perhaps out of memory: a smaller --num_workers needs less"
        return (
            signal.Signals(-self.exit_code).name
            if self.exit_code < 0
            else f"status {self.exit_code}"
        )


def run_tasks(count, make_function, arguments, tasks, describe, forget=None):
    """Yields (task, result) in the order in which tasks are finished; see `WorkerPool`.

    Args:
      count: number of processes; 1: this process works.
      make_function, arguments, tasks: as for a `WorkerPool`.
      describe: function from a task to what a worker that died was doing, for the message.
      forget: called with (task, process id) of what is not finished when the workers have ended.

    Raises:
      UserError: a worker raised it, or died.
    """
    if count == 1:
        function = make_function(*arguments)
        for task in tasks:
            yield task, function(task)
        return
    pool = WorkerPool(count, make_function, *arguments)
    try:
        with pool:
            yield from pool.run(tasks)
    except WorkerDied as death:
        raise UserError(f"a worker died ({death.cause}) while it {describe(death.task)}") from death
    finally:
        for unfinished in pool.unfinished if forget else ():
            forget(*unfinished)


class WorkerPool:
    """Spawned (not forked) processes; each makes a function and calls it for its tasks.

    Each calls `make_function`, a function of a module, with `arguments`; what it returns is called
    with tasks. All of them must be picklable. The end of the block ends all workers, also after an
    error, and so does the end of the parent process. They ignore interrupts, which that handles.
    """

    def __init__(self, count, make_function, *arguments):
        self._workers = []
        try:
            self._start(count, make_function, arguments)
        except BaseException:
            self.__exit__()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        for worker in self._workers:
            worker.process.kill()
        for worker in self._workers:
            worker.process.join()
            worker.pipe.close()

    def _start(self, count, make_function, arguments):
        context = multiprocessing.get_context("spawn")
        resource_tracker.ensure_running()  # starting it later would unblock the signals
        # Workers inherit this mask: a terminal sends interrupts to them too, but their parent
        # should end them.
        mask = signal.pthread_sigmask(
            signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
        )
        try:
            for _ in range(count):
                ours, theirs = context.Pipe()
                arguments_of_work = (theirs, make_function, arguments)
                process = context.Process(target=_work, args=arguments_of_work, daemon=True)
                process.start()
                theirs.close()
                self._workers.append(_Worker(process, ours))
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)

    @property
    def unfinished(self):
        return [(w.task, w.process.pid) for w in self._workers if w.task is not None]

    def run(self, tasks):
        """Yields (task, result) in the order in which tasks are finished.

        One task is taken from the iterable before a worker is free for it.

        Raises:
          UserError, OSError, MemoryError: a worker raised it.
          WorkerDied: a worker ended without an answer.
          RuntimeError: a worker raised another error; its traceback is in the message.
        """
        tasks = iter(tasks)
        idle, busy = list(self._workers), []
        for task in tasks:
            while not idle:
                yield from self._finish_some(idle, busy)
            worker = idle.pop()
            worker.task = task
            busy.append(worker)
            try:
                worker.pipe.send(task)
            except OSError:  # the worker has ended; `_finish_some` raises `WorkerDied`
                worker.process.join()
        while busy:
            yield from self._finish_some(idle, busy)

    def _finish_some(self, idle, busy):
        """Waits until a worker answers or dies; yields the answers."""
        ends = {worker.pipe: worker for worker in busy}
        ends.update({worker.process.sentinel: worker for worker in busy})
        ready = {id(worker): worker for worker in map(ends.get, connection.wait(list(ends)))}
        for worker in ready.values():
            result = worker.result()
            busy.remove(worker)
            idle.append(worker)
            task, worker.task = worker.task, None
            yield task, result


class _Worker:
    def __init__(self, process, pipe):
        self.process = process
        self.pipe = pipe
        self.task = None

    def result(self):
        """Returns the worker's answer, or raises its error."""
        try:
            kind, value = self.pipe.recv()
        except (EOFError, OSError) as error:
            self.process.join()
            raise WorkerDied(self.task, self.process.exitcode) from error
        if kind == "mistake":
            raise value
        if kind == "defect":
            raise RuntimeError(f"in a worker:\n{value}")
        return value


def _work(pipe, make_function, arguments):
    """Runs a worker: answers tasks until the other end of the pipe is closed."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        function = make_function(*arguments)
        while True:
            pipe.send(("result", function(pipe.recv())))
    except EOFError:
        pass
    except (UserError, OSError, MemoryError) as error:
        pipe.send(("mistake", error))
    except BaseException:
        pipe.send(("defect", traceback.format_exc()))


def _end_with_parent():
    connection.wait([multiprocessing.parent_process().sentinel])
    os._exit(1)
