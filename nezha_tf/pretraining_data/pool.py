"""Worker processes that take one task after the other."""

import multiprocessing
import os
import signal
import threading
import traceback
from multiprocessing import connection, resource_tracker

from nezha_tf.errors import UserError


class WorkerDied(Exception):
    """A worker ended without an answer: killed, for want of memory perhaps.

    Attributes:
      task: what it was at.
      exit_code: its status; the negative of the signal that killed it.
    """

    def __init__(self, task, exit_code):
        super().__init__(f"a worker ended with {exit_code}")
        self.task = task
        self.exit_code = exit_code


class WorkerPool:
    """Processes, started anew (not forked), that each make a function and call it for tasks.

    A context manager: at its end, whatever the reason, no worker is left. Workers also end
    when the process that started them is gone, and leave interrupts to it.
    """

    def __init__(self, count, make_function, *arguments):
        """Starts the workers.

        Args:
          count: number of processes.
          make_function: called in each worker with the arguments; returns the function of a
            task. A function of a module, as the workers import it by its name.
          arguments: what it is called with; they and the tasks must be plain data.
        """
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
        resource_tracker.ensure_running()  # which would unblock the signals
        # Workers inherit the mask: a terminal sends an interrupt to them too, and the process
        # that started them is to end them.
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
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
        """List of (task, process id) of what workers are or were at."""
        return [(w.task, w.process.pid) for w in self._workers if w.task is not None]

    def run(self, tasks):
        """Yields (task, result) as tasks are done, in any order.

        One task is taken from the iterable ahead of its being needed.

        Raises:
          UserError: as a worker raised it.
          WorkerDied: a worker is gone.
          RuntimeError: anything else that a worker raised, with its traceback.
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
            except OSError:  # it is gone; its end says how
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
    """A process, the pipe to it, and what it is at."""

    def __init__(self, process, pipe):
        self.process = process
        self.pipe = pipe
        self.task = None

    def result(self):
        """Returns the answer that has come, or raises what came in its place."""
        try:
            kind, value = self.pipe.recv()
        except (EOFError, OSError) as error:
            self.process.join()
            raise WorkerDied(self.task, self.process.exitcode) from error
        if kind == "mistake":
            raise UserError(value)
        if kind == "defect":
            raise RuntimeError(f"in a worker:\n{value}")
        return value


def _work(pipe, make_function, arguments):
    """What a worker does: answers tasks until the other end of the pipe is closed."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        function = make_function(*arguments)
        while True:
            pipe.send(("result", function(pipe.recv())))
    except EOFError:
        pass
    except UserError as error:
        pipe.send(("mistake", str(error)))
    except BaseException:
        pipe.send(("defect", traceback.format_exc()))


def _end_with_parent():
    connection.wait([multiprocessing.parent_process().sentinel])
    os._exit(1)
