"""A study of people on its worst neighbours: the real code within ε, and runs find broken code.

One aggregator pools what it sees with the coordinator and all other people: what is judged is the
release less its own noise.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import pytest

from tests.audit import mutants
from tests.audit.auditor import Case, Claim, audit, law_of
from tests.audit.test_grid import view
from tests.support.people import people_study
from tests.support.protocols import noise_of
from tests.support.studies import KENDALL, clear_sums
from umpc.mpc.attempt import edges_of
from umpc.protocols.registry import checked, delta_of
from umpc.study.sizes import Sizes
from umpc.testing import lying

THREE = ("0", "2")
LAW, BOTH = ("law",), ("loss", "law")


@dataclass(frozen=True)
class PeopleCase(Case):
    """A case of one table of people, whose exact sums are over all of their pairs."""

    @cached_property
    def claim(self) -> Claim:
        tables = self.tables
        sizes = Sizes(checked(self.study), len(tables[0][0]["x"]))
        graph = edges_of(self.study, bytes(32), [(0, sizes.records)])
        exact = [tuple(clear_sums(self.study, each, graph)) for each in tables]
        changes = tuple(abs(b - a) for a, b in zip(*exact, strict=True))
        assert changes == sizes.sensitivities, "not the worst case"
        laws = tuple(law_of(noise) for noise in noise_of(sizes))
        return Claim(float(self.study.exact_epsilon), delta_of(sizes), laws, *exact)


def half_of_the_people():
    """δ_max is that of n/2 people, as if each aggregator had half of them."""
    return lying("everybody", max_degree=lambda honest, *counts: honest(*counts) // 2)


CASE = PeopleCase(
    "people, three of them",
    people_study(KENDALL, x=THREE, y=THREE),
    (((1, 1), (1, 1)),),
    ((0, 0), (0, 2)),
    160,
)
"""Kendall's tau of three people, of whom one has another value: both of its pairs turn round."""
MUTANTS = {
    mutants.half_the_range: LAW,
    mutants.no_noise: BOTH,
    mutants.everybody_counts_as_honest: LAW,
    half_of_the_people: LAW,
}


def test_people_keep_epsilon_towards_an_aggregator():
    verdict = audit(CASE, view=view)
    assert verdict.sound, str(verdict)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_power_the_same_runs_find_broken_code(mutant):
    verdict = audit(CASE, mutant, view)
    assert verdict.caught_by(*MUTANTS[mutant]), f"not found: {verdict}"
