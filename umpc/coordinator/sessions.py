"""Which session a study has at the coordinator."""

from __future__ import annotations

from umpc.coordinator.curator import CuratorCoordinator
from umpc.coordinator.onemessage import OneMessageCoordinator
from umpc.coordinator.session import CoordinatorSession
from umpc.coordinator.shuffling import ShuffledCoordinator
from umpc.coordinator.tworounds import TwoRoundsCoordinator
from umpc.study import Study


def coordinator_session(study: Study) -> CoordinatorSession:
    """By its protocol."""
    if not study.one_message:
        return CoordinatorSession(study)
    if study.shuffled:
        return ShuffledCoordinator(study)
    if study.central:
        return CuratorCoordinator(study)
    return (TwoRoundsCoordinator if study.asks else OneMessageCoordinator)(study)
