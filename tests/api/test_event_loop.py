"""Coroutines that plain code runs."""

from __future__ import annotations

import asyncio
import signal

import pytest

from umpc.api.event_loop import run_now
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
