"""A run of several workers on this machine, a process each."""

import contextlib
import json
import socket
import threading

from commands import start_pretraining


@contextlib.contextmanager
def held_ports(count):
    """Yields ports on which only the workers can listen, because this process keeps them bound."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            one.bind(("", 0))
        yield [one.getsockname()[1] for one in sockets]


@contextlib.contextmanager
def workers(folder, addresses, flags, own=None):
    """Starts the workers of a run of `run_pretraining.py`; kills them at the end of the block.

    Args:
      folder: where they run.
      addresses: for each worker, the list of the addresses of all that it is told.
      flags: sequence of flags of all of them.
      own: for each worker the flags that it alone gets, or None.

    Yields:
      List of `commands.ForkedProgram`.
    """
    processes = []
    try:
        for index, told in enumerate(addresses):
            cluster = {"cluster": {"worker": told}, "task": {"type": "worker", "index": index}}
            environment = {"TF_CONFIG": json.dumps(cluster), "TF_GRPC_REUSE_PORT": "1"}
            ways = ("--distribution_strategy=multi_worker", *flags, *(own[index] if own else ()))
            processes.append(start_pretraining(folder, *ways, environment=environment))
        yield processes
    finally:
        for process in processes:
            if process.poll() is None:
                process.kill()


def addresses_of(ports):
    """Returns what `workers` needs if each worker is told the same addresses."""
    return [[f"localhost:{port}" for port in ports]] * len(ports)


class Cable:
    """A port that passes everything on to another one, until it is cut.

    Attributes:
      port: the port to connect to.
    """

    def __init__(self, target):
        """Args:
        target: the port that is connected to.
        """
        self._target = target
        self._ends = []
        self._listener = socket.create_server(("localhost", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self):
        """Closes the port and everything that goes through it."""
        for end in (self._listener, *self._ends):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                try:
                    far = socket.create_connection(("localhost", self._target))
                except OSError:  # the worker does not listen yet; the other one tries again
                    near.close()
                    continue
                self._ends += [near, far]
                for ends in ((near, far), (far, near)):
                    threading.Thread(target=_pass_on, args=ends, daemon=True).start()


def _pass_on(source, sink):
    with contextlib.suppress(OSError):
        while data := source.recv(2**16):
            sink.sendall(data)
    for end in (source, sink):
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
