"""A lying node's gain from changed values and flipped bits, and the ε that bounds it.

The audit is exact. The release is a value plus discrete Laplace noise of the honest nodes, so the
hockey-stick divergence of two neighbouring tables follows from how far their values can be apart.
A search over all flips finds the liar's best strategy.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import product
from math import exp

import pytest

from tests.attacks.lies import told
from tests.attacks.parties import AMPLIFIED_BIT
from tests.attacks.simulated import estimates
from tests.support.studies import (
    GINI,
    KENDALL,
    LOUD,
    Entropy,
    make_study,
    random_tables,
    table,
)
from tests.support.transfers import altered
from umpc.errors import ImpossibleResult, UmpcError
from umpc.protocols.registry import checked
from umpc.protocols.u_mpc.noise_binding import noise_of_sums
from umpc.simulation import simulate
from umpc.study.report import Report
from umpc.study.sizes import Sizes
from umpc.testing import lying

COVARIANCE = "(a.x - b.x) * (a.y - b.y)"
LINE = "a node adds 2^25 to a record of a covariance"
FLIPS = "flipped opened bits widen a Kendall edge's range"
BITS = ((0, 0), (1, 0), (0, 1))
"""[less], [equal] of a comparison of honest numbers."""
TAIL = 4000


def in_lying_nodes(study):
    return checked(study.replaced(adversary="lying_nodes"))


def best_change() -> int:
    """The largest change of one Kendall edge that a liar reaches, over all flips of its bits."""

    def value(first, second, flips) -> int:
        less, equal, below, same = (b ^ f for b, f in zip((*first, *second), flips, strict=True))
        return (1 - 2 * less - equal) * (1 - 2 * below - same)

    best = 0
    for flips in product((0, 1), repeat=4):
        values = [value(first, second, flips) for first, second in product(BITS, repeat=2)]
        best = max(best, max(values) - min(values))
    return best


def hockey_stick(ratio: float, shift: int, epsilon: float) -> float:
    """sup over sets of P - e^ε Q, for discrete Laplace noise of this log ratio and its shift."""
    scale = (1 - exp(-ratio)) / (1 + exp(-ratio))
    law = [scale * exp(-ratio * abs(z)) for z in range(-TAIL, TAIL + 1)]
    moved = [scale * exp(-ratio * abs(z - shift)) for z in range(-TAIL, TAIL + 1)]
    return sum(max(0.0, p - exp(epsilon) * q) for p, q in zip(law, moved, strict=True))


def log_ratio(study) -> Fraction:
    """-log q of the noise that the honest nodes add to one study over pairs of 4 records each."""
    sizes = Sizes(study, 12, holders=3)
    (law,) = noise_of_sums(sizes)
    return law.log_ratio * sizes.max_degree


def test_the_best_flips_change_an_edge_by_six():
    assert best_change() == 6


@pytest.mark.attack(FLIPS, "lying_nodes", "bounded by the audited ε of the study")
def test_no_flips_exceed_epsilon_in_lying_nodes():
    study = in_lying_nodes(
        make_study(KENDALL, 3, noise="distributed", max_colluding=2, epsilon="1")
    )
    ratio = float(log_ratio(study))
    assert best_change() * ratio <= 1 + 1e-12
    assert hockey_stick(ratio, best_change(), 1.0) < 1e-9


@pytest.mark.attack(FLIPS, "honest", "outside the promise: up to 3 ε")
def test_the_honest_grade_does_not_bound_flips():
    """This is a mutant of the defence too: noise at the honest sensitivity fails the audit."""
    study = checked(make_study(KENDALL, 3, noise="distributed", max_colluding=2, epsilon="1"))
    ratio = float(log_ratio(study))
    assert hockey_stick(ratio, 2, 1.0) < 1e-9
    assert hockey_stick(ratio, best_change(), 1.0) > 0.1
    assert hockey_stick(ratio, best_change(), 3.0) < 1e-9


@pytest.mark.attack(LINE, "lying_nodes", "refused: products of two owners' values")
@pytest.mark.parametrize("kernel", [COVARIANCE, GINI])
def test_products_of_numbers_are_refused_where_nodes_lie(kernel):
    with pytest.raises(UmpcError, match=r"(?i)kendall"):
        in_lying_nodes(make_study(kernel, 3, noise="distributed", max_colluding=2))


@pytest.mark.attack("a garbler scales one edge's output", "lying_nodes", "refused")
def test_the_garbled_backend_is_refused_where_nodes_lie():
    study = make_study(
        KENDALL, 3, backend="garbled", preprocessing="none", dealer=None, noise="distributed",
        max_colluding=2,
    )  # fmt: skip
    with pytest.raises(UmpcError, match="garbled"):
        in_lying_nodes(study)


@pytest.mark.attack("a garbler scales one edge's output", "honest", "outside the promise")
@pytest.mark.lies("garble")
def test_a_garbler_that_garbles_another_circuit_gives_a_possible_number_or_none():
    study = make_study(
        KENDALL, 2, name="garble-another", backend="garbled", preprocessing="none", dealer=None
    )
    tables = random_tables([4, 4], "garbler")
    honest = simulate(study, tables, Entropy("garbler")).report.estimate

    def change(message):
        # a single gate may be one that the evaluator does not read
        lie = replace(message, payload=bytes(byte ^ 255 for byte in message.payload))
        return told("garble", study.name, message.step, message, lie)

    def garbling(honest, node, *given):
        return altered(honest(node, *given), "garbled", change)

    try:
        with lying("node", protocol=garbling):
            found = simulate(study, tables, Entropy("garbler")).report.estimate
    except ImpossibleResult:
        return
    assert found is not None and found != honest, "the lie has an effect"


@pytest.mark.attack(LINE, "honest", "outside the promise; a sum out of range is noticed")
@pytest.mark.lies("amplify")
def test_an_amplified_record_in_the_honest_grade(liars):
    ended = liars.attempt(
        name="amplify-covariance",
        statistic="covariance",
        epsilon="1000",
        noise="distributed",
        edges="all",
    )
    assert isinstance(ended, Report | ImpossibleResult), ended


@pytest.mark.lies("amplify")
def test_an_amplified_record_moves_a_sum_that_nobody_checks_by_2_to_the_25():
    """The power of the attack above. The masked x of the record meets every y of the others."""
    study = make_study(COVARIANCE, 2, name="amplify-unchecked", epsilon=LOUD)
    tables = [table([1], [3]), table([2, 0, 1], [1, 1, 0])]
    with pytest.raises(ImpossibleResult):
        estimates(study, tables, "amplified")
    with lying("coordinator", check_sums=lambda honest, *given: None):
        honest, lied = estimates(study, tables, "amplified")
    edges = 6
    assert abs(lied - honest) * edges == pytest.approx((1 + 1 + 0) << AMPLIFIED_BIT)


@pytest.mark.lies("widen")
def test_flipped_bits_take_an_edge_out_of_its_range_and_not_out_of_the_robust_one():
    """The power of the attack below: one edge, all pairs of records with another one's."""
    study = in_lying_nodes(
        make_study(
            KENDALL, 2, name="widen-edge", noise="distributed", max_colluding=1, epsilon=LOUD
        )
    )
    ends = [
        estimates(study, [table([1], [1]), table([x], [y])], f"edge {x} {y}")
        for x, y in product(range(3), repeat=2)
    ]
    assert {round(honest) for honest, _ in ends} == {-1, 0, 1}
    assert {round(lied) for _, lied in ends} == {-2, -1, 0, 1, 2}


@pytest.mark.attack(FLIPS, "lying_nodes", "bounded: in the robust range, or noticed")
@pytest.mark.parametrize(
    ("lie", "ends"),
    [
        pytest.param("flip", Report | ImpossibleResult, marks=pytest.mark.lies("flip")),
        pytest.param("widen", Report, marks=pytest.mark.lies("widen")),
    ],
)
def test_a_flipping_node_in_a_real_session_of_lying_nodes(liars, lie, ends):
    ended = liars.attempt(
        name=f"{lie}-lying", adversary="lying_nodes", noise="distributed", epsilon="1000"
    )
    assert isinstance(ended, ends), ended
    if isinstance(ended, Report):
        assert -2.1 <= ended.estimate <= 4.1
