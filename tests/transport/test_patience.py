"""umpc.transport.patience: limits that grow by the lag of this process itself."""

from __future__ import annotations

import asyncio
import os
import time

import pytest

from umpc.transport import patience
from umpc.transport.patience import OwnLag, own_lag, time_limit


class Clock:
    """An event loop's clock and timers, moved by hand."""

    def __init__(self):
        self.now = 100.0
        self.timers = []

    def time(self):
        return self.now

    def call_at(self, when, callback):
        self.timers.append(callback)
        return self

    def cancel(self):
        self.timers.clear()

    def wake_late(self, seconds):
        """Let the next timer be late by so many seconds."""
        self.now += patience.TICK + seconds
        self.timers.pop(0)()


def test_lag_adds_up_from_timers_that_are_late():
    clock = Clock()
    lag = OwnLag(clock)
    begun = lag.begin()
    for late in (0.0, 2.0, patience.UNNOTICED / 2, 3.0):
        clock.wake_late(late)
    assert lag.since(begun) == pytest.approx(5)
    clock.now += patience.TICK + 1.5  # the next timer is late already
    assert lag.since(begun) == pytest.approx(6.5)
    second = lag.begin()
    lag.end()
    assert lag.since(second) == pytest.approx(1.5) and len(clock.timers) == 1
    lag.end()
    assert clock.timers == []


def test_a_limit_ends_its_block_after_it_has_looked_around():
    async def scenario():
        waiting = asyncio.get_running_loop().create_future()
        seen = []
        with pytest.raises(TimeoutError):
            async with time_limit(0.01, lambda: seen.append(waiting.done())):
                await waiting
        assert seen == [False] and waiting.cancelled()
        async with time_limit(60):
            pass

    asyncio.run(scenario())


def test_time_in_which_the_process_did_not_run_is_given_back():
    """The message comes after the limit by the clock, and before it by the time of running."""

    async def scenario():
        message = asyncio.get_running_loop().create_future()
        async with time_limit(1.0):
            await asyncio.sleep(0)
            time.sleep(1.2)  # nothing of this process runs
            asyncio.get_running_loop().call_later(0.3, message.set_result, "came")
            return await message

    assert asyncio.run(scenario()) == "came"


def test_a_peers_time_goes_on_more_slowly_on_a_busy_machine(tmp_path, monkeypatch, limit):
    limit(patience, RUN_QUEUE=tmp_path / "loadavg")
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    limit(patience, SHARE_SECONDS=1e-9)  # each look reads the file
    assert patience.processor_share() == 1  # a system that does not tell
    for waiting, share in {1: 1, 4: 1, 8: 0.5, 16: 0.25, 900: 0.25}.items():
        patience.RUN_QUEUE.write_text(f"1.50 0.75 0.25 {waiting}/900 12345\n")
        assert patience.processor_share() == share
    patience.RUN_QUEUE.write_text("something else\n")
    assert patience.processor_share() == 1


def test_what_others_cancel_is_no_limit():
    async def scenario():
        async def block():
            async with time_limit(60):
                await asyncio.Event().wait()

        task = asyncio.create_task(block())
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return task.cancelled(), own_lag().timer

    assert asyncio.run(scenario()) == (True, None)


def test_a_sleep_counts_no_seconds_by_which_this_process_was_late():
    """A word of the peer may wait meanwhile to be read."""

    async def scenario() -> None:
        asyncio.get_running_loop().call_later(0.01, time.sleep, 0.2)
        assert await patience.counted_sleep(0.05) == 0.0

    asyncio.run(scenario())
