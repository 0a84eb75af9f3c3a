"""umpc/transport/channels.py: a process that is stopped blames no peer for it."""

from __future__ import annotations

import threading

import pytest

from umpc.errors import PolicyRefused, StudyAborted
from umpc.transport import channels
from umpc.transport.stream_reader import lost


def test_only_the_end_of_a_peer_is_a_consequence_of_the_own_end(monkeypatch):
    monkeypatch.setattr(channels, "_STOPPED", threading.Event())
    error, other = lost("coordinator", "study"), PolicyRefused("no")
    assert channels.of_own_end(error) is error
    channels.begin_end()
    assert channels.of_own_end(other) is other
    found = channels.of_own_end(error)
    with pytest.raises(StudyAborted, match="this process was stopped while the study ran"):
        raise found
    assert found.culprit is None and "coordinator went away" in found.detail
