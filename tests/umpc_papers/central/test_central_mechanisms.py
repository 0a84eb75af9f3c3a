"""Central mechanisms with public parameters: exact predictions on any table, bounds, costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import combinations
from math import comb

import numpy as np
import pytest

from reproduction.baselines.cost import (
    cost,
    dpsgd_cost,
    evaluations,
    gopa_cost,
    median_cost,
    operations,
    triangles_cost,
)
from reproduction.baselines.dpsgd import PairwiseSgd
from reproduction.baselines.gopa import Gopa
from tests.support.curated import (
    CONSTANT,
    EQUAL,
    GINI,
    KENDALL,
    PRODUCT,
    SCHEMA,
    TRIPLE,
    SeededBits,
    accept_law,
    columns,
    heavy_cdf,
    laplace_cdf,
    random_columns,
)
from tests.support.pair_moments import pair_moments
from umpc.dp.events import PureEvent
from umpc.errors import RangeError, StudyError, TooFewRecords
from umpc.ustat.clear import Columns
from umpc.ustat.kernel import Kernel
from umpc.ustat.schema import FieldSchema, Schema
from umpc_papers.central.central_mechanisms import (
    MOST_SETS,
    MOST_VALUES,
    NAMES,
    Choice,
    MedianOfMeans,
)
from umpc_papers.central.settings import MECHANISMS, SUBSAMPLED
from umpc_papers.central.terms import CompleteFamily, kernel_terms, values
from umpc_papers.central.uniformity import UniformityTest

ONE, LOUD = Fraction(1), Fraction(10**12)
SINGLE = Kernel.from_text("a.x * a.y", SCHEMA, degree=1)


@dataclass(frozen=True)
class CountingKernel(Kernel):
    """A kernel that notes how many edges it evaluates."""

    seen: list[int] = field(default_factory=list, compare=False)

    def evaluate(self, records: Sequence[Columns]) -> np.ndarray:
        found = super().evaluate(records)
        self.seen.append(len(found))
        return found


by_name = pytest.mark.parametrize("name", NAMES)


def choice(name: str, kernel: Kernel = KENDALL, epsilon: Fraction = ONE, count: int = 30) -> Choice:
    return Choice(name, kernel, epsilon, count if name in SUBSAMPLED else 0)


def mean_over(chosen: Choice, table, seed: str) -> float:
    """The mean over the sets that this seed draws."""
    terms = kernel_terms(chosen.kernel, table)
    found = values(terms, chosen.family(terms.records, SeededBits(seed)))
    return float(found.mean()) * float(terms.unit)


def test_a_study_names_the_same_mechanisms():
    assert NAMES == MECHANISMS and set(SUBSAMPLED) < set(NAMES)


# --- what is predicted -------------------------------------------------------------------------


@by_name
def test_the_error_around_the_mean_over_its_sets_has_exactly_the_predicted_noise(name):
    """This holds for every table, here one with outliers, and for the sets that were drawn."""
    chosen = choice(name)
    outlying = columns([0] * 9 + [3] * 3, [0] * 10 + [3, 0])
    table = columns([1] * 12) if name == "hajek_split" else outlying
    scaled = []
    for number in range(650 if name.startswith("hajek") else 1600):
        seed = f"{name} {number}"
        if name not in ("laplace", "coinpress_all", "hajek", "hajek_split") or not number:
            mean = mean_over(chosen, table, seed)
            std = chosen.noise_std(12, chosen.family(12, SeededBits(seed)))
        scaled.append((float(chosen.estimate(table, SeededBits(seed))) - mean) / std)
    accept_law(np.array(scaled), heavy_cdf if name.startswith("hajek") else laplace_cdf, 1.0)


@pytest.mark.parametrize("kernel", [SINGLE, GINI, PRODUCT, EQUAL, TRIPLE, CONSTANT])
@by_name
def test_without_noise_it_is_the_mean_over_its_sets_at_every_degree(name, kernel):
    """Nothing is clipped, cut or weighted down, although some records are extreme outliers."""
    chosen = choice(name, kernel, LOUD)
    table = columns([0] * 13 + [3] * 3)
    error = float(chosen.estimate(table, SeededBits("loud"))) - mean_over(chosen, table, "loud")
    if name != "hajek_split":
        assert abs(error) <= max(1.0, float(kernel.interval.width)) / (1 << 16) + 1e-6, (
            "half a step of the grid"
        )
    assert chosen.noise_std(16, chosen.family(16, SeededBits("loud"))) < 1e-6
    assert choice(name, kernel).event == PureEvent(ONE)


def test_without_noise_the_split_averages_the_pairs_of_one_half():
    chosen = choice("hajek_split", GINI, LOUD)
    table = {"x": np.arange(16) % 4, "y": np.zeros(16)}
    halves = {
        round(float(np.mean([abs(i % 4 - j % 4) for i, j in combinations(half, 2)])), 6)
        for half in combinations(range(16), 8)
    }
    assert round(float(chosen.estimate(table, SeededBits("half"))), 6) in halves


@pytest.mark.parametrize("name", ["coinpress_naive", "coinpress_subsampled", "hajek_split"])
def test_taking_sets_errs_by_no_more_than_the_bound_and_sometimes_nearly(name):
    """Half the values are at either end of the range. The split's half is drawn 300 times."""
    kernel = Kernel.from_text(
        "(2 * a.x - 1) * (2 * b.x - 1)", Schema([FieldSchema("x", *map(Fraction, (0, 1, 1)))])
    )
    chosen = choice(name, kernel, LOUD)
    table = {"x": np.array([0, 1] * 10)}
    moments = pair_moments(kernel_terms(kernel, table))
    if name == "hajek_split":
        bits = SeededBits("halves")
        drawn = [float(chosen.estimate(table, bits)) for _ in range(300)]
        exact = np.mean([(each - moments.mean) ** 2 for each in drawn])
    else:
        exact = moments.disjoint() if name == "coinpress_naive" else moments.subsampled(30)
    assert exact**0.5 <= chosen.sampling_bound(20)
    least = 0.1 if name == "hajek_split" else 0.9
    assert exact**0.5 > least * chosen.sampling_bound(20)
    assert choice("hajek").sampling_bound(20) == choice("laplace").sampling_bound(20) == 0


@pytest.mark.parametrize(("n", "k"), [(7, 2), (7, 3), (8, 3)])
def test_disjoint_sets_are_related_by_no_more_than_knesers_graph_says(n, k):
    """The eigenvalues of the graph's own matrix agree with the bound."""
    sets = [set(s) for s in combinations(range(n), k)]
    graph = np.array([[float(not one & other) for other in sets] for one in sets])
    found = sorted(np.linalg.eigvalsh(graph) / graph.sum(axis=0)[0])
    assert np.isclose(found[-1], 1)
    kernel = GINI if k == 2 else TRIPLE
    half, bound = (
        float(kernel.interval.width) / 2,
        choice("coinpress_naive", kernel).sampling_bound(n),
    )
    assert np.isclose(max(found[-2], 0), (bound / half) ** 2 - 1 / (n // k))


def test_known_only_by_its_range_laplace_has_the_least_noise():
    """docs/papers.md: CoinPress pays 4/3 for its steps, the local Hájek estimator more."""
    stds = {
        name: (chosen := choice(name)).noise_std(4521, chosen.family(4521, SeededBits("std")))
        for name in NAMES
    }
    assert min(stds, key=stds.get) == "laplace"
    assert stds["coinpress_all"] == pytest.approx(4 / 3 * stds["laplace"], rel=1e-3)


# --- what is refused ---------------------------------------------------------------------------


@by_name
def test_too_few_and_too_many_records_are_refused(name):
    chosen = choice(name)
    least = 8 if name == "hajek_split" else 2
    chosen.check_records(least)
    with pytest.raises(TooFewRecords, match=f"at least {least} records, {least - 1} came"):
        chosen.check_records(least - 1)
    most = {
        "coinpress_naive": 2 * MOST_VALUES + 2,
        "coinpress_all": 1 << 14,
        "hajek_split": 1 << 17,
    }.get(name, 1 << 16)
    if name in SUBSAMPLED:
        chosen.check_records(1 << 26)
        chosen = choice(name, count=MOST_SETS + 1)
    with pytest.raises(
        RangeError, match=r"at most .* are possible; take fewer records, or a subsampled"
    ):
        chosen.check_records(most + 9)


@by_name
def test_a_sum_that_may_not_fit_is_refused_before_anything_is_drawn(name):
    kernel = Kernel.from_text(
        "a.x * b.x", Schema([FieldSchema("x", Fraction(0), Fraction(1 << 26), ONE)])
    )
    choice(name, kernel).check_records(8)
    with pytest.raises(RangeError, match="may not fit 62 bits; take coarser"):
        choice(name, kernel, count=1 << 12).check_records(1 << 12)


def test_an_unknown_name_is_refused():
    with pytest.raises(StudyError, match="must be one of laplace"):
        choice("gauss")


# --- what it costs -----------------------------------------------------------------------------


@pytest.mark.parametrize(("kernel", "records"), [(SINGLE, 20), (KENDALL, 21), (TRIPLE, 13)])
@by_name
def test_the_kernel_is_evaluated_as_often_as_predicted(name, kernel, records):
    counting = CountingKernel(kernel.expression, kernel.schema, kernel.degree)
    chosen = choice(name, counting)
    chosen.estimate(random_columns(records, 1), SeededBits("cost"))
    assert sum(counting.seen) == evaluations(chosen, records) <= operations(chosen, records)


@by_name
def test_messages_are_bits_of_fields_and_operations_grow_with_the_sets(name):
    """A record has two fields of two bits, and a node sends 32 further bytes."""
    small, large = (cost(choice(name), counts) for counts in ([100], [200, 201]))
    assert (small.message_bytes, large.message_bytes) == (32 + 2 * 25, 64 + 2 * 50 + 2 * 51)
    assert small.rounds == 1 and small.node_operations == 200
    grown = large.coordinator_operations / small.coordinator_operations
    linear = name in ("coinpress_naive", *SUBSAMPLED)
    assert grown < 4.5 if linear else 14 < grown < 18


def test_costs_of_what_is_no_study():
    laplace = choice("laplace")
    median = median_cost(MedianOfMeans(laplace, 3), [50, 50])
    assert (
        median.coordinator_operations == operations(laplace, 34) + 2 * operations(laplace, 33) + 100
    )
    with pytest.raises(StudyError, match="for a Choice"):
        median_cost(MedianOfMeans(UniformityTest("x", 2, ONE, 8, ONE).estimator, 3), [9])
    assert triangles_cost(20).message_bytes == 24 and triangles_cost(
        20
    ).coordinator_operations > comb(20, 3)
    ring = tuple((i, (i + 1) % 8) for i in range(8))
    gopa = Gopa(Fraction(0), ONE, Fraction(1, 1024), 8, ring, Fraction(100), Fraction(10**8))
    assert (
        gopa_cost(gopa).message_bytes == 8 * 3
        and gopa_cost(replace(gopa, edges=())).message_bytes == 8 * 2
    )
    sgd = PairwiseSgd(60, 20, 5, ONE, ONE, ONE, pairs=3)
    assert dpsgd_cost(sgd, 2).message_bytes == 60 * 24
    assert (
        dpsgd_cost(replace(sgd, steps=10), 2).coordinator_operations
        == 2 * dpsgd_cost(sgd, 2).coordinator_operations
    )
    assert CompleteFamily(20, 3).count == comb(20, 3)
