"""A stopped peer is noticed in seconds, on both sides; and a busy one is left in peace."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from contextlib import asynccontextmanager

import pytest
import transport_echo
from transport_echo import BUSY, BUSY_SECONDS, CHAT, hold_the_interpreter, serving

from umpc.transport.channels import PING_ANSWER_MS, PING_EVERY_MS, connect
from umpc.transport.tls import grpc

NOTICED_WITHIN = 10
KEEPALIVE_SECONDS = (PING_EVERY_MS + PING_ANSWER_MS) / 1000


@asynccontextmanager
async def program(*arguments):
    """Runs transport_echo.py; yields (process, its first line)."""
    command = [sys.executable, transport_echo.__file__, *map(str, arguments)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        yield process, (await asyncio.to_thread(process.stdout.readline)).strip()
    finally:
        process.kill()
        process.communicate()


async def open_chat(channel):
    call = channel.stream_stream(CHAT)()
    await call.write(b"hello")
    assert await call.read() == b"hello"
    await asyncio.sleep(0.3)  # idle: no ping of gRPC's own is under way
    return call


def test_a_client_notices_a_stopped_server(site, tmp_path):
    site("a")

    async def scenario():
        async with program("serve", tmp_path / "a") as (server, address):
            channel = await connect(site("b"), "a", "node", address, 15)
            call = await open_chat(channel)
            os.kill(server.pid, signal.SIGSTOP)
            start = time.monotonic()
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await asyncio.wait_for(call.read(), NOTICED_WITHIN)
            seconds = time.monotonic() - start
            await channel.close()
            return caught.value.code(), seconds

    code, seconds = asyncio.run(scenario())
    print(f"a client noticed a stopped server after {seconds:.1f} s")
    assert code is grpc.StatusCode.UNAVAILABLE
    assert seconds < NOTICED_WITHIN


def test_a_server_notices_a_stopped_client(site, tmp_path):
    site("b")

    async def scenario():
        async with (
            serving(site("a")) as (address, echo),
            program("call", tmp_path / "b", address) as (client, line),
        ):
            assert line == "open" and not echo.ended.is_set()
            os.kill(client.pid, signal.SIGSTOP)
            start = time.monotonic()
            await asyncio.wait_for(echo.ended.wait(), NOTICED_WITHIN)
            return time.monotonic() - start

    seconds = asyncio.run(scenario())
    print(f"a server noticed a stopped client after {seconds:.1f} s")
    assert seconds < NOTICED_WITHIN


def test_an_idle_stream_is_left_in_peace(site):
    """gRPC's defaults end it after 10 s: GOAWAY, "too many pings"."""

    async def scenario():
        async with serving(site("a")) as (address, _):
            channel = await connect(site("b"), "a", "node", address, 15)
            chat = await open_chat(channel)
            await asyncio.sleep(12)
            await chat.write(b"still here")
            assert await chat.read() == b"still here"
            await channel.close()

    asyncio.run(scenario())


def test_a_busy_interpreter_is_left_in_peace(site, tmp_path):
    """Both processes hold the interpreter lock longer than keepalive waits, on an open stream."""
    assert BUSY_SECONDS > KEEPALIVE_SECONDS + 1
    site("a")

    async def scenario():
        async with program("serve", tmp_path / "a") as (_, address):
            channel = await connect(site("b"), "a", "node", address, 15)
            chat = await open_chat(channel)
            busy = asyncio.create_task(asyncio.wait_for(channel.unary_unary(BUSY)(b"done"), 30))
            await asyncio.sleep(0.5)
            hold_the_interpreter(BUSY_SECONDS)
            assert await busy == b"done"
            await chat.write(b"still here")
            assert await chat.read() == b"still here"
            await channel.close()

    asyncio.run(scenario())
