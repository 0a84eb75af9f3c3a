"""umpc.cli.memory: a server keeps nothing of a study that has ended."""

from __future__ import annotations

import asyncio
import gc
import weakref

import pytest

from umpc.cli import memory
from umpc.cli.memory import Collector
from umpc.crypto.signing import is_signature


class Cycle:
    """An object that refers to itself, as a call of gRPC does."""

    def __init__(self) -> None:
        self.own = self


@pytest.fixture
def no_collector():
    """Let nothing else collect, and undo the freeze."""
    gc.disable()
    yield
    gc.enable()
    gc.unfreeze()


def test_what_studies_left_is_collected_once_for_all_that_ended(no_collector, monkeypatch):
    monkeypatch.setattr(memory, "COLLECT_SECONDS", 0.0)
    looks: list[str] = []

    async def scenario():
        collector = Collector()
        left = weakref.ref(Cycle())
        is_signature(b"", b"", b"")
        gc.callbacks.append(note)
        collector.collect_soon()
        collector.collect_soon()
        assert left() is not None
        while collector._due is not None:
            await asyncio.sleep(0)
        assert left() is None and looks == ["start", "stop"]
        assert not is_signature.cache_info().currsize
        collector.collect_soon()
        assert collector._due is not None, "the next study is collected, too"

    def note(phase, facts):
        looks.append(phase)

    try:
        asyncio.run(scenario())
    finally:
        gc.callbacks.remove(note)
