"""A hub behind the HTTP proxy of a site's network, which is a process here."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from transport_echo import CALL

sys.path.insert(0, str(Path(__file__).parent))
from behind_hub import echo_behind, hub_of, run

from tests.support import connect_proxy
from umpc.errors import ConfigError, PeerUnavailable
from umpc.transport.diagnose import find_fault
from umpc.transport.dialling import connect
from umpc.transport.proxy import proxy_to


@contextmanager
def proxy_for(port: int) -> Iterator[tuple[str, list[str]]]:
    """Run the proxy. Yields: its address, and a list that gets its requests at its end."""
    command = [sys.executable, connect_proxy.__file__, str(port)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        said: list[str] = []
        try:
            yield f"127.0.0.1:{process.stdout.readline().strip()}", said
        finally:
            process.terminate()
            said += process.stdout.read().splitlines()


def test_processes_dial_a_hub_through_the_proxy_of_their_site(site, monkeypatch):
    """Only the proxy knows the hub's name, so no connection can go past it."""

    async def scenario():
        async with hub_of(site("relay", "hub")) as hub:
            port = int(hub.listen.rpartition(":")[2])
            with proxy_for(port) as (proxy, said):
                monkeypatch.setenv("https_proxy", f"http://north:secret%21@{proxy}")
                hub.listen = f"{connect_proxy.NAME}:{port}"
                async with echo_behind(hub, site("a")):
                    channel = await connect(site("b"), "a", "node", hub.address, 5)
                    assert await channel.unary_unary(CALL)(b"hi", timeout=5) == b"b.node hi"
                    await channel.close()
                parts = ("relay", "hub", hub.listen)
                assert await asyncio.to_thread(find_fault, site("b"), *parts) is None
                closed = find_fault(site("b"), *parts[:2], f"{connect_proxy.NAME}:1")
                assert isinstance(closed, PeerUnavailable) and "403 Forbidden" in closed.message
                assert proxy in closed.message and "secret" not in closed.message
                monkeypatch.setenv("no_proxy", ".invalid")
                assert "does not resolve" in find_fault(site("b"), *parts).message
            monkeypatch.delenv("no_proxy")
            gone = find_fault(site("b"), *parts)
            assert "through the proxy" in gone.message and "connection refused" in gone.message
        assert len(said) >= 5 and all("Basic bm9ydGg6c2VjcmV0IQ==" in each for each in said)

    run(scenario())


def test_the_proxy_comes_from_the_environment_and_is_for_hubs_only(monkeypatch):
    for name in ("https_proxy", "HTTPS_PROXY", "no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    assert proxy_to("hub", "hub.example.org") is None
    monkeypatch.setenv("https_proxy", "http://proxy.example.org")
    found = proxy_to("hub", "hub.example.org")
    assert (found.url, found.place) == ("http://proxy.example.org:3128", "proxy.example.org:3128")
    assert proxy_to("node", "north.example.org") is None
    monkeypatch.setenv("no_proxy", "localhost,.example.org")
    assert proxy_to("hub", "hub.example.org") is None
    monkeypatch.delenv("no_proxy")
    for wrong in ("https://proxy:1", "http://", "http://proxy:abc", "http://user:secret@:1"):
        monkeypatch.setenv("https_proxy", wrong)
        with pytest.raises(ConfigError, match="expected http://host:port") as caught:
            proxy_to("hub", "hub.example.org")
        assert "secret" not in caught.value.message
