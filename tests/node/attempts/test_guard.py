"""A violation ends a study's steps at once, until the node has settled for its charge."""

from __future__ import annotations

import asyncio

import pytest

from umpc.errors import RemoteProtocolError
from umpc.node.attempts.attempt_runner import AttemptRunner

VIOLATION = RemoteProtocolError("node-3 broke the protocol", culprit="node-3", step="evaluate")


def test_a_violation_that_nobody_waits_for_ends_the_steps():
    ended = []

    async def steps() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ended.append(True)

    async def scenario() -> None:
        runner = AttemptRunner(None, None)
        asyncio.get_running_loop().call_later(0.01, runner._note_violation, VIOLATION)
        with pytest.raises(RemoteProtocolError) as caught:
            await asyncio.wait_for(runner.guard(steps()), 5)
        assert caught.value is VIOLATION and ended == [True]

    asyncio.run(scenario())


def test_a_violation_before_the_charge_forbids_it():
    async def scenario() -> None:
        runner = AttemptRunner(None, None)
        runner._note_violation(VIOLATION)
        with pytest.raises(RemoteProtocolError):
            runner.settle()

    asyncio.run(scenario())


def test_a_violation_after_the_last_look_does_not_stop_what_may_be_paid():
    done = []

    async def scenario() -> None:
        runner = AttemptRunner(None, None)

        async def steps() -> None:
            runner.settle()
            runner._note_violation(VIOLATION)
            await asyncio.sleep(0.01)
            done.append(True)

        await runner.guard(steps())

    asyncio.run(scenario())
    assert done == [True]


def test_steps_that_end_or_are_cancelled_end_the_guard():
    async def scenario() -> None:
        runner = AttemptRunner(None, None)
        await runner.guard(asyncio.sleep(0))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(runner.guard(asyncio.sleep(60)), 0.01)

    asyncio.run(scenario())
