"""Every protocol's release on its worst neighbours: the real code within ε, broken code found.

`make test` has enough runs to find each mutant. `make audit` takes many times as many, and prints
what they prove.
"""

from __future__ import annotations

import pytest

from tests.audit import mutants
from tests.audit.auditor import MORE, Case, audit
from tests.support.studies import GINI, KENDALL, TRIPLE, Entropy, make_study
from umpc.errors import LocalProtocolError
from umpc.simulation import simulate

BIT, SIGNED, THREE = ("0", "1"), ("-1", "1"), ("0", "2")
ONE, NONE = (1, 0), (0, 0)
LOSS, LAW, BOTH = ("loss",), ("law",), ("loss", "law")
MANY = BOTH if MORE >= 20 else LAW
"""The mutants that few runs find by the law; the loss takes the runs of `make audit`."""


def single(nodes: int, high: str, colluding: int, runs: int, **changes) -> Case:
    """Means: one record per node, of which the last is replaced."""
    study = make_study("a.x", nodes, degree=1, x=("0", high), max_colluding=colluding, **changes)
    name = f"degree 1, {study.noise}, t = {colluding} of {nodes}, s = {high}"
    return Case(name, study, ((ONE,),) * (nodes - 1) + ((),), (NONE, (int(high), 0)), runs)


def pairs(runs: int, name: str = "degree 2, distributed, t = 0 of 2", **changes) -> Case:
    """Kendall's tau of two records, concordant or discordant."""
    return Case(
        name,
        make_study(KENDALL, 2, x=THREE, y=THREE, **changes),
        (((1, 1),), ()),
        ((0, 0), (0, 2)),
        runs,
    )


def triples(runs: int, name: str = "degree 3, distributed, t = 0 of 3", **changes) -> Case:
    return Case(
        name,
        make_study(TRIPLE, 3, degree=3, x=SIGNED, **changes),
        ((ONE,), (ONE,), ()),
        ((-1, 0), ONE),
        runs,
    )


def two_samples(
    runs: int,
    name: str = "two samples, distributed, t = 0 of 2",
    kernels=("a.x == b.x",),
    **changes,
) -> Case:
    """One record of the first class, which is replaced, and three of the second."""
    study = make_study(kernels, 2, x=BIT, y=BIT, sampling="two_sample", **changes)
    return Case(
        name,
        study,
        (((0, 0, 1), (0, 1, 1), (0, 1, 1)), ()),
        ((1, 1, 0), (0, 1, 0)),
        runs,
        worst=len(kernels) == 1,
    )


SAMPLED = Case(
    "degree 2, sampled E, distributed, t = 1 of 2",
    make_study("a.x * b.x", 2, x=BIT, edges="2n", max_colluding=1),
    ((ONE, ONE, ONE), (ONE, ONE)),
    (NONE, ONE),
    200,
)
MANY_TRIPLES = Case(
    "degree 3, four triples, distributed, t = 1 of 2",
    make_study(TRIPLE, 2, degree=3, x=BIT, max_colluding=1),
    ((ONE, ONE, ONE), ()),
    (NONE, ONE),
    220,
)
TWO_SUMS = Case(
    "two sums, distributed, t = 1 of 2",
    make_study(("a.x", "a.y"), 2, degree=1, x=BIT, y=BIT, estimator="ratio", max_colluding=1),
    ((ONE,), ()),
    ((0, 1), (1, 0)),
    500,
)
ORDINARY = Case(
    "degree 2, ordinary neighbours, distributed, t = 1 of 3",
    make_study(GINI, 3, max_colluding=1),
    (((3, 0),), ((1, 0),), ((2, 0),)),
    ((0, 0), (1, 0)),
    90,
    worst=False,
)
SKELLAM = Case(
    "two sums, skellam, t = 1 of 3",
    make_study(
        ("a.x", "a.y"),
        3,
        degree=1,
        x=THREE,
        y=THREE,
        estimator="ratio",
        max_colluding=1,
        noise="skellam",
        delta="0.05",
    ),
    ((ONE,), (ONE,), ()),
    ((0, 2), (2, 0)),
    250,
)
AUDITS = {
    single(2, "2", 0, 420, epsilon="1.5"): {
        mutants.half_the_range: BOTH,
        mutants.last_node_without_noise: LAW,
    },
    single(3, "1", 1, 900): {mutants.last_node_without_noise: BOTH},
    single(3, "1", 2, 420): {mutants.everybody_counts_as_honest: BOTH},
    pairs(110): {mutants.half_the_range: MANY, mutants.no_noise: BOTH},
    SAMPLED: {mutants.nobody_counts_edges: BOTH},
    triples(110): {mutants.half_the_range: MANY, mutants.no_noise: BOTH},
    MANY_TRIPLES: {mutants.nobody_counts_edges: BOTH},
    TWO_SUMS: {mutants.whole_epsilon_for_every_sum: BOTH, mutants.one_noise_for_all_sums: LOSS},
    two_samples(220): {mutants.nobody_counts_edges: BOTH},
    ORDINARY: {mutants.no_noise: BOTH},
    single(2, "2", 1, 250, noise="in_mpc", coins="dealt"): {mutants.coins_scaled: MANY},
    pairs(150, "degree 2, in_mpc, t = 1 of 2", noise="in_mpc", coins="dealt", max_colluding=1): {
        mutants.second_geometric_missing: BOTH
    },
    triples(90, "degree 3, in_mpc, t = 2 of 3", noise="in_mpc", coins="dealt", max_colluding=2): {
        mutants.no_coin_falls: BOTH
    },
    two_samples(
        90,
        "two samples, two sums, in_mpc, t = 0 of 2",
        ("a.x == b.x", "a.x * b.y"),
        noise="in_mpc",
        coins="dealt",
        estimator="ratio",
    ): {mutants.no_coin_falls: BOTH},
    SKELLAM: {
        mutants.half_the_range: LAW,
        mutants.last_node_without_noise: LAW,
        mutants.no_noise: BOTH,
    },
    single(2, "2", 1, 150, noise="binomial", coins="dealt", delta="0.05"): {
        mutants.half_the_range: MANY
    },
}


@pytest.mark.parametrize("case", AUDITS, ids=lambda case: case.name)
def test_the_real_code_keeps_its_promise_and_the_same_runs_find_broken_code(case):
    verdict = audit(case)
    assert verdict.sound, str(verdict)
    for mutant, finders in AUDITS[case].items():
        verdict = audit(case, mutant)
        assert verdict.caught_by(*finders), f"not found: {verdict}"


def test_who_chooses_the_edges_learns_nothing_more():
    """One node chooses the joint seed and so E (`test_seed.py`), but the noise covers every E."""
    verdict = audit(SAMPLED, mutants.seed_of_the_first_node)
    assert verdict.sound, str(verdict)


def test_nodes_refuse_noise_for_fewer_edges_than_a_record_has():
    """The first half of the mutant `nobody_counts_edges` alone never reaches a release."""
    refused = pytest.raises(LocalProtocolError, match="the noise covers 1; refused")
    with mutants.fewer_edges(), refused:
        simulate(SAMPLED.study, SAMPLED.tables[0], Entropy("refused"))
