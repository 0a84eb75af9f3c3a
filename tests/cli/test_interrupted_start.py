"""Ctrl-C while a server opens its port, or while a demo starts the process that forks others."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys

import pytest

from umpc.cli import server_options
from umpc.cli.server_options import Monitor, Serving
from umpc.deployment.fork_server import fork_server
from umpc.testing import lying
from umpc.transport.authority import Authority
from umpc.transport.identity import load_identity


class Opened:
    """A server that notes its end."""

    def __init__(self) -> None:
        self.stopped: list[float] = []

    async def stop(self, grace: float) -> None:
        self.stopped.append(grace)


def test_a_server_interrupted_while_it_opens_ends_as_after_it(tmp_path, capsys):
    server = Opened()
    Authority.create(tmp_path / "authority").issue("relay", "hub", tmp_path / "own")
    identity = load_identity(tmp_path / "own")

    async def nothing(*_: object) -> None: ...

    async def opened(*_: object) -> tuple[object, str]:
        signal.raise_signal(signal.SIGINT)
        await asyncio.sleep(0.1)
        return server, "127.0.0.1:7100"

    service = server_options.Service(identity, "127.0.0.1:0", {}, lambda *_: None)
    given = Serving(level="info", style="text", metrics="", leash=False)
    goes_on = {"begin_end": lambda _: None, "keep_watch": nothing}
    with lying("process", open_server=opened, **goes_on):
        asyncio.run(server_options.serve([service], given, Monitor(identity, "")))
    assert server.stopped == [1]


@pytest.mark.skipif(sys.platform != "linux", reason="the fork server runs on Linux")
def test_the_process_that_forks_others_is_born_with_ctrl_c_blocked(monkeypatch):
    popen, masks = subprocess.Popen, []

    def started(*arguments, **options):
        masks.append(signal.pthread_sigmask(signal.SIG_BLOCK, []))
        return popen(*arguments, **options)

    monkeypatch.setattr(subprocess, "Popen", started)
    with fork_server():
        assert signal.SIGINT in masks[0]
        assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])
