"""`ghazi-rounds`: the protocol object."""

from __future__ import annotations

from umpc.protocols.base.coordinator import CoordinatorSide
from umpc.protocols.base.one_message import OneMessageNode
from umpc.study.attempt import Attempt
from umpc.study.cost import Cost
from umpc.study.document import Study
from umpc.study.settings import Settings
from umpc_papers.ghazi_rounds.coordinator import RoundsCoordinator, cost_of_rounds
from umpc_papers.ghazi_rounds.mechanism import GhaziRounds
from umpc_papers.ghazi_rounds.messages import RoundsMessages
from umpc_papers.ghazi_rounds.node import RoundsNode
from umpc_papers.ghazi_rounds.settings import GhaziRoundsSettings
from umpc_papers.local.ghazi_ldp import GhaziLdp
from umpc_papers.local.protocol import CellProtocol
from umpc_papers.local.settings import quantiser_of


class GhaziRoundsProtocol(CellProtocol):
    """Some records answer a question that follows from the answers of the others."""

    settings: type[Settings] = GhaziRoundsSettings
    questions = 1

    def messages(self, study: Study) -> RoundsMessages:
        return RoundsMessages(GhaziRounds(GhaziLdp(study.exact_epsilon, quantiser_of(study))))

    def node_class(self, study: Study) -> type[OneMessageNode]:
        return RoundsNode

    def coordinator_class(self, study: Study) -> type[CoordinatorSide]:
        return RoundsCoordinator

    def cost(self, attempt: Attempt) -> Cost:
        return cost_of_rounds(self.messages(attempt.study), attempt.counts)
