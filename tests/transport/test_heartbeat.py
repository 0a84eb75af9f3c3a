"""umpc.transport.heartbeat without a network: silence, life, and who is cancelled."""

from __future__ import annotations

import asyncio

import pytest

from umpc.testing import lying
from umpc.transport import heartbeat
from umpc.transport.heartbeat import (
    DATA_BYTES,
    SILENT_SECONDS,
    SUSPECT_SECONDS,
    Calls,
    Silence,
    address_of,
    numeric,
)


def test_silence_ends_with_a_beat_or_with_data_and_not_with_grpcs_own_answers():
    silence = Silence()
    silence.passed(SUSPECT_SECONDS)
    assert silence.is_suspect and not silence.is_over
    silence.counted(1_000_000)  # the first look knows no growth
    assert silence.seconds == SUSPECT_SECONDS
    silence.counted(1_000_000 + DATA_BYTES - 1)
    assert silence.seconds == SUSPECT_SECONDS
    silence.counted(1_000_000 + 2 * DATA_BYTES)
    assert silence.seconds == 0
    silence.passed(SILENT_SECONDS)
    assert silence.is_over
    silence.heard()
    assert not silence.is_suspect
    silence.passed(SUSPECT_SECONDS)
    silence.counted(9_000_000)  # what came before the last beat is no life after it
    assert silence.is_suspect


class Ends:
    """One end of the call; the other end beats so many times and is then silent."""

    def __init__(self, beats: int):
        self.beats = beats
        self.written = 0

    async def read(self):
        if self.beats == 0:
            await asyncio.Event().wait()
        self.beats -= 1
        await asyncio.sleep(0)
        return b""

    async def write(self, message):
        self.written += 1
        if self.written > 2:
            await asyncio.Event().wait()  # the other end takes no more


@pytest.fixture
def quick(limit):
    limit(heartbeat, BEAT_SECONDS=0.01)
    limit(heartbeat, SUSPECT_SECONDS=0.02)
    limit(heartbeat, SILENT_SECONDS=0.05)
    with lying("machine", processor_share=lambda _: 1.0):
        yield


class SlowCall:
    """A call of gRPC whose beats leave late. Two writes at once end it, as they do there."""

    def __init__(self):
        self.writes = 0
        self.cancelled = False
        self._is_writing = False
        self._ended = asyncio.Event()
        self.may_leave = asyncio.Event()

    def stream_stream(self, method):
        return lambda: self

    async def read(self):
        await self._ended.wait()
        return heartbeat.grpc.aio.EOF

    async def write(self, message):
        if self._is_writing:
            self._ended.set()
        self._is_writing = True
        await self.may_leave.wait()
        self._is_writing = False
        self.writes += 1
        if self.writes == 3:
            self._ended.set()

    def cancel(self):
        self.cancelled = True


def test_a_first_beat_that_is_slow_to_leave_is_waited_for_before_the_next_one(quick, limit):
    async def run():
        call, looks = SlowCall(), 0

        class Seen:
            @staticmethod
            def received_bytes(known):
                nonlocal looks
                looks += 1
                if looks == 3:
                    asyncio.run_coroutine_threadsafe(_set(call.may_leave), loop)
                return DATA_BYTES * looks  # the server's data come, so it lives

        async def _set(event):
            event.set()

        loop = asyncio.get_running_loop()
        limit(heartbeat, SURVEY=Seen)
        begun = asyncio.Event()
        reason = await heartbeat.beat_to(call, "127.0.0.1:1", begun)
        assert reason == heartbeat.ENDED and begun.is_set() and call.cancelled
        return call.writes

    assert asyncio.run(run()) == 3


def test_the_calls_of_one_connection_end_together_and_no_others():
    async def scenario():
        calls = Calls()

        async def call(peer):
            with calls.running(peer):
                await asyncio.Event().wait()

        tasks = [asyncio.create_task(call(peer)) for peer in ("one", "one", "two")]
        await asyncio.sleep(0)
        calls.cancel("one")
        await asyncio.wait(tasks[:2])
        calls.cancel("nobody")
        left = tasks[2].done(), dict(calls.tasks)
        tasks[2].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return left, calls.tasks

    (is_done, running), after = asyncio.run(scenario())
    assert not is_done and list(running) == ["two"] and not after


@pytest.mark.parametrize("method", ["beaten", "other"])
@pytest.mark.parametrize("beats", [False, True])
def test_a_caller_that_never_begins_to_beat_loses_its_calls_that_need_beats(quick, method, beats):
    """A caller that hangs in its first second has not begun to beat."""

    class Context(Ends):
        def peer(self):
            return "ipv4:127.0.0.1:1"

        async def abort(self, *_):
            pass

    async def scenario() -> bool:
        calls = Calls({"beaten"})

        async def call():
            with calls.running("ipv4:127.0.0.1:1", method):
                await asyncio.Event().wait()

        running = asyncio.create_task(call())
        await asyncio.sleep(0.02)
        beating = asyncio.create_task(calls.answer(None, Context(10**6))) if beats else None
        done, _ = await asyncio.wait(
            {running}, timeout=5 if method == "beaten" and not beats else 0.3
        )
        for task in (running, beating):
            if task is not None:
                task.cancel()
                await asyncio.wait({task})
        assert not calls.tasks and not calls.due and not calls.beating
        return bool(done)

    assert asyncio.run(scenario()) == (method == "beaten" and not beats)


def test_nothing_waits_for_the_first_beat_of_a_call_that_has_ended(quick):
    async def scenario() -> None:
        calls = Calls({"beaten"})
        with calls.running("ipv4:127.0.0.1:1", "beaten"):
            assert calls.due
        assert not calls.due
        await asyncio.sleep(0.03)
        assert not calls.due

    asyncio.run(scenario())


def test_addresses_are_compared_in_their_shortest_form():
    for text, address in {
        "ipv4:10.0.0.7:7443": ("10.0.0.7", 7443),
        "ipv6:%5B::1%5D:7443": ("::1", 7443),
        "ipv6:[::ffff:10.0.0.7]:1": ("10.0.0.7", 1),
    }.items():
        assert address_of(text) == [address]
    assert address_of("unix:/tmp/socket") == [] and address_of("") == []
    assert numeric("fe80::1%eth0", 1) == ("fe80::1", 1)
