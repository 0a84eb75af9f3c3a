"""The verdict of `bench.leaks`: growth, descriptors and a slower study are each noticed."""

from __future__ import annotations

from dataclasses import replace

from bench.leaks import Look, verdict

FLAT = [
    Look(studies, {"node-1": 70.0, "hub": 50.0}, {"node-1": 20, "hub": 9}, 0.1, 0.2, 0.3)
    for studies in range(100, 1100, 100)
]


def words(looks: list[Look]) -> list[str]:
    """The first word of each line: of node-1, of hub, of the time."""
    return [line.partition(":")[0] for line in verdict(looks)]


def test_flat_processes_meet_the_target_whatever_happened_before_they_settled():
    start = replace(FLAT[0], studies=1, memory={"node-1": 40.0, "hub": 30.0}, least=9.0)
    assert words([start, *FLAT]) == ["met", "met", "met"]
    busy = replace(FLAT[5], files={"node-1": 25, "hub": 9}, mean=5.0)
    assert words([*FLAT[:5], busy, *FLAT[6:]]) == ["met", "met", "met"]


def test_each_kind_of_growth_is_missed():
    last = FLAT[-1]
    grown = replace(last, memory={"node-1": 75.1, "hub": 54.9})
    assert words([*FLAT[:-1], grown]) == ["missed", "met", "met"]
    leaked = [replace(look, files={"node-1": 20, "hub": 10}) for look in FLAT[1:]]
    assert words([FLAT[0], *leaked]) == ["met", "missed", "met"]
    assert words([*FLAT[:-1], replace(last, least=0.13)]) == ["met", "met", "missed"]


def test_few_studies_have_no_verdict():
    assert words(FLAT[:1]) == ["no verdict"]
