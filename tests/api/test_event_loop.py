"""Coroutines that plain code runs."""

from __future__ import annotations

import asyncio
import signal

import pytest

from umpc.api.study import run_now
from umpc.errors import PeerUnavailable


def test_a_peer_that_is_lost_because_of_ctrl_c_is_an_interruption():
    async def study() -> None:
        try:
            signal.raise_signal(signal.SIGINT)
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise PeerUnavailable("node-1 went away", culprit="node-1") from None

    with pytest.raises(KeyboardInterrupt):
        run_now(study())


def test_a_failure_of_its_own_comes_back():
    async def study() -> None:
        raise PeerUnavailable("node-1 went away", culprit="node-1")

    with pytest.raises(PeerUnavailable):
        run_now(study())


def test_a_late_word_of_grpc_to_a_former_loop_is_not_told_and_other_faults_are(caplog):
    """The callback is of the present loop: gRPC calls it, and it calls the closed one."""
    run_now(asyncio.sleep(0))

    class PollerCompletionQueue:
        def _handle_events(self) -> None:
            former.call_soon_threadsafe(print)

    former = asyncio.new_event_loop()
    former.close()

    async def study() -> None:
        asyncio.get_running_loop().call_soon(PollerCompletionQueue()._handle_events)
        await asyncio.sleep(0)
        assert not caplog.records
        asyncio.get_running_loop().call_soon(lambda: former.call_soon_threadsafe(print))
        await asyncio.sleep(0)

    run_now(study())
    assert [record.name for record in caplog.records] == ["asyncio"]
    assert "Event loop is closed" in caplog.text
