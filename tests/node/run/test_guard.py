"""umpc.node.run.context: a violation ends the steps at once, until the node has
settled."""

from __future__ import annotations

import asyncio

import pytest

from umpc.errors import RemoteProtocolError
from umpc.node.run.context import ViolationGuard

VIOLATION = RemoteProtocolError("node-3 broke the protocol", culprit="node-3", step="evaluate")


def test_a_violation_that_nobody_waits_for_ends_the_steps():
    ended = []

    async def steps() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ended.append(True)

    async def scenario() -> None:
        guard = ViolationGuard()
        asyncio.get_running_loop().call_later(0.01, guard.note, VIOLATION)
        with pytest.raises(RemoteProtocolError) as caught:
            await asyncio.wait_for(guard.run(steps()), 5)
        assert caught.value is VIOLATION and ended == [True]

    asyncio.run(scenario())


def test_a_violation_before_the_charge_forbids_it():
    async def scenario() -> None:
        guard = ViolationGuard()
        guard.note(VIOLATION)
        with pytest.raises(RemoteProtocolError):
            guard.settle()

    asyncio.run(scenario())


def test_a_violation_after_the_last_look_does_not_stop_what_may_be_paid():
    done = []

    async def scenario() -> None:
        guard = ViolationGuard()

        async def steps() -> None:
            guard.settle()
            guard.note(VIOLATION)
            await asyncio.sleep(0.01)
            done.append(True)

        await guard.run(steps())

    asyncio.run(scenario())
    assert done == [True]


def test_steps_that_end_or_are_cancelled_end_the_guard():
    async def scenario() -> None:
        guard = ViolationGuard()
        await guard.run(asyncio.sleep(0))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(guard.run(asyncio.sleep(60)), 0.01)

    asyncio.run(scenario())
