"""Processes of the command `umpc` that are forked from one that has imported everything.

A process takes half a second of CPU to import numpy, gRPC and duckdb. That is most of the cost of a
small study, and these tests start hundreds. `Forked` is a `subprocess.Popen` whose process is
forked from a source process that has imported everything and done nothing else. It is still a
process of its own, with its own id, files, environment, signals, memory and end. Tests of the start
itself use `subprocess`, as test_demo.py does, and `Forked` uses it for any other command.

This process becomes the reaper of orphans (prctl(2), PR_SET_CHILD_SUBREAPER). The source forks
twice, so the new process becomes our own child, and `Popen` can wait for it as for any child.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

if __name__ == "__main__":  # by its path, from `_source`: the umpc beside it, not an installed one
    sys.path[0] = str(Path(__file__).resolve().parents[2])

import umpc
from umpc.deployment import fork_server
from umpc.deployment.fork_server import MOST_BYTES, next_process, requests_to_a_server
from umpc.deployment.processes import UMPC
from umpc.testing import lying

COMMON = (
    "umpc.transport.tls",
    "umpc.transport.identity",
    "cryptography.hazmat.backends.openssl.backend",
    "umpc.cli.main",
    "umpc.failpoints",
)
IMPORTED = {
    "approve": ("umpc.cli.approve", "umpc.node.config", "umpc.node.approvals"),
    "ca": ("umpc.cli.ca", "umpc.transport.authority"),
    "dealer": ("umpc.cli.serve", "umpc.dealer.server"),
    "demo": (
        "umpc.cli.demo",
        "umpc.cli.demo",
        "umpc.cli.table",
        *fork_server.IMPORTED,
    ),
    "hub": ("umpc.cli.hub", "umpc.hub.server"),
    "node": ("umpc.cli.serve", "umpc.node.server", "umpc.node.table.columns"),
    "overlap": ("umpc.cli.overlap", "umpc.api.study", "umpc.api.progress"),
    "people": (
        "umpc.cli.people",
        "umpc.api.study",
        "umpc.api.progress",
        "umpc.coordinator.people",
        "umpc.people.device",
        "umpc.transport.people_door",
    ),
    "shuffler": ("umpc.cli.serve", "umpc_papers.shuffler.server"),
    "study": (
        "umpc.cli.study",
        "umpc.cli.shared",
        "umpc.coordinator.client",
        "umpc.coordinator.studyfile",
    ),
}
"""Command → the modules that its source imports. Each command has its own source, so that no
process finds modules that only another command needs.
"""
SOURCES: dict[str, socket.socket] = {}
"""Command → our end of its source, once it is there."""


class Forked(subprocess.Popen):
    """A `subprocess.Popen` for commands that begin with `UMPC`.

    It overrides a private method of the standard library, because `Popen` has no public way to take
    over a process that another one forked.
    """

    def _execute_child(self, args, *rest):
        if tuple(args[: len(UMPC)]) != UMPC:
            return super()._execute_child(args, *rest)
        _, preexec, _, passed, folder, environment, *_ = rest
        assert not preexec and not passed and folder is None, "not for forked processes"
        pipes = rest[9:15]
        stdin, _, _, stdout, _, stderr = pipes
        environment = dict(os.environ if environment is None else environment)
        self.pid = fork(args[len(UMPC) :], environment, {0: stdin, 1: stdout, 2: stderr})
        self._child_created = True
        self._close_pipe_fds(*pipes)


def fork(arguments: list[str], environment: dict[str, str], files: dict[int, int]) -> int:
    """Return the id of a new process.

    Args: files: our files that it gets as 0, 1 and 2, where they are not the source's.
    """
    given = {target: ours for target, ours in files.items() if ours >= 0}
    request = json.dumps([list(arguments), environment, list(given)]).encode()
    assert len(request) < MOST_BYTES
    source = _source(arguments[0])
    socket.send_fds(source, [request], list(given.values()))
    return int(source.recv(64))


def _source(command: str) -> socket.socket:
    """Return our end of the command's source process, which ends when this process does."""
    if command in SOURCES:
        return SOURCES[command]
    ours, its = requests_to_a_server()
    subprocess.Popen(
        [sys.executable, __file__, command, str(its.fileno())], pass_fds=[its.fileno()]
    )
    its.close()
    SOURCES[command] = ours
    return ours


# --- the source


def main(command: str, file: str) -> None:
    """Fork for every request; the new process becomes `umpc` with these arguments."""
    before = set(os.environ)
    for module in (*COMMON, *IMPORTED[command]):
        importlib.import_module(module)
    set_by_imports = {name: os.environ[name] for name in os.environ if name not in before}
    requests = socket.socket(fileno=int(file))
    gc.freeze()  # a collection would copy every page it looks at
    if "duckdb" in sys.modules:
        atexit.register(gc.unfreeze)  # it complains of what is left at the end
    _serve(requests, set_by_imports)


def _serve(requests: socket.socket, set_by_imports: dict[str, str]) -> None:
    """Fork for every request until the other end is closed."""
    request = next_process(requests)
    if request is None:
        return
    text, files = request
    arguments, environment, own = json.loads(text)
    for each, target in zip(files, own, strict=True):
        os.dup2(each, target)
        os.close(each)
    os.environ.clear()
    os.environ.update(set_by_imports | environment)
    importlib.reload(umpc.failpoints)  # it reads the environment
    sys.argv = ["umpc", *arguments]
    is_demo = arguments[0] == "demo"
    with _forks_for_the_demo(set_by_imports) if is_demo else nullcontext():
        umpc.cli.main.main()


def _forks_for_the_demo(set_by_imports: dict[str, str]) -> AbstractContextManager[None]:
    """Make a source for the processes that this demo starts, from the demo's own process."""
    ours, its = requests_to_a_server()
    if os.fork() == 0:
        ours.close()
        empty = os.open(os.devnull, os.O_RDWR)
        for standard in (0, 1, 2):  # the demo's pipes must close when the demo ends
            os.dup2(empty, standard)
        os.close(empty)
        _serve(its, set_by_imports)
        sys.stdout.flush()  # _exit leaves out what Python still holds
        os._exit(0)
    its.close()
    SOURCES.update(dict.fromkeys(IMPORTED, ours))

    @contextmanager
    def forked(honest: object) -> Iterator[type[Forked]]:
        yield Forked

    return lying("demo", fork_server=forked)


if __name__ == "__main__":
    main(*sys.argv[1:])
