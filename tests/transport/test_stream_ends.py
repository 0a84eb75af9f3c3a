"""umpc.transport.stream_ends without a network: which writes the first beat goes before."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest

from umpc.transport import stream_ends
from umpc.transport.stream_ends import EARLY_BYTES, StreamHeart

LARGE = 1 << 19


@pytest.mark.parametrize(
    ("seconds", "came", "written", "beats"),
    [
        (0.1, 0, EARLY_BYTES, False),
        (0.1, 0, EARLY_BYTES + 1, True),
        # half a megabyte in 0.1 s, so half a megabyte may leave
        (0.1, LARGE, LARGE, False),
        (0.1, LARGE, 3 * LARGE, True),
        # the line is slow, or what came says nothing about it
        (0.9, LARGE, LARGE, True),
        (0.1, 1000, LARGE, True),
        (0.0, 1000, LARGE, True),
    ],
)
def test_the_first_beat_goes_before_what_a_slow_line_would_hold_up(
    monkeypatch, seconds, came, written, beats
):
    clock = [5.0]
    begun = []

    async def beat_to(_, __, due, has_begun):
        await due.wait()
        begun.append(True)
        has_begun.set()
        await asyncio.Event().wait()
        return ""

    async def stopped(_):
        """Nobody asks."""

    async def scenario() -> None:
        heart = StreamHeart(None, "", stopped)
        clock[0] += seconds
        heart.came(bytes(came))
        await heart.before(bytes(written))
        await heart.stop()

    monkeypatch.setattr(stream_ends, "beat_to", beat_to)
    monkeypatch.setattr(stream_ends, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    asyncio.run(scenario())
    assert bool(begun) == beats


def test_what_was_written_before_counts_too(monkeypatch):
    begun = []

    async def beat_to(_, __, due, has_begun):
        await due.wait()
        begun.append(True)
        has_begun.set()
        return ""

    async def stopped(_):
        """Nobody asks."""

    async def scenario() -> None:
        heart = StreamHeart(None, "", stopped)
        for _ in range(2):
            await heart.before(bytes(EARLY_BYTES // 2))
        assert not begun
        await heart.before(bytes(1))
        assert begun
        await heart.stop()

    monkeypatch.setattr(stream_ends, "beat_to", beat_to)
    asyncio.run(scenario())
