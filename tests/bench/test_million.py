"""The targets of a million records: each by its own figure."""

from __future__ import annotations

from bench.million import MOST_MEMORY, MOST_SECONDS, MOST_WALL, figures_of


def test_figures_at_the_edge_of_their_targets():
    found = figures_of(MOST_WALL - 0.1, MOST_SECONDS, MOST_MEMORY - 1)
    assert [each.verdict for each in found] == ["met"] * 3
    assert [each.measured for each in found] == ["39.9 s", "3.50 s", "600 MiB"]


def test_each_target_is_missed_by_its_own_figure():
    met = (10.0, 2.0, 300 << 20)
    for place, value in enumerate((MOST_WALL, MOST_SECONDS + 0.01, MOST_MEMORY)):
        values = [value if place == number else each for number, each in enumerate(met)]
        missed = [each.verdict == "missed" for each in figures_of(*values)]
        assert missed == [place == number for number in range(3)]
