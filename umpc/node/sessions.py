"""Which session a study has at a node."""

from __future__ import annotations

from umpc.node.onemessage import OneMessageSession
from umpc.node.session import NodeSession
from umpc.node.shuffling import ShuffledSession
from umpc.study import Study

Session = NodeSession | OneMessageSession | ShuffledSession


def session_of(study: Study) -> type[Session]:
    """The session of a study, whatever its protocol."""
    if study.shuffled:
        return ShuffledSession
    return OneMessageSession if study.one_message else NodeSession
