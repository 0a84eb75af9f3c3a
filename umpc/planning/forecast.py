"""The forecast of a run that is about to begin: seconds, bytes and memory, from the plan's model.

The members' numbers of records and the joint seed are known by then, so bytes are exact. Delays and
lines are those that `umpc plan` takes when nothing is said about them.
"""

from __future__ import annotations

from dataclasses import dataclass

from umpc.mpc.attempt import SharedAttempt
from umpc.protocols.registry import protocol_of
from umpc.study.attempt import Attempt
from umpc.study.cost import Cost

USUAL_DELAY, USUAL_BANDWIDTH = 0.01, 12_500_000
"""10 ms one way and 100 Mbit/s, as `umpc plan` assumes."""
LONG = 60.0
"""A run that takes longer, in seconds, is announced."""
BRIEF_EDGES = 10_000
BRIEF_BYTES = 4_000_000
BRIEF_RECORDS = 50_000
"""A run with no more of each takes less than LONG, and needs no trial."""


@dataclass(frozen=True)
class Forecast:
    """The cost of a run. memory: of the largest process, in bytes."""

    seconds: float
    bytes: int
    memory: int


def forecast(attempt: Attempt) -> Forecast | None:
    """The cost of a run that takes longer than LONG; None for a shorter one.

    A trial of the study's kernels runs in this process for a fraction of a second, unless the
    numbers alone show that the run is short.
    """
    cost = protocol_of(attempt.study).cost(attempt)
    if _is_brief(attempt, cost):
        return None
    # These load the trials of all protocols, which would hold up a brief run.
    from umpc.planning.prediction import reference_table_of
    from umpc.planning.seconds import Network, predict_memory, seconds_of

    network = Network(USUAL_DELAY, USUAL_BANDWIDTH)
    table = reference_table_of(attempt, None, ",")
    seconds = seconds_of(attempt, cost, table, network, {}).total
    if seconds <= LONG:
        return None
    return Forecast(seconds, cost.bytes_online + cost.bytes_offline, predict_memory(attempt, cost))


def _is_brief(attempt: Attempt, cost: Cost) -> bool:
    if max(cost.most_sent, cost.bytes_dealt) > BRIEF_BYTES:
        return False
    if not isinstance(attempt, SharedAttempt):
        return attempt.sizes.records <= BRIEF_RECORDS
    edges = sum(cell.count for cell in attempt.hypergraph.shared_cells.values())
    return edges <= BRIEF_EDGES
