"""Every protocol's release on its worst neighbours: the real code within ε and of the exact law, broken code found.

`make test` has runs enough to find each mutant; `make audit` takes many times as many and prints what they prove.
"""

from __future__ import annotations

import pytest

from umpc.errors import LocalProtocolError
from umpc.simulation import simulate

from ..studies import GINI, KENDALL, TRIPLE, Entropy, make_study
from . import mutants
from .auditor import MORE, Case, audit

BIT, SIGNED, THREE = ("0", "1"), ("-1", "1"), ("0", "2")
ONE, NONE = (1, 0), (0, 0)
LOSS, LAW, BOTH = ("loss",), ("law",), ("loss", "law")


def single(nodes: int, high: str, colluding: int, runs: int, noise: str = "distributed") -> Case:
    """Means: one record per node, of which the last is replaced."""
    study = make_study("a.x", nodes, degree=1, x=("0", high), max_colluding=colluding, noise=noise)
    name = f"degree 1, {noise}, t = {colluding} of {nodes}, s = {high}"
    return Case(name, study, ((ONE,),) * (nodes - 1) + ((),), (NONE, (int(high), 0)), runs)


def pairs(runs: int, name: str = "degree 2, distributed, t = 0 of 2", **changes) -> Case:
    """Kendall's tau of two records, concordant or discordant."""
    return Case(name, make_study(KENDALL, 2, x=THREE, y=THREE, **changes), (((1, 1),), ()), ((0, 0), (0, 2)), runs)


def triples(runs: int, name: str = "degree 3, distributed, t = 0 of 3", **changes) -> Case:
    return Case(name, make_study(TRIPLE, 3, degree=3, x=SIGNED, **changes), ((ONE,), (ONE,), ()), ((-1, 0), ONE), runs)


def two_samples(
    runs: int, name: str = "two samples, distributed, t = 0 of 2", kernels=("a.x == b.x",), **changes
) -> Case:
    """One record of the first class, which is replaced, and two of the second."""
    study = make_study(kernels, 2, x=BIT, y=BIT, sampling="two_sample", **changes)
    return Case(name, study, (((0, 0, 1), (0, 1, 1)), ()), ((1, 1, 0), (0, 1, 0)), runs, worst=len(kernels) == 1)


SAMPLED = Case(
    "degree 2, sampled E, distributed, t = 1 of 2",
    make_study("a.x * b.x", 2, x=BIT, edges="1n", max_colluding=1),
    ((ONE, ONE), (ONE,)),
    (NONE, ONE),
    450,
)
MANY_TRIPLES = Case(
    "degree 3, four triples, distributed, t = 2 of 3",
    make_study(TRIPLE, 3, degree=3, x=BIT, max_colluding=2),
    ((ONE, ONE), (ONE,), ()),
    (NONE, ONE),
    250,
)
TWO_SUMS = Case(
    "two sums, distributed, t = 1 of 2",
    make_study(("a.x", "a.y"), 2, degree=1, x=THREE, y=THREE, estimator="ratio", max_colluding=1),
    ((ONE,), ()),
    ((0, 2), (2, 0)),
    600,
)
ORDINARY = Case(
    "degree 2, ordinary neighbours, distributed, t = 1 of 3",
    make_study(GINI, 3, max_colluding=1),
    (((3, 0),), ((1, 0),), ((2, 0),)),
    ((1, 0), (3, 0)),
    150,
    worst=False,
)
AUDITS = {
    single(2, "2", 0, 450): {mutants.half_the_range: BOTH, mutants.last_node_without_noise: LAW},
    single(3, "1", 1, 1000): {mutants.last_node_without_noise: BOTH},
    single(3, "1", 2, 500): {mutants.everybody_counts_as_honest: BOTH},
    pairs(450): {mutants.half_the_range: BOTH},
    SAMPLED: {mutants.nobody_counts_edges: BOTH},
    triples(450): {mutants.half_the_range: BOTH},
    MANY_TRIPLES: {mutants.nobody_counts_edges: BOTH},
    TWO_SUMS: {mutants.whole_epsilon_for_every_sum: BOTH, mutants.one_noise_for_all_sums: LOSS},
    two_samples(450): {mutants.nobody_counts_edges: BOTH},
    ORDINARY: {mutants.no_noise: BOTH},
    single(2, "2", 1, 400, "in_mpc"): {mutants.coins_scaled: BOTH if MORE >= 10 else LAW},
    pairs(200, "degree 2, in_mpc, t = 1 of 2", noise="in_mpc", max_colluding=1): {
        mutants.second_geometric_missing: BOTH
    },
    triples(130, "degree 3, in_mpc, t = 2 of 3", noise="in_mpc", max_colluding=2): {mutants.no_coin_falls: BOTH},
    two_samples(
        130,
        "two samples, two sums, in_mpc, t = 0 of 2",
        ("a.x == b.x", "a.x * b.y"),
        noise="in_mpc",
        estimator="ratio",
    ): {mutants.no_coin_falls: BOTH},
}


@pytest.mark.parametrize("case", AUDITS, ids=lambda case: case.name)
def test_the_real_code_keeps_its_promise_and_the_same_runs_find_broken_code(case):
    verdict = audit(case)
    assert verdict.sound, str(verdict)
    for mutant, finders in AUDITS[case].items():
        verdict = audit(case, mutant=mutant)
        assert verdict.caught_by(*finders), f"not found: {verdict}"


def test_nodes_refuse_noise_for_fewer_edges_than_a_record_has(monkeypatch):
    """The first half of the mutant `nobody_counts_edges` alone never gets as far as a release."""
    mutants.fewer_edges(monkeypatch)
    with pytest.raises(LocalProtocolError, match="the noise covers 1; refused"):
        simulate(SAMPLED.study, SAMPLED.tables[0], Entropy("refused"))
