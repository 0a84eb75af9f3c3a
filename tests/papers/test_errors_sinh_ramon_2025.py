"""Errors in Sinh & Ramon 2025: each test quotes the sentence and computes why it is wrong.

`docs/papers.md` lists them. All computations are exact or enumerations of small cases.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations, permutations, product
from math import comb, log

import numpy as np
import pytest

from reproduction.baselines.collusion import remaining_epsilon
from umpc.ustat.sampling import balanced

Edge = tuple[int, int]
Kernel = dict[Edge, Fraction]


# --- claim D.1: the balanced E is not always better than a uniform one ---


def ring_kernel(n: int) -> Kernel:
    """1 for neighbours in a ring of n records, else 0: every record has the same mean."""
    ring = {(i, i + 1) for i in range(n - 1)} | {(0, n - 1)}
    return {pair: Fraction(pair in ring) for pair in combinations(range(n), 2)}


def rank_kernel(n: int) -> Kernel:
    """The mean of two ranks, scaled to [0, 1]: nothing but the records' own means."""
    return {(i, j): Fraction(i + j, 2 * n) for i, j in combinations(range(n), 2)}


def variance(kernel: Kernel) -> Fraction:
    """Variance of f over all pairs."""
    mean = sum(kernel.values()) / len(kernel)
    return sum((value - mean) ** 2 for value in kernel.values()) / len(kernel)


def error(kernel: Kernel, sets: Iterator[list[Edge]]) -> Fraction:
    """E_inc: the mean squared error of the mean over E, over equally likely E."""
    mean = sum(kernel.values()) / len(kernel)
    errors = [(sum(kernel[e] for e in edges) / len(edges) - mean) ** 2 for edges in sets]
    return sum(errors) / len(errors)


def balanced_sets(n: int, m: int) -> Iterator[list[Edge]]:
    """The library's own E for every order of the records."""
    for order in permutations(range(n)):
        edges = balanced(n, m, lambda _, order=order: np.array(order, dtype=np.uint64))
        yield [(int(i), int(j)) for i, j in edges]


def uniform_error(kernel: Kernel, n: int, m: int) -> Fraction:
    """The paper's E'_inc = (N - m)/((N - 1) m) Var f."""
    pairs = comb(n, 2)
    return Fraction(pairs - m, (pairs - 1) * m) * variance(kernel)


def test_the_papers_uniform_error_is_right():
    """D.1, end of the proof: every set of 5 of the 10 pairs of 5 records."""
    kernel = ring_kernel(5)
    sets = (list(edges) for edges in combinations(kernel, 5))
    assert error(kernel, sets) == uniform_error(kernel, 5, 5) == Fraction(1, 36)


@pytest.mark.parametrize(("n", "m"), [(5, 5), (6, 3), (6, 6), (6, 9), (6, 12)])
def test_claim_d_1_is_wrong_for_degenerate_kernels(n, m):
    """D.1: "E_inc <= E'_inc", as "its variance [...] is smaller".

    For a kernel whose records all have the same mean, an E of equal degrees has
    (n - 2)(n + 1)/(n (n - 3)) times the variance of a uniform E, by enumeration of all orders.
    """
    kernel = ring_kernel(n)
    found = error(kernel, balanced_sets(n, m))
    assert found / uniform_error(kernel, n, m) == Fraction((n - 2) * (n + 1), n * (n - 3)) > 1
    degree = 2 * m // n
    assert found == variance(kernel) * Fraction(n - 1 - degree, m * (n - 3))


def test_claim_d_1s_bound_is_exceeded():
    """D.1: "E_inc <= (N - m)/(4m(N - 1))" with f in [0, 1]: here 1/36, and the error is 1/20."""
    n, m, pairs = 5, 5, 10
    bound = Fraction(pairs - m, 4 * m * (pairs - 1))
    assert bound == Fraction(1, 36) < error(ring_kernel(n), balanced_sets(n, m)) == Fraction(1, 20)


def test_balanced_sets_are_better_where_records_differ():
    """The reason for balance: with equal degrees the records' own means cancel altogether."""
    kernel = rank_kernel(6)
    assert uniform_error(kernel, 6, 6) > 0 == error(kernel, balanced_sets(6, 6))


# --- appendix F: algorithm 1 ---


def algorithm_1(n: int, m: int, as_set: bool) -> tuple[dict[tuple[Edge, ...], Fraction], Fraction]:
    """The exact law of one pass of BalancedSamp for k = 2, and the chance that it restarts.

    as_set: whether line 9, "Add the edge to E", leaves E alone if the edge is already in it.
    """
    weight = -(-2 * m // n)
    running = {((weight,) * n, ()): Fraction(1)}
    ended: dict[tuple[Edge, ...], Fraction] = {}
    restarts = Fraction(0)
    while running:
        following: dict[tuple[tuple[int, ...], tuple[Edge, ...]], Fraction] = {}
        for (p, edges), chance in running.items():
            if len(edges) == m:
                ended[edges] = ended.get(edges, Fraction(0)) + chance
            elif sum(x > 0 for x in p) < 2:
                restarts += chance
            else:
                for edge, odds in draws(p):
                    kept = edges if as_set and edge in edges else tuple(sorted((*edges, edge)))
                    left = tuple(x - (v in edge) for v, x in enumerate(p))
                    state = left, kept
                    following[state] = following.get(state, Fraction(0)) + chance * odds
        running = following
    return ended, restarts


def draws(p: tuple[int, ...]) -> Iterator[tuple[Edge, Fraction]]:
    """Line 8: two records in turn, without replacement, proportional to p."""
    total = sum(p)
    for i, j in permutations(range(len(p)), 2):
        if p[i] and p[j]:
            yield (min(i, j), max(i, j)), Fraction(p[i], total) * Fraction(p[j], total - p[i])


def has_bad_degrees(edges: tuple[Edge, ...], n: int) -> bool:
    """Whether a degree is neither ⌊2m/n⌋ nor ⌈2m/n⌉."""
    degrees = {sum(v in edge for edge in edges) for v in range(n)}
    return not degrees <= {2 * len(edges) // n, -(-2 * len(edges) // n)}


def test_algorithm_1_leaves_a_record_out():
    """Section 4: "all vertices have degree ⌈|E|k/n⌉ or ⌊|E|k/n⌋"; 4 records, 3 pairs: 1 or 2.

    p bounds degrees from above only. In one of 10 passes a record is in no pair at all.
    """
    ended, restarts = algorithm_1(4, 3, as_set=False)
    wrong = sum(chance for edges, chance in ended.items() if has_bad_degrees(edges, 4))
    assert restarts == 0 and wrong == Fraction(1, 10)
    assert ((0, 1), (0, 2), (1, 2)) in ended


def test_algorithm_1_repeats_edges():
    """Nothing keeps an edge from being drawn twice: 8 of the 45 lists repeat a pair."""
    ended, _ = algorithm_1(4, 3, as_set=False)
    assert sum(c for edges, c in ended.items() if len({*edges}) < 3) == Fraction(8, 45)


def test_algorithm_1_restarts_where_edges_are_a_set():
    """In a set, a repetition uses up degrees for nothing: 2/3 of passes for all 6 pairs restart."""
    _, few = algorithm_1(4, 3, as_set=True)
    ended, all_pairs = algorithm_1(4, 6, as_set=True)
    assert few == Fraction(8, 45)
    assert set(ended) == {tuple(combinations(range(4), 2))}
    assert Fraction(2, 3) < all_pairs < Fraction(7, 10)


@pytest.mark.parametrize(("n", "m"), [(4, 3), (4, 6), (5, 7), (6, 4)])
def test_ours_has_neither_fault(n, m):
    for edges in balanced_sets(n, m):
        assert not has_bad_degrees(tuple(edges), n) and len({*edges}) == m


# --- C.2.1: shares are not always uniform ---


def views(edges: list[Edge], noise_is_shared: bool, ring: int = 4) -> Counter[tuple[int, ...]]:
    """z_1, z_2, z_3 of four parties over all randomness of the shares; f = 1 on every edge.

    noise_is_shared: η = 0 in a (4, 4) sharing; otherwise each party's noise is its own, here 0.
    """
    found: Counter[tuple[int, ...]] = Counter()
    masks = list(product(range(ring), repeat=3)) if noise_is_shared else [(0, 0, 0)]
    for shares in product(range(ring), repeat=len(edges)):
        for mask in masks:
            z = [*mask, -sum(mask)]
            for (i, j), share in zip(edges, shares, strict=True):
                z[i] += share
                z[j] += 1 - share
            found[tuple(value % ring for value in z[:3])] += 1
    return found


def is_uniform(found: Counter[tuple[int, ...]], ring: int = 4) -> bool:
    return len(found) == ring**3 and len({*found.values()}) == 1


def test_c_2_1_fails_for_local_noise_on_a_graph_in_parts():
    """C.2.1: "any set of n − 1 of these numbers are uniformly randomly distributed".

    True for a real sharing of η. With remark B.1's local noise it needs a connected graph.
    """
    matching, path = [(0, 1), (2, 3)], [(0, 1), (1, 2), (2, 3)]
    assert is_uniform(views(matching, noise_is_shared=True))
    assert is_uniform(views(path, noise_is_shared=False))
    found = views(matching, noise_is_shared=False)
    assert not is_uniform(found)
    assert {(z_1 + z_2) % 4 for z_1, z_2, _ in found} == {1}, "f of the first pair is known"


def test_c_2_1_costs_epsilon():
    """A part of the graph with half of the parties has half of the noise: ε = 1 becomes 3.44."""
    assert float(remaining_epsilon(Fraction(1), 1, 4, 2)) == pytest.approx(1.68, abs=0.005)
    assert float(remaining_epsilon(Fraction(1), 65_536, 4, 2)) == pytest.approx(3.44, abs=0.005)


# --- equation 12, B.2.1 and E_sample ---


def inverse(p: float, factor: int) -> float:
    """-b sign(p - 1/2) ln(1 - factor |p - 1/2|) for b = 1. The paper has factor 1."""
    return -np.sign(p - 0.5) * log(1 - factor * abs(p - 0.5))


def test_equation_12_is_not_the_inverse_of_laplaces_distribution_function():
    """(12): "F⁻¹(p) = −b·sign(p − 0.5) ln(1 − |p − 0.5|)": it lacks a factor 2.

    The printed noise never exceeds b ln 2, so it is not ε-DP; its variance is 0.13 b², not 2 b².
    """

    def laplace(x: float) -> float:
        return np.exp(x) / 2 if x < 0 else 1 - np.exp(-x) / 2

    middles = (np.arange(200_000) + 0.5) / 200_000
    right, printed = (np.array([inverse(p, factor) for p in middles]) for factor in (2, 1))
    assert all(laplace(inverse(p, 2)) == pytest.approx(p) for p in (0.01, 0.3, 0.5, 0.9))
    assert laplace(inverse(0.9, 1)) != pytest.approx(0.9, abs=0.1)
    assert (right**2).mean() == pytest.approx(2, rel=1e-3)
    assert (printed**2).mean() == pytest.approx(0.1332, abs=1e-4)
    assert np.abs(printed).max() < log(2)


def test_coins_of_minus_one_and_one_have_variance_n():
    """B.2.1: "x ∼ Gauss(0, n/4)" and "Σ 2(c ⊕ b) − 1": n coins of ±1 have variance n."""
    n = 6
    signs = [sum(coins) for coins in product((-1, 1), repeat=n)]
    bits = [sum(coins) for coins in product((0, 1), repeat=n)]
    assert np.var(signs) == n and np.var(bits) == n / 4


@pytest.mark.parametrize("n", [2, 10, 4521])
def test_the_bound_of_e_sample_is_four_times_too_large(n):
    """D.1.2: σ₁, σ₂ <= 1/4 "and get E_sample <= 2(2n − 3)/(n(n − 1)) < 4/n": it is below 1/n."""
    quarter = Fraction(1, 4)
    right = Fraction(2, n * (n - 1)) * (2 * (n - 2) * quarter + quarter)
    assert 4 * right == Fraction(2 * (2 * n - 3), n * (n - 1)) and right < Fraction(1, n)


# --- claim D.2, lemma D.3: the noise of a balanced E ---


def noise_over_claim(records: int, edges: int) -> Fraction:
    """2(δ_max Δf/(ε|E|))² over D.2's 2(2Δf)²/(n²ε²), for k = 2; ε and Δf cancel."""
    degree = -(-2 * edges // records)
    return Fraction(degree * records, 2 * edges) ** 2


def test_claim_d_2_forgets_the_ceiling():
    """D.2: "all vertices have degree ⌈k|E|/n⌉ or ⌊k|E|/n⌋. Hence [...] E_DP ≈ 8/(n²ε²)".

    Lemma D.3 makes a bound of it. It holds where n divides k|E|. One edge more than n/2 nearly
    doubles the greatest degree, and the noise is 4 times what is claimed.
    """
    assert noise_over_claim(4521, 2 * 4521) == 1
    assert float(noise_over_claim(4521, 2260)) == pytest.approx(1.0004, abs=1e-4)
    assert float(noise_over_claim(4521, 2261)) == pytest.approx(4.00, abs=0.005)
    assert noise_over_claim(4521, 1) == Fraction(4521, 2) ** 2, "and without limit for fewer edges"
    assert max(noise_over_claim(100, edges) for edges in range(50, 4951)) < 4


# --- section 3, M_HF with protocol B.1 ---


def test_one_honest_member_of_a_group_has_a_part_of_the_noise_only():
    """4: "a randomly selected group Z [...] will have at least one honest party", D.2.1: "Protocol
    B.1 can be modified to delegate the sharing of noise η to a subgroup Z".

    If 40 members each draw Polya(1/40), one honest one has a fortieth of the shape. For four
    edges a record of one unit each, ε = 1 becomes 6.0; in all, 15 for 65,536 units.
    """
    left = {s: float(remaining_epsilon(Fraction(1), s, 40, 1)) for s in (1, 4, 65_536)}
    assert left == pytest.approx({1: 4.69, 4: 6.01, 65_536: 15.24}, abs=0.005)
    assert 0.5**40 < 1e-12, "40 members are what f_H = 1/2 and 10^-12 ask for"
    assert remaining_epsilon(Fraction(1), 4, 1, 1) == 1, "each member needs noise enough alone"


# --- lemma C.2: the simulator ---


def test_the_simulators_total_is_off_by_the_number_of_edges():
    """C.2: it sends shares of (Û − Σ r'_e)/|E|, and "P_i computes z_i = y_i + |E|·η_i".

    They add up to Û. The parties' real numbers add up to η + Σ f = |E|·Û, so one look at the total
    tells the two apart. Shares of |E|·Û − Σ r'_e, added as the protocol adds η, are right.
    """
    values, noise = [Fraction(1), Fraction(3), Fraction(-2)], Fraction(5)
    edges, drawn = len(values), [Fraction(7), Fraction(-4), Fraction(11)]
    released = (sum(values) + noise) / edges
    simulated = sum(drawn) + edges * ((released - sum(drawn)) / edges)
    real = sum(values) + noise
    assert simulated == released != real == edges * released
    assert sum(drawn) + (edges * released - sum(drawn)) == real


# --- appendix A: numbers and definitions ---


def test_a_1_gives_every_number_one_of_two_values():
    """A.1: "x̄ = (2·b_{ℓ−1} − 1)·Σ_{i=0}^{ℓ−2} 2^i": no b_i and no h, and b_{ℓ−1} = 1 is positive,
    where the next sentence calls "the set {2^{ℓ−1}, …, 2^ℓ − 1}" the negative integers.
    """
    bits = 4
    ones = sum(1 << place for place in range(bits - 1))
    printed = {x: (2 * (x >> (bits - 1)) - 1) * ones for x in range(1 << bits)}
    assert set(printed.values()) == {-7, 7}
    assert printed[15] > 0 > printed[1]


def test_a_1_adds_without_carries():
    """A.1: F_{2^ℓ} = Z_2[X]/(P). Its sum is ⊕, so 1 + 1 = 0: it adds up no statistic."""
    ones = 6
    total = 0
    for _ in range(ones):
        total ^= 1
    assert total == 0 != ones % (1 << 40)


def test_a_1_and_section_6_have_different_ranges():
    """2: int has the range ±2^{ℓ−c−1}, so numbers reach ±2^{ℓ−2c−1}; 6.1: "[−2^25, 2^25]"."""
    bits, fraction = 40, 14
    assert 2 ** (bits - fraction - 1) * Fraction(1, 2**fraction) == 2**11
    assert 2 ** (bits - 1) * Fraction(1, 2**fraction) == 2**25, "int has to reach ±2^{ℓ−1}"


def test_definition_a_4_counts_what_two_datasets_share():
    """A.4: "d(x, x') = |x ∩ x'|. E.g., d(x, x') = 1 means that x and x' differ in at most one
    instance": it is the number of common instances. So neighbours differ in all records but one.
    """
    data, others = {1, 2, 3}, {3, 8, 9}
    assert len(data & others) == 1 and len(data - others) == 2
    assert len(data & data) == 3 > 1, "a dataset is no neighbour of itself"
    neighbour = {1, 2, 9}
    assert len(data & neighbour) == 2 > 1, "nor of one that differs in one instance"


def test_definition_a_3_is_met_by_a_mechanism_that_tells_the_record():
    """A.3: "for all possible outputs O [...] P[A(x) = O] ≤ e^ε · P[A(x') = O] + δ".

    For single outputs: x and one of 1/δ numbers meet it with ε = 0. The outputs of x are a set.
    """
    delta = Fraction(1, 1000)
    law = {x: {(x, place): delta for place in range(1000)} for x in (0, 1)}
    outputs = law[0].keys() | law[1].keys()
    assert all(law[0].get(o, 0) <= law[1].get(o, 0) + delta for o in outputs)
    assert sum(law[0].values()) == 1 > sum(law[1].get(o, 0) for o in law[0]) + delta
