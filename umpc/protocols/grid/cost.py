"""The cost of a grid: a vector of cells up and down for each node, and what U-MPC costs besides."""

from __future__ import annotations

from dataclasses import replace

from umpc.mpc.backends import predict
from umpc.protocols.grid.attempt import GridAttempt
from umpc.protocols.grid.operators import DyadicGrid, Grid
from umpc.protocols.grid.total import HISTOGRAM, TOTAL
from umpc.protocols.grid.without_dealer import DealerlessAttempt
from umpc.study.cost import Cost, sent_by_round
from umpc.study.messages import frame_of

OPERATION_SECONDS = 5e-9
"""Seconds of one ring operation on a cell, with what moves the cell.

`python -m bench grid` prints runs.
"""


def work_seconds(grid: Grid | DyadicGrid) -> float:
    """Seconds in which one process makes the masks of a table and applies its operators, about."""
    return OPERATION_SECONDS * (grid.cells + sum(form.cost for form in grid.forms))


def cost_of(attempt: GridAttempt) -> Cost:
    """Rounds and bytes of an attempt, exactly.

    A node's bytes are those of its masked histogram and of the total that it gets. Without a dealer
    they are those of its cross terms.
    """
    rest = predict(attempt)
    if isinstance(attempt, DealerlessAttempt):
        return replace(rest, bytes_offline=rest.bytes_offline + _set_up_bytes(attempt))
    layout = attempt.layout
    vector = {(step, 0): layout.wire_bytes(step) for step in (HISTOGRAM, TOTAL)}
    return replace(rest, sent=tuple(sent_by_round(vector) for _ in attempt.members))


def _set_up_bytes(attempt: DealerlessAttempt) -> int:
    """Bytes of the channels of all cross terms."""
    ends = [(nodes, place) for nodes in attempt.pairs for place in (nodes, nodes[::-1])]
    return sum(
        frame_of(shape, nodes, 0).wire_bytes
        for nodes, place in ends
        for shape in attempt.set_up_shapes(*place)
    )
