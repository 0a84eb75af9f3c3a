"""Which session a study has at a node."""

from __future__ import annotations

from umpc.node.gopa import GopaSession
from umpc.node.onemessage import OneMessageSession
from umpc.node.session import NodeSession
from umpc.node.shuffling import ShuffledSession
from umpc.node.tworounds import TwoRoundsSession
from umpc.studies.gopa import GOPA
from umpc.study import Study

Session = NodeSession | OneMessageSession | ShuffledSession


def session_of(study: Study) -> type[Session]:
    """By its protocol."""
    if not study.one_message:
        return NodeSession
    if study.shuffled:
        return ShuffledSession
    if study.protocol == GOPA:
        return GopaSession
    return TwoRoundsSession if study.asks else OneMessageSession
