"""The result of a local protocol, its cost, and the check of its numbers of records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log, sqrt

from umpc.errors import LocalProtocolError


@dataclass(frozen=True)
class LocalEstimate:
    """A U-statistic estimated from randomised records.

    Args:
        value: unbiased for the statistic of the quantised records; in `bell_auc`, discarded nodes
            add a bias.
        std: standard deviation of the randomisation. Where it depends on the records it is
            estimated from the messages, and is larger than its estimate (`noise_estimate`).
        records: n.
        step, shape: of the law of the randomisation, as in `SumReport`. By default it is taken as
            Laplace, whose 95 % interval is longer than the normal law's.
    """

    value: float
    std: float
    records: int
    step: float = 0.0
    shape: float = 1.0


def likely_range(low: float, high: float, change: float, records: int) -> tuple[float, float]:
    """A range that an estimate leaves with a probability of at most 2^-64, whatever the records.

    Paper: McDiarmid 1989. Given the records, their answers are independent. Let the mean over all
    pairs move by at most c = 2·change/n when one answer is another one. Then
    P(|U - E U| >= s) <= 2 exp(-2 s²/(n c²)), which is 2^-64 for s = c sqrt(65 n ln2 / 2).

    Args:
        low, high: a range of E U.
        change: the most by which another answer of one record changes the value of a pair.
        records: n.
    """
    margin = 2 * change * sqrt(65 * log(2) / (2 * records))
    return low - margin, high + margin


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
    """

    message_bytes: int
    rounds: int
    node_operations: int
    coordinator_operations: int


def check_counts(messages: Sequence[bytes], counts: Sequence[int], least: int = 2) -> int:
    """The number of records of all nodes together.

    Args: counts: each node's records, in the order of the messages. least: the fewest in all.
    Raises: LocalProtocolError where messages and counts differ in number, a count is negative, or
    there are too few records.
    """
    if len(messages) != len(counts) or any(count < 0 for count in counts):
        raise LocalProtocolError(
            f"expected one message and one number of records, at least 0, for each node; "
            f"got {len(messages)} messages and {len(counts)} numbers, "
            f"of which the least is {min(counts, default=0)}"
        )
    total = sum(counts)
    if total < least:
        raise LocalProtocolError(f"expected at least {least} records in all, got {total}")
    return total
