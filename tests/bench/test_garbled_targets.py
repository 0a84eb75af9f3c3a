"""The lines of studies without a dealer: medians, bytes an edge, and which targets are met."""

from __future__ import annotations

from bench.garbled_targets import ALL, BANK_ALL, BANK_POOLED, EDGES, POOLED, figures_of
from bench.peers.turns import Turn


def turns(sent: int, *in_all: float) -> list[Turn]:
    return [Turn(0.020, seconds, 0.009, (sent - 7) * EDGES, 7 * EDGES) for seconds in in_all]


def test_each_target_is_met_or_missed_by_its_own_median():
    taken = {
        ALL: turns(200, 0.2, 0.094, 0.01),
        POOLED: turns(200, 0.061),
        BANK_ALL: turns(1301, 0.096),
        BANK_POOLED: turns(1301, 0.06),
    }
    assert [(each.work, each.measured, each.verdict) for each in figures_of(taken)] == [
        (f"{ALL}: in all", "94.0 ms", "met"),
        (f"{POOLED}: in all", "61.0 ms", "missed"),
        (f"{BANK_ALL}: in all", "96.0 ms", "missed"),
        (f"{BANK_POOLED}: in all", "60.0 ms", "met"),
        (f"{POOLED}: sent for an edge", "200 bytes", "met"),
        (f"{BANK_POOLED}: sent for an edge", "1301 bytes", "missed"),
    ]
