"""umpc/transport/connections.py: a process that is stopped blames no peer for it."""

from __future__ import annotations

import threading

import pytest

from umpc.errors import PolicyRefused, StudyAborted
from umpc.testing import limited
from umpc.transport import connections
from umpc.transport.stream_reader import lost


def test_only_the_end_of_a_peer_is_a_consequence_of_the_own_end():
    error, other = lost("coordinator", "study"), PolicyRefused("no")
    with limited(connections, STOPPED=threading.Event()):
        assert connections.of_own_end(error) is error
        connections.begin_end()
        assert connections.of_own_end(other) is other
        found = connections.of_own_end(error)
    with pytest.raises(StudyAborted, match="this process was stopped while the study ran"):
        raise found
    assert found.culprit is None and "coordinator went away" in found.detail
