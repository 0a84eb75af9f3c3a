"""umpc.node.server: the end of a coordinator's stream ends a run, unless its last message left."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest

from umpc.errors import StudyAborted
from umpc.node.server import _listen
from umpc.study import messages as m

HANGS_UP = StudyAborted("the coordinator ended the study")


def is_cancelled(answering: bool, answered: bool, heard: object) -> bool:
    """Whether the run is cancelled once its coordinator was heard with an abort, or no more."""
    run = SimpleNamespace(answering=answering, answered=answered, aborted=False, keeps=False)

    async def receive() -> object:
        if isinstance(heard, Exception):
            raise heard
        return heard

    async def scenario() -> bool:
        steps = asyncio.create_task(asyncio.Event().wait())
        await _listen(receive, asyncio.Queue(), run, steps)
        await asyncio.wait({steps}, timeout=0)
        was_cancelled = steps.cancelling() > 0
        steps.cancel()
        return was_cancelled

    return asyncio.run(scenario())


@pytest.mark.parametrize(
    ("answering", "answered", "heard", "cancelled"),
    [
        (False, False, HANGS_UP, True),
        (True, False, HANGS_UP, False),
        (True, True, HANGS_UP, False),
        (True, False, m.Abort("north", "lost", False), True),
        (False, False, m.Abort("north", "lost", False), True),
    ],
)
def test_an_end_while_the_last_message_is_on_its_way_cancels_nothing(
    answering, answered, heard, cancelled
):
    assert is_cancelled(answering, answered, heard) is cancelled
