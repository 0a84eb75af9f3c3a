"""Whole studies in memory: exact results, and determinism."""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest

from tests.support.limits import small_chunks
from tests.support.studies import (
    AUC,
    GINI,
    KENDALL,
    LOUD,
    SKEWNESS,
    SPEARMAN,
    TRIPLE,
    Entropy,
    clear_sums,
    make_study,
    random_tables,
    table,
)
from umpc.protocols.registry import checked
from umpc.protocols.u_mpc.settings import noisy_sums
from umpc.simulation import simulate
from umpc.study.parts import FieldText

# --- results

SPLITS = ([9], [5, 6], [9, 1], [6, 0, 5], [1, 1, 1], [1, 0, 17, 4, 2], [1, 3] * 8)
PAIRS = [(kernel, 2) for kernel in (KENDALL, GINI, "a.x + b.x", "a.x * b.x", "3")]
TRIPLES = [(kernel, 3) for kernel in (TRIPLE, "a.x + b.x + c.x", SPEARMAN)]


@pytest.mark.parametrize("edges", ["2n", "all", "1"])
@pytest.mark.parametrize("counts", SPLITS, ids=str)
@pytest.mark.parametrize(("kernel", "degree"), PAIRS + TRIPLES)
def test_without_noise_the_estimate_is_the_mean_in_the_clear(kernel, degree, counts, edges):
    if degree == 3 and len(counts) > 10:
        counts = counts[:6]
    label = f"exact {kernel} {counts} {edges}"
    study = make_study(kernel, len(counts), degree=degree, edges=edges, epsilon=LOUD)
    tables = random_tables(counts, label)
    run = simulate(study, tables, Entropy(label))
    (total,), (kernel,) = clear_sums(study, tables, run.attempt.hypergraph), study.parsed_kernels
    assert run.report.estimate == float(total * kernel.unit / run.report.edges), label


@pytest.mark.parametrize(
    "changes",
    [
        {"kernels": KENDALL},
        {"kernels": (KENDALL, GINI), "estimator": "ratio"},
        {"kernels": TRIPLE, "degree": 3, "edges": "300"},
        {"kernels": SPEARMAN, "degree": 3, "edges": "300"},
        {"kernels": SKEWNESS, "degree": 3, "edges": "300"},
        {"kernels": AUC, "sampling": "two_sample"},
    ],
    ids=["pairs", "two sums", "products", "pairs of three", "tables", "two samples"],
)
def test_many_chunks_give_the_same_as_one(monkeypatch, limit, changes):
    study = make_study(nodes=3, epsilon=LOUD, **changes)
    tables = random_tables([9, 30, 5], "chunks", classes=study.two_sample)
    one = simulate(study, tables, Entropy("chunks"))
    small_chunks(limit, field_bytes=100)
    many = simulate(study, tables, Entropy("chunks"))
    assert many.report.sums == one.report.sums and many.report.estimate == one.report.estimate
    assert len(many.transcript.online) > len(one.transcript.online)
    assert many.report.bytes_online == many.report.bytes_online_predicted
    assert many.report.bytes_offline == many.report.bytes_offline_predicted


def test_a_field_at_both_bounds_of_a_wide_domain():
    study = make_study(GINI, 2, epsilon="1e30", x=("-4503599627370496", "4503599627370496"))
    tables = [table([-(2**52), 2**52], [0, 0]), table([2**52, 0], [0, 0])]
    assert simulate(study, tables, Entropy("wide")).report.estimate == float(Fraction(2**52 * 7, 6))


def test_a_kernel_without_sensitivity_is_constant_under_shares_too():
    """The kernel is always 0, so it needs no noise; the shared evaluation must give 0 as well."""
    condition = "(2 * (a.x < b.x) + (a.y < b.y) == 3 * (a.z < b.z))"
    both = f"(({condition} & (a.x < b.x)) & (a.w < b.w))"
    text = f"{both} * 1 - {condition} * (a.x < b.x) * (a.w < b.w)"
    bits = tuple(FieldText(name, "0", "1", whole=True) for name in "xyzw")
    study = checked(make_study(text, 2, fields=bits, epsilon=LOUD))
    tables = [{name: np.full(3, value) for name in "xyzw"} for value in (0, 1)]
    assert study.parsed_kernels[0].sensitivity_units == 0
    assert noisy_sums(simulate(study, tables, Entropy("constant")).transcript.shares, 1) == [0]


def test_a_bit_that_stands_twice_in_a_term_counts_once():
    """Functions of different records can become one bit when one party's part is merged."""
    u, v, m = "(a.x < b.x)", "(a.y < b.y)", "(a.x < c.y)"
    first = f"(({m} & {u}) & ({u} == {v})) * (({m} & {v}) & ({u} == {v}))"
    text = " + ".join(
        first.translate(str.maketrans("abc", "".join(order))) for order in permutations("abc")
    )
    study = checked(make_study(text, 2, x=("0", "1"), y=("0", "1"), degree=3, epsilon=LOUD))
    tables = [table([0, 0, 1, 1], [0, 1, 0, 1]), table([1, 0], [1, 1])]
    run = simulate(study, tables, Entropy("twice"))
    expected = clear_sums(study, tables, run.attempt.hypergraph)
    assert noisy_sums(run.transcript.shares, 1) == expected


# --- determinism


@pytest.mark.parametrize(
    "changes", [{}, {"kernels": SKEWNESS, "degree": 3}], ids=["pairs", "triples"]
)
def test_the_same_entropy_gives_the_same_bytes_and_other_entropy_other_bytes(changes):
    study, tables = make_study(nodes=3, **changes), random_tables([2, 1, 1], "bytes")
    runs = [simulate(study, tables, Entropy(label)).transcript for label in ("one", "one", "two")]
    assert runs[0] == runs[1]
    first, other = ({f.payload for *_, f in run.offline if f.payload} for run in (runs[0], runs[2]))
    assert len(first) > 3 and not first & other
    assert runs[0].shares != runs[2].shares
