"""Which session runs a study at a node."""

from __future__ import annotations

from umpc.node.gopa import GopaSession
from umpc.node.onemessage import OneMessageSession
from umpc.node.session import NodeSession
from umpc.node.tworounds import TwoRoundsSession
from umpc.study import Study
from umpc.studygopa import GOPA


def session_kind(study: Study) -> type[OneMessageSession] | type[NodeSession]:
    """By its protocol."""
    if not study.one_message:
        return NodeSession
    if study.protocol == GOPA:
        return GopaSession
    return TwoRoundsSession if study.asks else OneMessageSession
