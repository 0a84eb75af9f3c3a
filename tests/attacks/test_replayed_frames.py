"""A node sends frames of a former study: nothing of them is used, and nothing is charged."""

from __future__ import annotations

import pytest

from umpc.errors import RemoteProtocolError
from umpc.study.report import Report

FACTS = {"edges": "all", "epsilon": "1000"}


@pytest.mark.attack(
    "a node replays frames of a former study", "honest", "noticed: study ends, free"
)
@pytest.mark.lies("replay")
def test_a_replayed_frame_ends_the_study_with_its_sender(liars):
    assert isinstance(liars.attempt(name="former-study", **FACTS), Report)
    ended = liars.attempt(name="replay-study", **FACTS)
    assert isinstance(ended, RemoteProtocolError), ended
    assert "node-3" in ended.message and "different content" in ended.message
    assert not any(liars.charged(name, "replay-study") for name in liars.names)
