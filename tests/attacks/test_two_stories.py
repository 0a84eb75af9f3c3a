"""A coordinator tells two nodes two stories."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from umpc.errors import StepTimeout, UmpcError
from umpc.study import messages as m

SECONDS = 5


def two_stories(node: str, message):
    """Only node-1 hears that node-2 has one record more."""
    if not isinstance(message, m.Agree) or node != "node-1":
        return message
    first, second, *others = message.members
    return replace(message, members=(first, replace(second, records=second.records + 1), *others))


@pytest.mark.attack(
    "a coordinator tells two nodes two stories", "both", "noticed: coordinator named"
)
@pytest.mark.lies("two")
def test_the_coordinator_is_named_and_not_the_dealer(liars):
    started = time.monotonic()
    ended = liars.attempt(two_stories, name="two-stories", seconds_per_step=SECONDS)
    assert isinstance(ended, UmpcError) and not isinstance(ended, StepTimeout), ended
    assert ended.culprit == "coordinator", ended
    assert time.monotonic() - started < SECONDS, "nobody waits for a step's end"
    assert not any(liars.charged(node, "two-stories") for node in liars.names)
