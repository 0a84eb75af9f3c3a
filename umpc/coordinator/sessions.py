"""Which session a study has at the coordinator."""

from __future__ import annotations

from umpc.protocols.base.one_message_coordinator import OneMessageCoordinator
from umpc.protocols.central.coordinator import CuratorCoordinator
from umpc.protocols.ghazi_rounds.coordinator import TwoRoundsCoordinator
from umpc.protocols.ghazi_shuffle.coordinator import ShuffledCoordinator
from umpc.protocols.u_mpc.coordinator import CoordinatorSession
from umpc.study.document import Study


def coordinator_session(study: Study) -> CoordinatorSession:
    """By its protocol."""
    if not study.one_message:
        return CoordinatorSession(study)
    if study.shuffled:
        return ShuffledCoordinator(study)
    if study.central:
        return CuratorCoordinator(study)
    return (TwoRoundsCoordinator if study.asks else OneMessageCoordinator)(study)
