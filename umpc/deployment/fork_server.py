"""A fork server: one process imports everything once, and forks every process of a demo.

A process of `umpc` takes a second of processor time to import numpy, gRPC and DuckDB, and a demo
starts six processes or more. A process that is forked from one that has imported them starts at
once. It is a real process, with an id, files, memory, signals and an end of its own. Randomness
comes from the operating system and is not shared.

The server forks twice, so that the new process is an orphan, and this process adopts it
(prctl(2), PR_SET_CHILD_SUBREAPER). Thus it is our own child, and we learn how it ends.
Only Linux has this; elsewhere `subprocess.Popen` starts the processes.
"""

from __future__ import annotations

import atexit
import ctypes
import gc
import importlib
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import IO, Any, cast

from umpc.deployment.processes import UMPC, Process, Start
from umpc.errors import PeerUnavailable

PR_SET_CHILD_SUBREAPER = 36
MOST_BYTES = 1 << 20
"""The most bytes of one request."""
IMPORTED = (
    "cryptography.hazmat.backends.openssl.backend",
    "umpc.api.progress",
    "umpc.api.result",
    "umpc.api.study",
    "umpc.cli.main",
    "umpc.reporting.rows",
    "umpc.cli.serve",
    "umpc.cli.shared",
    "umpc.cli.study",
    "umpc.coordinator.client",
    "umpc.coordinator.studyfile",
    "umpc.dealer.server",
    "umpc.hub.server",
    "umpc.node.server",
    "umpc.node.table.columns",
)


@contextmanager
def fork_server() -> Iterator[Start]:
    """Run a fork server for the block. Yields: a function to call in place of `Popen`."""
    if sys.platform != "linux":
        yield cast(Start, subprocess.Popen)
        return
    ours, its = requests_to_a_server()
    command = [sys.executable, "-m", "umpc.deployment.fork_server", str(its.fileno())]
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # the server inherits it
    try:
        started = subprocess.Popen(command, pass_fds=[its.fileno()])
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    with started as server, ours:
        its.close()

        def start(command: Sequence[str], **options: Any) -> Process:
            if tuple(command[: len(UMPC)]) != UMPC:
                return subprocess.Popen(command, **options)
            return ForkedProcess(ours, command[len(UMPC) :], **options)

        try:
            yield start
        finally:
            server.kill()  # it may still import, and it has nothing to finish


def requests_to_a_server() -> tuple[socket.socket, socket.socket]:
    """Return our end and the server's end. This process adopts what the server forks."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    for end in (ours, its):
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2 * MOST_BYTES)
    return ours, its


class ForkedProcess:
    """A process that a fork server made, with the part of `subprocess.Popen` that we use.

    Args:
        requests: our end of the server's socket.
        arguments: the arguments of `umpc`.
        stdin, stdout: `subprocess.PIPE`, or None to have ours.
        stderr: a file, or None to have ours.
        env: the whole environment; None means ours.
    """

    def __init__(
        self,
        requests: socket.socket,
        arguments: Sequence[str],
        stdin: int | None = None,
        stdout: int | None = None,
        stderr: IO[bytes] | None = None,
        env: Mapping[str, str] | None = None,
    ):
        self.stdin: IO[bytes] | None = None
        self.stdout: IO[bytes] | None = None
        self.returncode: int | None = None
        given = [0, 1, stderr.fileno() if stderr else 2]
        pipes = []
        if stdin == subprocess.PIPE:
            given[0], ours = os.pipe()
            pipes.append(given[0])
            self.stdin = os.fdopen(ours, "wb", buffering=0)
        if stdout == subprocess.PIPE:
            ours, given[1] = os.pipe()
            pipes.append(given[1])
            self.stdout = os.fdopen(ours, "rb")
        request = json.dumps([list(arguments), dict(os.environ if env is None else env)])
        try:
            socket.send_fds(requests, [request.encode()], given)
            answer = requests.recv(64)
        finally:
            for pipe in pipes:
                os.close(pipe)
        if not answer:
            raise PeerUnavailable("the process that forks the demo's processes ended", step="start")
        self.pid = int(answer)

    def poll(self) -> int | None:
        if self.returncode is None:
            ended, status = os.waitpid(self.pid, os.WNOHANG)
            if ended:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait until the process has ended. Raises: subprocess.TimeoutExpired."""
        if self.poll() is None:
            ended = os.pidfd_open(self.pid)
            try:
                with selectors.DefaultSelector() as selector:
                    selector.register(ended, selectors.EVENT_READ)
                    selector.select(timeout)
            finally:
                os.close(ended)
        code = self.poll()
        if code is None:
            raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0.0)
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


# --- the server


def prepare() -> None:
    """Import everything."""
    importlib.import_module("umpc.cli.main").use_one_blas_thread()
    for module in IMPORTED:
        importlib.import_module(module)


def serve(requests: socket.socket) -> None:
    """Fork for every request, until the other end is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the demo, which ends us
    gc.freeze()  # a collection would copy every page it looks at
    atexit.register(gc.unfreeze)  # otherwise duckdb complains of what is left at the end
    request = next_process(requests)
    if request is None:
        os._exit(0)
    text, files = request
    arguments, environment = json.loads(text)
    for target, each in enumerate(files):
        os.dup2(each, target)
        os.close(each)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["umpc", *arguments]
    importlib.import_module("umpc.cli.main").main()


def next_process(requests: socket.socket) -> tuple[bytes, list[int]] | None:
    """Fork for every request. Returns: in a new process, its request and the files that came with
    it; in the server None, when the other end was closed.
    """
    while True:
        text, files, _, _ = socket.recv_fds(requests, MOST_BYTES, 3)
        if not text:
            return None
        if _forked_twice(requests):
            requests.close()
            return text, files
        for each in files:
            os.close(each)


def _forked_twice(requests: socket.socket) -> bool:
    """Return True in the new process, after its id was sent; its grandparent adopts it."""
    reading, writing = os.pipe()
    between = os.fork()
    if not between:
        new = os.fork()
        if not new:
            os.close(reading)
            os.close(writing)
            return True
        os.write(writing, str(new).encode())
        os._exit(0)
    os.waitpid(between, 0)
    os.close(writing)
    requests.send(os.read(reading, 64))
    os.close(reading)
    return False


if __name__ == "__main__":
    prepare()
    serve(socket.socket(fileno=int(sys.argv[1])))
