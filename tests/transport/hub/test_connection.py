"""umpc/transport/hub/connection.py: what a process says while it dials its hub."""

from __future__ import annotations

import asyncio
import logging
import socket
from types import SimpleNamespace

import pytest

from umpc.errors import PeerUnavailable
from umpc.transport.hub import connection
from umpc.transport.hub.address import parse_hub
from umpc.transport.hub.connection import HubConnection


def test_one_line_says_early_what_is_still_dialled(site, monkeypatch, caplog):
    monkeypatch.setattr(connection, "TELL_SECONDS", 0.2)
    monkeypatch.setattr(connection, "DIAL_SECONDS", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        hub = parse_hub(f"hub:relay@127.0.0.1:{taken.getsockname()[1]}")  # it never answers
    member = SimpleNamespace(passed=lambda seconds, counted: None)

    async def scenario() -> None:
        dialling = HubConnection(site("north"), hub, member, listens=True)
        try:
            for _ in range(2):
                with pytest.raises(PeerUnavailable):
                    await dialling.joined(0.6)
        finally:
            await dialling.close(0)

    with caplog.at_level(logging.INFO, "umpc.hub"):
        asyncio.run(scenario())
    told = [line for line in caplog.messages if line.startswith("still dialling")]
    assert len(told) == 1 and told[0].startswith(f"still dialling hub 'relay' at {hub.address}: ")
