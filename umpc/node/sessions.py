"""Which session a study has at a node."""

from __future__ import annotations

from umpc.protocols.base.one_message_node import OneMessageSession
from umpc.protocols.ghazi_rounds.node import TwoRoundsSession
from umpc.protocols.ghazi_shuffle.node import ShuffledSession
from umpc.protocols.gopa.node import GopaSession
from umpc.protocols.gopa.settings import GOPA
from umpc.protocols.u_mpc.node import NodeSession
from umpc.study.document import Study

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
