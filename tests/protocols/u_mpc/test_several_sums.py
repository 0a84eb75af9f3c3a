"""Several sums in one study: exact parts of ε, noise and a zero share for each, and one estimate of
all.
"""

from __future__ import annotations

import json
from fractions import Fraction
from functools import cache
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tests.support.mpc_studies import ALPHA, homogeneity, uniformity
from tests.support.protocols import noise_of
from tests.support.statistical import chi_square
from tests.support.studies import (
    GINI,
    KENDALL,
    LOUD,
    Entropy,
    changed,
    clear_sums,
    library_study,
    make_study,
    random_tables,
    table,
)
from umpc.dp.calibration import DistributedLaplace
from umpc.protocols.registry import attempt_of, checked
from umpc.protocols.u_mpc.settings import noisy_sums
from umpc.simulation import simulate
from umpc.study.report import Report
from umpc.study.sizes import Sizes
from umpc.testing import lying

UNTIED = "(a.x == b.x) * -1 + 1"
THREE = (KENDALL, UNTIED, "(a.y == b.y) * -1 + 1")
TAU_B = make_study(THREE, 2, estimator="geometric_ratio", epsilon=LOUD)

# --- parts of ε
# ---------------------------------------------------------------------------------------------


def three(**changes):
    return make_study(THREE, 3, estimator="geometric_ratio", **changes)


def test_without_a_split_every_sum_gets_an_equal_part():
    assert three(epsilon="1").epsilons == (Fraction(1, 3),) * 3
    assert (
        make_study((KENDALL, GINI), estimator="ratio", epsilon="0.1").epsilons
        == (Fraction(1, 20),) * 2
    )
    assert make_study(epsilon="0.1").epsilons == (Fraction(1, 10),)


def test_a_split_gives_each_sum_its_own_part_in_order():
    study = three(epsilon="2", split=("1/2", "0.3", "1/5"))
    assert checked(study).epsilons == (Fraction(1), Fraction(3, 5), Fraction(2, 5))


@given(
    st.fractions(min_value=Fraction(1, 1000), max_value=1000).filter(lambda f: f > 0),
    st.lists(st.integers(1, 10**6), min_size=3, max_size=3),
)
def test_the_parts_add_up_exactly(epsilon, weights):
    split = tuple(str(Fraction(weight, sum(weights))) for weight in weights)
    for parts in ((), split):
        study = changed(kernels=THREE, split=parts, epsilon=str(epsilon))
        assert sum(study.epsilons) == epsilon == study.exact_epsilon and min(study.epsilons) > 0


# --- noise
# --------------------------------------------------------------------------------------------------


def test_each_sum_has_noise_for_its_own_sensitivity_and_part():
    kernels, split = ("a.x == b.x", GINI, "a.x * b.x"), ("1/2", "1/3", "1/6")
    study = make_study(
        kernels,
        4,
        estimator="geometric_ratio",
        split=split,
        epsilon="3",
        edges="2n",
        max_colluding=1,
    )
    sizes = Sizes(study, 20)
    assert sizes.max_degree == 4 and sizes.sensitivities == (4 * 1, 4 * 3, 4 * 9)
    assert [(n.epsilon, n.sensitivity, n.nodes, n.honest) for n in noise_of(sizes)] == [
        (Fraction(3, 2), 4, 4, 3),
        (Fraction(1), 12, 4, 3),
        (Fraction(1, 2), 36, 4, 3),
    ]


NOISE_RUNS = 1200
NOISY = make_study(
    ("a.x", "a.y", "5"),
    2,
    degree=1,
    x=("0", "8"),
    y=("0", "2"),
    estimator="geometric_ratio",
    split=("1/4", "1/2", "1/4"),
    epsilon="4",
    max_colluding=1,
)
"""Sums of ranges 8, 2 and 0 with parts 1, 2 and 1 of ε: s/ε = 8 and 1, and a public constant."""
SCALES = (8.0, 1.0)


@cache
def noise_of_runs(seed: str) -> np.ndarray:
    """Released sums minus exact ones, in units: (runs, sums)."""
    tables, entropy, draws = random_tables([2, 1], "noise", high=1), Entropy(seed), []
    for _ in range(NOISE_RUNS):
        run = simulate(NOISY, tables, entropy)
        exact = clear_sums(NOISY, tables, run.attempt.hypergraph)
        draws.append(
            [s - e for s, e in zip(noisy_sums(run.transcript.shares, 3), exact, strict=True)]
        )
    return np.array(draws)


def noise_p(draws: np.ndarray, scale: float) -> float:
    """Against the law of two shares of which one suffices: NB(2) − NB(2), q = e^(−1/scale), by
    convolution.
    """
    half = stats.nbinom.pmf(np.arange(200), 2, -np.expm1(-1 / scale))
    cumulative = np.cumsum(np.convolve(half, half[::-1]))
    return chi_square(
        draws.tolist(), lambda x: float(cumulative[np.clip(x + 199, 0, 398)]), -150, 150
    )


@pytest.mark.parametrize("number", [0, 1])
def test_each_sums_noise_has_its_own_exact_law(number):
    draws = noise_of_runs("several")[:, number]
    p = noise_p(draws, SCALES[number])
    assert p > ALPHA, f"not the law: p = {p:.1e}, N = {NOISE_RUNS}, seed 'several'"
    for wrong in (0.7, 1.3):
        p = noise_p(draws, SCALES[number] * wrong)
        assert p < ALPHA, (
            f"no power: a scale × {wrong} passes with p = {p:.1e}, N = {NOISE_RUNS}, seed 'several'"
        )


def test_a_sum_that_no_record_can_change_has_no_noise():
    assert not noise_of_runs("several")[:, 2].any()


def test_the_noises_of_two_sums_are_independent():
    """The second's sign and size do not depend on the first's sign."""
    first, second = noise_of_runs("several")[:, :2].T
    p = homogeneity(*(np.clip(second[first > 0], -1, 1) + 1, np.clip(second[first < 0], -1, 1) + 1))
    assert p > ALPHA, f"p = {p:.1e}, N = {NOISE_RUNS}, seed 'several'"
    assert abs(np.corrcoef(first, second)[0, 1]) < 0.2, "seed 'several'"


def test_power_one_noise_for_all_sums_is_found():
    drawn = {}

    def draw(honest, law, bits):
        return drawn.setdefault(id(bits.__self__), honest(law, bits))

    # the coordinator refuses such noise of a sum that no record can change
    unchecked = lying("coordinator", check_sums=lambda *arguments: None)
    with lying("everybody", draw=draw), unchecked:
        draws = noise_of_runs("one noise")
    assert noise_p(draws[:, 1], SCALES[1]) < ALPHA


DRAW = DistributedLaplace.draw

# --- shares
# -------------------------------------------------------------------------------------------------

SHARE_RUNS = 400


def test_shares_of_several_sums_are_one_string_of_bytes():
    run = simulate(TAU_B, random_tables([3, 4], "bytes"), Entropy("bytes"))
    assert {len(share) for share in run.transcript.shares} == {3 * run.attempt.ring.bytes} == {12}
    wide = make_study((KENDALL, GINI), x=("0", "1e9"), estimator="ratio", epsilon=LOUD)
    run = simulate(wide, random_tables([3, 4], "bytes"), Entropy("bytes"))
    assert {len(share) for share in run.transcript.shares} == {2 * 8}
    assert noisy_sums(run.transcript.shares, 2) == clear_sums(
        wide, run_tables("bytes"), run.attempt.hypergraph
    )


def run_tables(label: str):
    return random_tables([3, 4], label)


def shares_of_runs(seed: str, xs: tuple[int, int]) -> np.ndarray:
    """The first node's shares of two equal sums, their low bits: (runs, 2). Exact sums but for the
    zero shares.
    """
    study = make_study(("a.x", "a.x"), 2, degree=1, estimator="ratio", epsilon=LOUD)
    entropy, rows = Entropy(seed), []
    for _ in range(SHARE_RUNS):
        share = simulate(study, [table(xs, [0, 0]), table([1], [0])], entropy).transcript.shares[0]
        rows.append([share[0] & 15, share[4] & 15])
    return np.array(rows)


def share_p(seed: str) -> dict[str, float]:
    """p-values of: uniform, the same for other records, and the second independent of the first."""
    first, second = shares_of_runs(f"{seed} 0", (0, 0)), shares_of_runs(f"{seed} 1", (3, 2))
    differences = [(sample[:, 1] - sample[:, 0]) % 16 for sample in (first, second)]
    return {
        "uniform": min(
            uniformity(sample[:, number], 16) for sample in (first, second) for number in (0, 1)
        ),
        "records": min(homogeneity(first[:, number], second[:, number]) for number in (0, 1)),
        "independent": min(uniformity(difference, 16) for difference in differences),
    }


def test_each_sums_share_is_uniform_and_independent_of_the_others():
    for name, p in share_p("shares").items():
        assert p > ALPHA, f"{name}: p = {p:.1e}, N = {SHARE_RUNS} per data set, seed 'shares'"


@pytest.mark.parametrize(
    ("mutate", "finder"),
    [
        (lambda masks: [masks[0], 0], "uniform"),
        (lambda masks: [0, masks[1]], "uniform"),
        (lambda masks: [masks[0]] * 2, "independent"),
    ],
    ids=["second unmasked", "first unmasked", "one mask for both"],
)
def test_power_a_sum_without_its_own_zero_share_is_found(mutate, finder):
    with lying("node", zero_shares=lambda honest, *given: mutate(honest(*given))):
        assert share_p("power")[finder] < ALPHA


# --- the estimate
# -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", ["one", "two", "three"])
@pytest.mark.parametrize("counts", [(5, 4), (3, 0, 6), (1,) * 9], ids=str)
def test_tau_b_is_scipys(counts, seed):
    tables = random_tables(counts, f"tau b {seed}")
    study = make_study(THREE, len(counts), estimator="geometric_ratio", epsilon=LOUD)
    report = simulate(study, tables, Entropy(seed)).report
    x, y = (np.concatenate([t[column] for t in tables]) for column in ("x", "y"))
    assert report.estimate == pytest.approx(stats.kendalltau(x, y).statistic, abs=1e-12)


def test_gamma_is_concordant_minus_discordant_over_both():
    tables = random_tables([4, 5, 3], "gamma")
    study = library_study("goodman_kruskal_gamma", TAU_B.fields, 3, ["x", "y"])
    rows = [(int(x), int(y)) for t in tables for x, y in zip(t["x"], t["y"], strict=True)]
    signs = [(a[0] - b[0]) * (a[1] - b[1]) for a, b in combinations(rows, 2)]
    concordant, discordant = sum(s > 0 for s in signs), sum(s < 0 for s in signs)
    report = simulate(study, tables, Entropy("gamma")).report
    expected = Fraction(concordant - discordant, concordant + discordant)
    assert report.estimate == pytest.approx(float(expected), abs=1e-12) and report.note == ""
    means = [
        Fraction(concordant - discordant, len(signs)),
        Fraction(concordant + discordant, len(signs)),
    ]
    assert [entry.mean for entry in report.sums] == [float(mean) for mean in means]


def test_the_report_says_of_every_sum_what_was_released_and_what_it_took():
    study = three(epsilon="6", split=("1/2", "1/3", "1/6"), edges="2n", max_colluding=1)
    run = simulate(study, random_tables([6, 8, 7], "said"), Entropy("said"))
    report, noises = run.report, noise_of(run.attempt.sizes)
    totals = noisy_sums(run.transcript.shares, 3)
    assert [entry.kernel for entry in report.sums] == [
        kernel.text for kernel in study.parsed_kernels
    ]
    assert [entry.mean for entry in report.sums] == [total / report.edges for total in totals]
    assert [entry.epsilon for entry in report.sums] == [3.0, 2.0, 1.0] and report.epsilon == 6.0
    assert [entry.noise_std for entry in report.sums] == [
        noise.std / report.edges for noise in noises
    ]
    widths = [2, 1, 1]
    bounds = [entry.sampling_std_bound / report.sums[1].sampling_std_bound for entry in report.sums]
    assert bounds == pytest.approx(widths)
    assert (report.estimator, report.degree, report.edges, report.sets) == (
        "geometric_ratio",
        2,
        42,
        210,
    )


def test_the_attempts_ring_covers_the_noise_of_every_sum():
    run = simulate(three(), random_tables([3, 3, 3], "covers"), Entropy("covers"))
    study, sizes = run.attempt.study, run.attempt.sizes
    bounds = [
        sizes.edges * kernel.magnitude_units + noise.tail_bound()
        for kernel, noise in zip(study.parsed_kernels, noise_of(sizes), strict=True)
    ]
    assert max(bounds) < 2 ** (run.attempt.ring.bits - 1)
    again = attempt_of(study, run.attempt.members, [node.opening for node in run.nodes])
    assert again.id == run.attempt.id


# --- a denominator that drowns
# ------------------------------------------------------------------------------

DROWNED = make_study((KENDALL, UNTIED), 2, estimator="ratio", epsilon="1/1000")


def test_a_ratio_whose_denominator_drowns_has_no_estimate_and_says_why():
    report = simulate(DROWNED, random_tables([3, 4], "drowned"), Entropy("drowned")).report
    nothing = (
        report.estimate,
        report.noise_std,
        report.low,
        report.high,
        report.sampling_std_bound,
    )
    assert nothing == (None,) * 5
    assert (
        "sum 2" in report.note
        and "cannot be told from zero" in report.note
        and "more epsilon" in report.note
    )
    assert all(entry.noise_std > 1 for entry in report.sums), "what was released is still reported"


def test_a_denominator_of_exactly_zero_has_no_estimate():
    """All x are equal, so no pair is untied, and there is no noise."""
    tables = [table([2, 2, 2], [0, 1, 2]), table([2], [3])]
    report = simulate(TAU_B, tables, Entropy("zero")).report
    assert report.estimate is None and "sum 2, 0, cannot be told from zero" in report.note


@pytest.mark.parametrize("study", [DROWNED, TAU_B, make_study()], ids=["drowned", "three", "one"])
def test_a_report_survives_its_dictionary_and_json(study):
    report = simulate(study, random_tables([3, 4], "json"), Entropy("json")).report
    assert Report.from_dict(report.to_dict()) == report
    again = Report.from_dict(json.loads(json.dumps(report.to_dict(), allow_nan=False)))
    assert (
        again == report
        and again.sums == report.sums
        and type(again.sums[0]) is type(report.sums[0])
    )
