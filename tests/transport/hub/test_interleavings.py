"""Every order of what two ends of a session and a hub do: nothing is lost, doubled or waits.

`model.py` has the states. Without a failure of the line all orders are tried, with failures many.
"""

from __future__ import annotations

import asyncio
import random
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from model import Model, Script

WALKS = 60
TICKS = 60
"""Seconds within which both ends have settled all after the line broke."""

ANSWERS = (("await",), ("write",))
SCRIPTS = {
    "one request": Script(
        (("begin",), ("write",), ("half",), ("await",), ("await_end",), ("close",)), ANSWERS
    ),
    "a cancelled call": Script((("begin",), ("write",), ("cancel",)), (("await",), ("hang",))),
    "a last record that crosses the end": Script(
        (("begin",), ("write",), ("await",), ("half",), ("cancel",)), ANSWERS
    ),
    "an end that is awaited": Script(
        (("begin",), ("write",), ("await",), ("half",), ("await_end",), ("close",)),
        (*ANSWERS, ("await_half",)),
    ),
    "a call that failed": Script(
        (("begin",), ("write",), ("await",), ("cancel",)), (*ANSWERS, ("end", 2))
    ),
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_in_no_order_does_anybody_wait_for_time_to_pass(name):
    async def scenario():
        seen, waiting = set(), [Model(SCRIPTS[name], 0)]
        while waiting:
            state = waiting.pop()
            actions = state.actions()
            assert actions or state.is_complete, state.history
            for each in map(state.after, actions):
                if each.key not in seen:
                    seen.add(each.key)
                    waiting.append(each)
        assert len(seen) > 20

    asyncio.run(scenario())


@pytest.mark.parametrize("name", SCRIPTS)
def test_after_broken_connections_both_ends_go_on_and_settle_in_time(name):
    async def scenario():
        for seed in range(WALKS):
            state, ticks, draw = Model(SCRIPTS[name], 2), 0, random.Random(seed)
            while not state.is_complete:
                actions = state.actions()
                if draw.random() < 0.1:
                    actions = state.failures() or actions
                if not actions:
                    ticks += 1
                    assert ticks < TICKS, (seed, state.history)
                state.do(draw.choice(actions or [("tick",)]))

    asyncio.run(scenario())
