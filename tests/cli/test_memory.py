"""umpc.cli.memory: a server keeps nothing of a study that has ended."""

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
import weakref

import pytest

from umpc.cli import memory
from umpc.cli.memory import Collector
from umpc.crypto.signing import is_signature
from umpc.testing import lying


class Cycle:
    """An object that refers to itself, as a call of gRPC does."""

    def __init__(self) -> None:
        self.own = self


class Clock:
    """The module `time`, at these times one after another."""

    def __init__(self, *times: float) -> None:
        self._times = iter(times)

    def monotonic(self) -> float:
        return next(self._times)


@pytest.fixture
def no_collector():
    """Let nothing else collect, and undo the freeze."""
    gc.disable()
    thresholds = gc.get_threshold()
    yield
    gc.enable()
    gc.unfreeze()
    gc.set_threshold(*thresholds)


def test_what_studies_left_is_collected_once_for_all_that_ended(no_collector, limit):
    limit(memory, COLLECT_SECONDS=0.0)
    looks: list[str] = []

    async def scenario():
        collector = Collector()
        left = weakref.ref(Cycle())
        is_signature(b"", b"", b"")
        gc.callbacks.append(note)
        collector.collect_soon()
        collector.collect_soon()
        assert left() is not None
        while collector.due is not None:
            await asyncio.sleep(0)
        assert left() is None and looks == ["start", "stop"]
        assert not is_signature.cache_info().currsize
        collector.collect_soon()
        assert collector.due is not None, "the next study is collected, too"
        assert gc.get_threshold() == memory.THRESHOLDS

    def note(phase, facts):
        looks.append(phase)

    try:
        asyncio.run(scenario())
    finally:
        gc.callbacks.remove(note)


def test_a_long_collection_is_followed_by_a_long_rest(no_collector, limit):
    """Thousands of members' objects take seconds, and every study that ends asks for a look."""
    limit(memory, COLLECT_SECONDS=0.0)
    clock = Clock(100.0, 100.0, 102.0, 110.0)

    async def scenario():
        collector = Collector()
        collector.collect_soon()  # it is 100 s
        while collector.due is not None:
            await asyncio.sleep(0)  # from 100 s to 102 s
        loop = asyncio.get_running_loop()
        collector.collect_soon()  # it is 110 s
        waits = collector.due.when() - loop.time()
        assert waits == pytest.approx(memory.REST * 2 - 8, abs=0.5)

    with lying("machine", time=lambda _: clock):
        asyncio.run(scenario())


def test_a_command_starts_no_threads_of_blas():
    """At the start they wait for work in a loop, and take as long as all imports of numpy."""
    program = (
        "import os, sys; from umpc.cli.main import main; sys.argv = ['umpc', 'kernels']; main(); "
        "import numpy; sys.exit(len(os.listdir('/proc/self/task')) - 1)"
    )
    free = {name: text for name, text in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    ended = subprocess.run([sys.executable, "-c", program], env=free, capture_output=True)
    assert ended.returncode == 0, ended.stderr
