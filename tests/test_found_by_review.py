"""Errors that an adversarial reading found once, each kept from coming back."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from tests.support.studies import LOUD, Entropy, make_attempt, make_study
from umpc.errors import KernelError, RangeError
from umpc.mpc.masked.material import dealt_bytes
from umpc.protocols.registry import checked
from umpc.protocols.u_mpc.sums import noisy_sums
from umpc.simulation import simulate
from umpc.study.parts import FieldText
from umpc.study.sizes import Sizes
from umpc.ustat import logic
from umpc.ustat.clear import evaluate_clear
from umpc.ustat.kernel import Kernel
from umpc.ustat.local import evaluate_local
from umpc.ustat.polynomial import BitAtom, FieldAtom, add, atom, constant
from umpc.ustat.schema import Schema

Q = "(2 * (a.x < b.x) + (a.y < b.y) == 3 * (a.z < b.z))"
BITS = Schema([FieldText(name, "0", "1").schema() for name in "xyzw"])


def all_edges(names: str, records: int) -> list[dict[str, np.ndarray]]:
    """Every value of fields that are 0 or 1."""
    columns = np.array(list(product((0, 1), repeat=len(names) * records))).T
    return [
        {name: columns[record * len(names) + place] for place, name in enumerate(names)}
        for record in range(records)
    ]


@pytest.mark.parametrize(
    "text",
    [
        f"(({Q} & (a.x < b.x)) & (a.w < b.w))",
        f"(({Q} & (a.x < b.x)) ^ (a.w < b.w))",
        f"((~({Q} & (a.x < b.x))) & (a.w < 1))",
        f"(({Q} & (a.x < b.x)) & (a.w < b.w)) * 1 - {Q} * (a.x < b.x) * (a.w < b.w)",
    ],
)
def test_bits_inside_a_comparison_are_not_replaced_by_what_they_equal(text):
    """[P = 0] once turned a bit into others with halves for coefficients, which are no bits."""
    kernel = Kernel.from_text(text, BITS, 2, symmetric=False)
    edges = all_edges("xyzw", 2)
    clear = evaluate_clear(kernel.expression, BITS, edges, Fraction(1))
    shared = evaluate_local(kernel.polynomial, dict(enumerate(edges)), len(clear))
    assert (clear == shared).all()


def test_what_has_no_sensitivity_is_constant_under_shares_too():
    """The kernel is 0 whatever the records: it may be released without noise only because it really is."""
    text = f"(({Q} & (a.x < b.x)) & (a.w < b.w)) * 1 - {Q} * (a.x < b.x) * (a.w < b.w)"
    fields = tuple(FieldText(name, "0", "1") for name in "xyzw")
    study = checked(make_study(text, 2, fields=fields, epsilon=LOUD))
    tables = [{name: np.full(3, value) for name in "xyzw"} for value in (0, 1)]
    assert study.parsed_kernels[0].sensitivity_units == 0
    assert noisy_sums(simulate(study, tables, Entropy("constant")).transcript.shares, 1) == [0]


def test_a_bit_that_stands_twice_in_a_term_counts_once():
    """Functions of different records became one bit once one party's part was merged, and it was multiplied twice."""
    u, v, m = "(a.x < b.x)", "(a.y < b.y)", "(a.x < c.y)"
    first = f"(({m} & {u}) & ({u} == {v})) * (({m} & {v}) & ({u} == {v}))"
    text = " + ".join(
        first.translate(str.maketrans("abc", "".join(order)))
        for order in ("abc", "acb", "bac", "bca", "cab", "cba")
    )
    study = checked(make_study(text, 2, x=("0", "1"), y=("0", "1"), degree=3, epsilon=LOUD))
    tables = [
        {"x": np.array([0, 0, 1, 1]), "y": np.array([0, 1, 0, 1])},
        {"x": np.array([1, 0]), "y": np.array([1, 1])},
    ]
    run = simulate(study, tables, Entropy("twice"))
    together = {name: np.concatenate([table[name] for table in tables]) for name in "xy"}
    triples = np.array([(i, j, k) for i in range(6) for j in range(i) for k in range(j)]).T
    edges = [{name: column[rows] for name, column in together.items()} for rows in triples]
    assert noisy_sums(run.transcript.shares, 1) == [
        int(study.parsed_kernels[0].evaluate(edges).sum())
    ]


@pytest.mark.parametrize("counts", [(3000, 60, 60), (60, 3000, 60), (900, 900), (2000, 10)])
@pytest.mark.parametrize("kernel", ["sign(a.x - b.x) * sign(a.y - b.y)", "a.x * b.x"])
def test_what_nodes_wait_for_fits_what_all_nodes_can_hold(counts, kernel):
    """A node with little material once waited for a window that the dealer could not fill while another's was full."""
    window = 2 << 20
    attempt = make_attempt(make_study(kernel, len(counts)), counts)
    ahead = attempt.chunks_ahead(window)
    dealt = [0] * len(counts)
    taken = [0] * len(counts)
    for chunk in attempt.chunks():
        if all(taken[node] < ahead[node] for node in chunk.parties):
            for party, node in enumerate(chunk.parties):
                dealt[node] += dealt_bytes(attempt.plan(chunk), party, chunk.count)
                taken[node] += 1
                assert dealt[node] <= window
        elif taken == ahead:
            break
        else:
            pytest.fail("a chunk that somebody waits for comes after one that nobody may take yet")
    assert taken == ahead and max(ahead) > 0


def test_conditions_that_expand_without_end_are_refused_before_they_do():
    """A few thousand characters once took minutes and gigabytes."""
    bits = [
        BitAtom("less", add(atom(FieldAtom(0, "x")), constant(number))) for number in range(600)
    ]
    many, others = (
        frozenset(frozenset([bit]) for bit in half) for half in (bits[:300], bits[300:])
    )
    with pytest.raises(KernelError, match="combine fewer comparisons"):
        logic.conjunction(many, others)
    assert len(logic.conjunction(frozenset(list(many)[:60]), frozenset(list(others)[:60]))) == 3600


def test_groups_of_owners_without_number_are_refused():
    study = make_study("1", 40, degree=8)
    with pytest.raises(RangeError, match="groups of owners"):
        _ = Sizes(study, 40, 0, 40).edges
