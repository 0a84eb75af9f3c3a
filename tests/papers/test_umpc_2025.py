"""Sinh & Ramon 2025, "Accurate, private, secure, federated U-statistics with higher degree".

Each test quotes a sentence of the paper and runs the project's code on it. Where the project
departs from the paper, the test quotes the paper and gives the reason.
"""

from __future__ import annotations

import hashlib
from fractions import Fraction
from itertools import combinations, permutations, product
from math import comb

import numpy as np
import pytest

from tests.support.protocols import noise_of
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
    make_attempt,
    make_study,
    random_tables,
    table,
)
from umpc.crypto.prg import Stream
from umpc.errors import KernelError
from umpc.mpc.backends import predict
from umpc.protocols.u_mpc.settings import noisy_sums
from umpc.simulation import simulate
from umpc.study.document import Study
from umpc.study.sizes import Sizes
from umpc.ustat.sampling import balanced, max_degree


def seed_of(label: str) -> bytes:
    return hashlib.sha256(label.encode()).digest()


def records_of(tables) -> list[tuple[int, int]]:
    return [(int(x), int(y)) for t in tables for x, y in zip(t["x"], t["y"], strict=True)]


def sign(number: int) -> int:
    return (number > 0) - (number < 0)


def estimate(study: Study, tables, seed: str = "paper") -> float:
    return simulate(study, tables, Entropy(seed)).report.estimate


# --- section 2 ------------------------------------------------------------------------------------


def test_definition_2_1_f_is_symmetric():
    """Section 2: "Let f : X^k → Y be a symmetric function, i.e., for all x ∈ X and any permutation
    φ"."""
    records = table([0, 1, 3], [2, 1, 0]), table([1, 1, 0], [0, 3, 3]), table([2, 1, 2], [1, 1, 3])
    for text, degree in ((KENDALL, 2), (SPEARMAN, 3), (SKEWNESS, 3), (TRIPLE, 3)):
        (kernel,) = make_study(text, degree=degree).parsed_kernels
        values = [kernel.evaluate(order).tolist() for order in permutations(records[:degree])]
        assert all(value == values[0] for value in values)
    with pytest.raises(KernelError, match="is not symmetric"):
        _ = make_study("a.x * b.x + c.x", degree=3).parsed_kernels


@pytest.mark.parametrize(("kernel", "degree"), [(KENDALL, 2), (SKEWNESS, 3)])
def test_merged_parties_pay_nothing_between_them(kernel, degree):
    """Section 1: "one can simply merge parties together and eliminate the communication cost
    between them"."""
    tables = random_tables([6], "merged")
    alone = [table([x], [y]) for x, y in records_of(tables)]
    merged, apart = (simulate_exact(held, kernel, degree=degree) for held in (tables, alone))
    assert merged.report.estimate == apart.report.estimate
    assert merged.report.bytes_online == merged.attempt.ring.bytes < apart.report.bytes_online


def simulate_exact(tables, kernel: str = KENDALL, edges: str = "all", degree: int = 2):
    study = make_study(kernel, len(tables), edges=edges, epsilon=LOUD, degree=degree)
    return simulate(study, tables, Entropy("exact"))


# --- section 3 ------------------------------------------------------------------------------------


@pytest.mark.parametrize("degree", [2, 3])
def test_section_3_all_parties_draw_the_same_e(degree):
    """Section 3: "jointly generate a seed for a pseudorandom number generator (PRG) and then use
    it to all draw the same random E"."""
    study = make_study(TRIPLE if degree == 3 else KENDALL, 3, edges="2n", degree=degree)
    first, second = (make_attempt(study, [3, 4, 5], "all draw").hypergraph for _ in range(2))
    assert list(first.cells) == list(second.cells)
    for mine, theirs in zip(first.cells.values(), second.cells.values(), strict=True):
        assert np.array_equal(mine.edges(0, 99), theirs.edges(0, 99))
    assert first.edge_count == 24


def test_protocol_3_1_the_aggregator_adds_up_the_parties_numbers():
    """Protocol 3.1, step 4: "P_i sends z_i to the aggregator, who reveals 1/|E| · Rec({z_i})"."""
    run = simulate(make_study(nodes=3), random_tables([2, 2, 2], "z"), Entropy("z"))
    total = sum(int.from_bytes(share, "little") for share in run.transcript.shares)
    assert [run.attempt.ring.decode(total)] == noisy_sums(run.transcript.shares, 1)
    assert run.report.estimate == run.attempt.ring.decode(total) / 15


# --- section 4, appendix C ------------------------------------------------------------------------


@pytest.mark.parametrize("counts", [[1] * 6, [2, 3, 1], [5, 1], [6], [0, 4, 2]], ids=str)
@pytest.mark.parametrize(("kernel", "degree"), [(KENDALL, 2), (GINI, 2), (SPEARMAN, 3)])
def test_correctness_shares_over_different_groups_may_be_mixed(kernel, degree, counts):
    """Section 4: "due to the use of additive secret sharing the mixing of secret shares over
    different groups of parties in step 4(a) is sound"; C.1: it computes U_{f,E} + η/|E|."""
    tables = random_tables(counts, f"groups {counts}")
    run = simulate_exact(tables, kernel, "2n", degree)
    (exact,), (kernel,) = (
        clear_sums(run.attempt.study, tables, run.attempt.hypergraph),
        run.attempt.study.parsed_kernels,
    )
    assert run.report.estimate == float(exact * kernel.unit / run.report.edges)
    noisy = simulate(
        make_study(kernel.text, len(counts), edges="2n", degree=degree), tables, Entropy("exact")
    )
    (sum_of_e,) = clear_sums(noisy.attempt.study, tables, noisy.attempt.hypergraph)
    eta = noisy_sums(noisy.transcript.shares, 1)[0] - sum_of_e
    assert noisy.report.estimate == float((sum_of_e + eta) * kernel.unit / noisy.report.edges)
    assert abs(eta) <= noise_of(noisy.attempt.sizes)[0].tail_bound()


@pytest.mark.parametrize(("kernel", "edges"), [*product([KENDALL, GINI], ["1n", "2", "4", "all"])])
def test_privacy_one_record_changes_the_sum_by_at_most_its_degree_times_the_range(kernel, edges):
    """C.2.3: "‖U(x) − U(x′)‖ ≤ δ_G^max Δf / |E|": every replacement of every record of small
    studies."""
    study = make_study(kernel, 2, edges=edges, x=("0", "2"), y=("0", "1"))
    attempt = make_attempt(study, [2, 3], f"privacy {edges}")
    values = [(x, y) for x in range(3) for y in range(2)]
    hit, (bound,) = 0, attempt.sizes.sensitivities
    for number in range(12):
        rows = records_of(random_tables([5], f"base {number}", high=1))
        for place, value in product(range(5), values):
            changed = [*rows[:place], value, *rows[place + 1 :]]
            before, after = (total(study, attempt, r) for r in (rows, changed))
            hit = max(hit, abs(after - before))
            assert hit <= bound
    assert attempt.sizes.max_degree == max(
        attempt.hypergraph.degrees(node).max() for node in (0, 1)
    )
    assert 2 * hit >= bound, "the bound is far from what happens"


def total(study: Study, attempt, rows) -> int:
    xs, ys = zip(*rows, strict=True)
    (found,) = clear_sums(study, [table(xs[:2], ys[:2]), table(xs[2:], ys[2:])], attempt.hypergraph)
    return found


def test_privacy_only_the_edges_of_the_record_are_affected():
    """Section 4: "an average of |E| terms of which only at most δ_G^max are affected by the change
    of a single instance"."""
    records, count = 9, 14
    for degree, most in ((1, 1), (2, 4), (3, 5), (4, 7)):
        some = min(count, comb(records, degree))
        edges = balanced(records, some, Stream(seed_of("affected")).words, degree)
        for record in range(records):
            assert (edges == record).any(axis=1).sum() <= max_degree(some, records, degree) == most


def test_rounds_are_those_of_the_kernel_plus_two():
    """C.3: "in max(C_f^R, C_η^R) + 2 rounds": sharing, the kernel's own, revealing. Ours: 1 + 1 + 1
    for a sign."""
    kernels = {KENDALL: 2, GINI: 2, "a.x * b.x": 2, SPEARMAN: 3, "a.x": 1}
    rounds = {
        kernel: predict(make_attempt(make_study(kernel, degree=degree), [2, 2])).rounds
        for kernel, degree in kernels.items()
    }
    assert rounds == {KENDALL: 3, GINI: 3, "a.x * b.x": 2, SPEARMAN: 3, "a.x": 1}


def test_fewer_bits_than_the_papers_accounting():
    """C.3: sharing alone takes "|E|k(k−1)ℓ bits"; ours, masked once per record, takes less for ages
    and balances."""
    study = make_study(edges="2n", x=("0", "127"), y=("-8192", "122880"))
    attempt = make_attempt(study, [300, 300])
    paper = attempt.sizes.edges * (2 * 1 * 40)
    assert 8 * predict(attempt).bytes_online < paper


# --- section 4 and appendix F: balanced sampling --------------------------------------------------


@pytest.mark.parametrize(
    ("records", "count"), [(5, 3), (9, 14), (12, 24), (16, 100), (30, 60), (7, 21)]
)
@pytest.mark.parametrize("degree", [2, 3, 4])
def test_all_vertices_have_nearly_the_same_degree(records, count, degree):
    """Section 4: "all vertices have degree ⌈|E|k/n⌉ or ⌊|E|k/n⌋"; algorithm 1 draws m edges."""
    count = min(count, comb(records, degree))
    edges = balanced(records, count, Stream(seed_of(f"{records} {count}")).words, degree)
    degrees = np.bincount(edges.reshape(-1), minlength=records)
    assert {*degrees.tolist()} <= {degree * count // records, -(-degree * count // records)}
    assert len({tuple(edge) for edge in edges.tolist()}) == count == len(edges)
    assert all(len({*edge}) == degree for edge in edges.tolist())


# --- appendix A.5 ---------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", ["one", "two", "three"])
def test_a_5_1_kendalls_tau(seed):
    """(8): τ = 1/C(n,2) · Σ_{i<j} sign(x_i − x_j) sign(y_i − y_j)."""
    tables = random_tables([3, 4, 2], seed)
    pairs = list(combinations(records_of(tables), 2))
    tau = Fraction(sum(sign(a[0] - b[0]) * sign(a[1] - b[1]) for a, b in pairs), len(pairs))
    assert simulate_exact(tables).report.estimate == float(tau)


def test_a_5_1_both_formulas_agree_without_ties_and_only_then():
    """(8) also says "τ = 1 − 2(number of discordant pairs)/C(n,2)": with a tie the two differ.

    Ours is the sum of signs (tau-a).
    """
    distinct = [table([0, 3], [1, 2]), table([1, 2], [3, 0])]
    tied = [table([0, 3], [1, 2]), table([1, 1], [3, 0])]
    for tables, equal in ((distinct, True), (tied, False)):
        pairs = list(combinations(records_of(tables), 2))
        discordant = sum((a[0] - b[0]) * (a[1] - b[1]) < 0 for a, b in pairs)
        first = float(1 - Fraction(2 * discordant, len(pairs)))
        assert (simulate_exact(tables).report.estimate == pytest.approx(first)) is equal


@pytest.mark.parametrize("seed", ["one", "two", "three"])
def test_a_5_2_the_gini_mean_difference(seed):
    """(9): GMD is the mean of |x_i − x_j| = (2·I[x_i > x_j] − 1)(x_i − x_j) over all pairs."""
    tables = random_tables([3, 4, 2], seed)
    xs = [x for x, _ in records_of(tables)]
    pairs = list(combinations(xs, 2))
    plain = Fraction(sum(abs(a - b) for a, b in pairs), len(pairs))
    by_bit = Fraction(sum((2 * (a > b) - 1) * (a - b) for a, b in pairs), len(pairs))
    assert simulate_exact(tables, GINI).report.estimate == float(plain) == float(by_bit)


@pytest.mark.parametrize("seed", ["one", "two", "three"])
def test_a_5_3_the_area_under_the_roc_curve(seed):
    """A.5.3, with public labels and ties counted half: the share of pairs across the classes in the
    right order."""
    tables = random_tables([3, 5, 4], f"auc {seed}", classes=True)
    study = make_study(AUC, 3, sampling="two_sample", epsilon=LOUD)
    rows = [
        (int(x), int(label)) for t in tables for x, label in zip(t["x"], t["label"], strict=True)
    ]
    pairs = [
        (p - q) for (p, first), (q, second) in product(rows, rows) if (first, second) == (0, 1)
    ]
    auc = Fraction(sum(1 + sign(difference) for difference in pairs), 2 * len(pairs))
    assert estimate(study, tables) == float(auc)


# --- where we depart ------------------------------------------------------------------------------


def test_departure_the_range_of_kendalls_kernel_is_two():
    """C.2.3 asks "‖f(x_e) − f(x′_e)‖ ≤ Δf". Kendall goes from −1 to 1, so Δf = 2; the paper's code
    takes 1."""
    study = make_study(KENDALL, x=("0", "1"), y=("0", "1"))
    (kernel,) = study.parsed_kernels
    every = list(product([0, 1], repeat=4))
    values = {
        fixed: [
            int(kernel.evaluate([table([a], [b]), table([c], [d])])[0])
            for a, b, c, d in every
            if (c, d) == fixed
        ]
        for fixed in product([0, 1], repeat=2)
    }
    assert kernel.sensitivity_units == 2 == max(kernel.interval.high - kernel.interval.low, 0)
    wide = make_study(KENDALL, x=("0", "2"), y=("0", "2")).parsed_kernels[0]
    middle = [
        int(wide.evaluate([table([x], [y]), table([1], [1])])[0])
        for x, y in product(range(3), repeat=2)
    ]
    assert max(middle) - min(middle) == 2 and all(len(v) == 4 for v in values.values())


def test_departure_noise_is_calibrated_to_the_honest_nodes():
    """Protocol B.1: "a_i, b_i ∼ Polya(1/n, e^{−ε/s})" assumes that nobody colludes. Ours:
    Polya(1/h), h = N − t."""
    study = make_study(nodes=5, max_colluding=3, epsilon="1/2")
    (noise,) = noise_of(Sizes(study, 20))
    assert (noise.nodes, noise.honest, noise.epsilon) == (5, 2, Fraction(1, 2))
    assert noise.sensitivity == 19 * 2 and noise.log_ratio == Fraction(1, 76)
    assert noise.variance == pytest.approx(
        5 / 2 * noise_of(Sizes(make_study(nodes=1, epsilon="1/2"), 20))[0].variance
    )


def test_departure_shares_are_uniform_by_zero_shares_not_by_e():
    """C.2.1: "any set of n − 1 of these numbers are uniformly randomly distributed".

    It fails for Remark B.1's local noise when a party has no edge with others: its z_i would be its
    own partial sum. Ours adds pairwise zero shares.
    """
    study = make_study(nodes=2, epsilon=LOUD)
    tables = [table([0, 1, 2], [0, 1, 2]), table([], [])]
    shares = {
        simulate(study, tables, Entropy(f"alone {i}")).transcript.shares[0] for i in range(20)
    }
    assert len(shares) == 20 and (3).to_bytes(4, "little") not in shares


def test_departure_sums_are_of_integers():
    """A.1 computes in F_{2^ℓ}, whose addition is XOR; sums of integers need the ring Z_{2^w}."""
    study, tables = make_study("a.x + b.x", 2, epsilon=LOUD), [table([3], [0]), table([3], [0])]
    assert estimate(study, tables) == 6 != 3 ^ 3


def test_departure_several_sums_share_epsilon():
    """Protocol 3.1 reveals one number. Ours may reveal several.

    Each gets a part of ε, the parts add up to ε (sequential composition), and each has noise for
    its own range.
    """
    study = make_study(
        (KENDALL, "a.x == b.x"), 2, estimator="ratio", epsilon="1", split=("2/3", "1/3")
    )
    first, second = noise_of(Sizes(study, 20))
    assert first.epsilon + second.epsilon == 1 and (first.sensitivity, second.sensitivity) == (
        19 * 2,
        19,
    )
    assert (first.log_ratio, second.log_ratio) == (Fraction(1, 57), Fraction(1, 57))
