"""The table of a small study's targets: medians, and which of them are met."""

from __future__ import annotations

from bench.peers.turns import Turn
from bench.targets import AHEAD, CELLS, PLAIN, TARGETS, figures_of


def turns(*in_all: float) -> list[Turn]:
    return [Turn(0.020, seconds, 0.009, 1, 1) for seconds in in_all]


def test_each_target_is_met_or_missed_by_its_own_median():
    taken = {PLAIN: turns(0.022, 0.020, 0.010), AHEAD: turns(0.013), CELLS: turns(0.059)}
    found = figures_of(taken, 130)
    assert len(found) == len(TARGETS) + 1
    assert [(each.work, each.measured, each.verdict) for each in found] == [
        (f"{PLAIN}: in all", "20.0 ms", "met"),
        (f"{PLAIN}: with connecting", "40.0 ms", "met"),
        (f"{PLAIN}: online", "9.0 ms", "missed"),
        (f"{AHEAD}: in all", "13.0 ms", "missed"),
        (f"{CELLS}: in all", "59.0 ms", "met"),
        (f"{PLAIN}: dealt for an edge", "130.0 bytes", "met"),
    ]
