"""A stopped or hung peer is noticed, on both sides; a busy one is left in peace."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from transport_echo import BUSY, CHAT, hold_the_interpreter, serving

from bench import proxy
from umpc.errors import PeerLost
from umpc.testing import lying
from umpc.transport import connections, heartbeat
from umpc.transport.connections import LINE_SECONDS
from umpc.transport.stream import RpcStream, as_received
from umpc.transport.tls import grpc

ROOT = Path(__file__).parents[2]
LONGEST = 120
"""Seconds for an event that must come."""


@pytest.fixture
def quick(limit):
    """Beats here follow each other quickly, so that silence is noticed after a second."""
    limit(heartbeat, BEAT_SECONDS=0.05)
    limit(heartbeat, SUSPECT_SECONDS=0.25)
    limit(heartbeat, SILENT_SECONDS=2.5)
    with lying("machine", processor_share=lambda _: 1.0):
        yield


@asynccontextmanager
async def program(*arguments):
    """Runs transport_echo.py; yields (process, its first line)."""
    command = [sys.executable, "-m", "tests.transport.transport_echo", *map(str, arguments)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    try:
        yield process, (await asyncio.to_thread(process.stdout.readline)).strip()
    finally:
        process.kill()
        process.communicate()


@asynccontextmanager
async def chatting(identity, address):
    """Yields a stream to node 'a' that echoes, after its first word came back."""
    stream = RpcStream("a", "chat", as_received)
    try:
        async with asyncio.timeout(LONGEST):
            await stream.connect(identity, "node", address)
            stream.begin(stream.channel.stream_stream(CHAT)())
            await stream.write(b"hello")
            assert await stream.next("chat") == b"hello"
            yield stream
    finally:
        await stream.close()


@asynccontextmanager
async def with_program(site, folder):
    """A program that serves, and a chat with it."""
    site("a")
    async with (
        program("serve", folder / "a") as (server, address),
        chatting(site("b"), address) as chat,
    ):
        yield server, chat


def test_a_client_notices_a_stopped_server(site, tmp_path, quick):
    async def scenario():
        async with with_program(site, tmp_path) as (server, chat):
            os.kill(server.pid, signal.SIGSTOP)
            with pytest.raises(PeerLost, match="a went away in step chat") as caught:
                await chat.next("chat")
            assert "nothing came from it" in caught.value.detail
            with pytest.raises(PeerLost):
                await chat.send(b"word", "chat")

    asyncio.run(scenario())


def test_a_writer_that_waits_for_a_stopped_server_is_told(site, tmp_path, quick):
    async def scenario():
        async with with_program(site, tmp_path) as (server, chat):
            os.kill(server.pid, signal.SIGSTOP)
            with pytest.raises(PeerLost, match="a went away"):
                while True:  # until the windows are full
                    await chat.send(bytes(1 << 20), "chat")

    asyncio.run(scenario())


def test_a_server_notices_a_client_that_stops_before_its_first_beat(site, tmp_path, quick, limit):
    limit(connections, BEATEN={CHAT})
    site("b")

    async def scenario():
        async with (
            serving(site("a")) as (address, echo),
            program("call", tmp_path / "b", address) as (client, line),
        ):
            assert line == "open" and not echo.ended.is_set()
            os.kill(client.pid, signal.SIGSTOP)
            await asyncio.wait_for(echo.ended.wait(), LONGEST)

    asyncio.run(scenario())


def test_a_hung_interpreter_is_noticed_although_grpc_still_answers(site, tmp_path, quick):
    async def scenario():
        async with with_program(site, tmp_path) as (_, chat):
            busy = asyncio.ensure_future(chat.channel.unary_unary(BUSY)(b"120"))
            with pytest.raises(PeerLost):
                await chat.next("chat")
            busy.cancel()

    asyncio.run(scenario())


def test_two_that_do_not_run_for_a_while_are_left_in_peace(site, tmp_path, quick):
    """This process holds its interpreter for longer than it would wait for a silent peer."""

    async def scenario():
        async with with_program(site, tmp_path) as (_, chat):
            hold_the_interpreter(1.3 * heartbeat.SILENT_SECONDS)
            await chat.write(b"still here")
            assert await chat.next("chat") == b"still here"

    asyncio.run(scenario())


def test_unread_data_do_not_stop_the_heartbeat(site, quick):
    heard, beats = asyncio.Event(), 0

    def count(honest, silence):
        nonlocal beats
        beats += 1
        if beats == 200:
            heard.set()
        honest(silence)

    async def scenario():
        async with serving(site("a")) as (address, _), chatting(site("b"), address) as chat:
            chat.ahead = 0
            flood = asyncio.create_task(_flood(chat))
            with lying("machine", heard=count):
                await heard.wait()
            flood.cancel()
            assert chat.is_open

    asyncio.run(scenario())


async def _flood(chat):
    while True:
        await chat.write(bytes(1 << 20))


async def over_a_slow_line(site):
    """gRPC's first window of 64 KiB takes longer over this line than any silence is borne."""
    async with serving(site("a")) as (address, _):
        slow = await proxy.serve(address, 0, 32_000)
        async with chatting(site("b"), slow) as chat:
            message = os.urandom(100_000)
            await chat.write(message)
            assert await chat.next("chat") == message


def test_a_message_that_comes_slowly_is_life(site, limit, quick):
    limit(heartbeat, SILENT_SECONDS=1.0)
    asyncio.run(over_a_slow_line(site))


def test_without_the_kernels_count_the_slow_message_would_be_silence(site, limit, quick):
    limit(heartbeat, SILENT_SECONDS=1.0)
    with lying("machine", received_bytes=lambda *_: 0), pytest.raises(PeerLost):
        asyncio.run(over_a_slow_line(site))


def test_the_kernel_ends_a_cut_line(site):
    """It ends at both ends after the time that data may stay unacknowledged."""

    async def scenario():
        async with serving(site("a")) as (address, _), chatting(site("b"), address):
            port = int(address.rpartition(":")[2])
            return [
                copy.getsockopt(6, TCP_USER_TIMEOUT)
                for file in heartbeat.own_sockets()
                for copy in [heartbeat.copy_of(file)]
                if port in _ports(copy)
            ]

    limits = asyncio.run(scenario())
    assert [limit for limit in limits if limit] == [LINE_SECONDS * 1000] * 2


TCP_USER_TIMEOUT = 18


def _ports(copy):
    try:
        return {copy.getsockname()[1], copy.getpeername()[1]}
    except (OSError, IndexError):
        return set()


def test_grpc_pings_of_its_own_neither_end_a_stream_nor_are_needed():
    from umpc.transport import connections

    for options in (dict(connections.SERVER), dict(connections.CHANNEL)):
        assert options["grpc.keepalive_time_ms"] >= 24 * 3600 * 1000
        assert options["grpc.http2.ping_timeout_ms"] == connections.NEVER_MS
    assert grpc is not None
