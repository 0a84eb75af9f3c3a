"""A hub behind the HTTP proxy of a site's network, which is a process here."""

from __future__ import annotations

import asyncio
import contextlib
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from transport_echo import CALL

sys.path.insert(0, str(Path(__file__).parent))
from behind_hub import echo_behind, hub_of, run

from tests.support import connect_proxy
from umpc.errors import ConfigError, PeerUnavailable
from umpc.transport.addresses import proxy_to
from umpc.transport.diagnose import find_fault
from umpc.transport.stream import connect


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


PAGE = "Content-Type: text/html\r\n\r\n<html>Log in</html>"


@pytest.mark.parametrize(
    ("user", "answer", "words"),
    [
        (
            "",
            "407 Authentication Required\r\n\r\n",
            "wants a name and a password: write http",
        ),
        ("", "407 No\r\nProxy-Authenticate: Basic realm=x\r\n\r\n", "wants a name and a password"),
        ("n:secret@", "407 No\r\n\r\n", "refuses the name and the password in https_proxy"),
        ("", "407 No\r\nProxy-Authenticate: NTLM\r\n\r\n", "by NTLM only, and umpc speaks Basic"),
        ("", "403 Forbidden\r\n\r\n", "allow CONNECT to this port"),
        ("", f"200 OK\r\n{PAGE}", "with a page, not with a tunnel, as a page for logging in"),
        ("", f"200 OK\r\n\r\n{PAGE}", "does not speak TLS .*proxy or page for logging in answers"),
    ],
)
def test_an_error_says_what_the_proxy_wants_and_not_what_the_hub_lacks(
    site, monkeypatch, user, answer, words
):
    """The answer comes to any request; the last proxy opens a way, to its own page."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(4096)
                connection.sendall(f"HTTP/1.1 {answer}".encode())
                connection.settimeout(10)
                with contextlib.suppress(OSError):
                    while connection.recv(4096):
                        pass

        thread = threading.Thread(target=serve)
        thread.start()
        port = listener.getsockname()[1]
        monkeypatch.setenv("https_proxy", f"http://{user}127.0.0.1:{port}")
        found = find_fault(site("b"), "relay", "hub", "hub.example.org:7443")
        thread.join()
    assert isinstance(found, PeerUnavailable) and re.search(words, found.message), found.message
    assert f"the proxy 127.0.0.1:{port}" in found.message and "secret" not in found.message


def test_the_proxy_comes_from_the_environment_and_is_for_hubs_only(monkeypatch):
    for name in ("https_proxy", "HTTPS_PROXY", "no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    assert proxy_to("hub", "hub.example.org", 7443) is None
    monkeypatch.setenv("https_proxy", "http://proxy.example.org")
    found = proxy_to("hub", "hub.example.org", 7443)
    assert (found.url, found.place) == ("http://proxy.example.org:3128", "proxy.example.org:3128")
    assert proxy_to("node", "north.example.org", 7443) is None
    monkeypatch.setenv("no_proxy", "localhost,.example.org")
    assert proxy_to("hub", "hub.example.org", 7443) is None
    monkeypatch.delenv("no_proxy")
    for entry, passed in (
        ("hub.example.org:7443", True),
        (".example.org:7443", True),
        ("localhost, hub.example.org:7443", True),
        ("hub.example.org:7444", False),
        ("other.example.org:7443", False),
    ):
        monkeypatch.setenv("no_proxy", entry)
        assert (proxy_to("hub", "hub.example.org", 7443) is None) is passed, entry
    monkeypatch.setenv("no_proxy", "[::1]:7443")
    assert proxy_to("hub", "::1", 7443) is None and proxy_to("hub", "::1", 7444) is not None
    monkeypatch.delenv("no_proxy")
    for wrong in ("https://proxy:1", "http://", "http://proxy:abc", "http://user:secret@:1"):
        monkeypatch.setenv("https_proxy", wrong)
        with pytest.raises(ConfigError, match="expected http://host:port") as caught:
            proxy_to("hub", "hub.example.org", 7443)
        assert "secret" not in caught.value.message
