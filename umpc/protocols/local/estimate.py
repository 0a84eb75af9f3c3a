"""The result of a local protocol, and its cost."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class LocalEstimate:
    """A U-statistic estimated from randomised records.

    Args:
        value: unbiased for the statistic of the quantised records; in `bell_auc`, discarded nodes
            add a bias.
        std: standard deviation of the randomisation, itself estimated from the messages.
        records: n.
    """

    value: float
    std: float
    records: int


@dataclass(frozen=True)
class LocalCost:
    """The cost of a run of n records on some nodes.

    Operations are additions, products and random words. Their number grows like the time, but is
    no time itself.

    Args:
        message_bytes: from all nodes to the coordinator or the shufflers.
        rounds: messages that a node sends or waits for one after the other.
        node_operations: of all nodes together.
        coordinator_operations: of the coordinator.
        answer_bytes: from the coordinator back to the nodes, all together.
    """

    message_bytes: int
    rounds: int
    node_operations: int
    coordinator_operations: int
    answer_bytes: int = 0
