"""What the coordinator gets out of a local protocol, and what the protocol costs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class LocalEstimate:
    """A U-statistic estimated from randomised records.

    value: unbiased for the statistic of the quantised records (`bell_auc`: but for discarded nodes).
    std: standard deviation of its randomisation, itself estimated from the messages.
    records: n.
    """

    value: float
    std: float
    records: int


@dataclass(frozen=True)
class LocalCost:
    """What a run of n records on some nodes takes.

    message_bytes: all nodes to the coordinator or shufflers. answer_bytes: back to the nodes, all together.
    rounds: messages that a node waits for or sends, one after the other.
    node_operations: of all nodes; coordinator_operations: additions, products and random words, as a number that
    grows like the time, not as time.
    """

    message_bytes: int
    rounds: int
    node_operations: int
    coordinator_operations: int
    answer_bytes: int = 0
