"""Whole studies of people in memory: every statistic is the clear one over all pairs of people."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from tests.protocols.grid.test_grid_run import check_cost
from tests.protocols.u_mpc.test_library import (
    PARAMETERS,
    TABLES,
    columns_of,
    fields_of,
    tables_of,
)
from tests.support.people import people_study
from tests.support.studies import (
    KENDALL,
    LOUD,
    Entropy,
    clear_sums,
    library_study,
    random_tables,
)
from umpc.errors import StudyError, UmpcError
from umpc.mpc.attempt import edges_of
from umpc.protocols.people.in_memory import made_up_terms
from umpc.protocols.people.terms import SHARE, survey_of
from umpc.protocols.registry import checked
from umpc.protocols.u_mpc.settings import noisy_sums
from umpc.simulation import Simulated, simulate
from umpc.study.document import Study
from umpc.study.parts import FieldBins
from umpc.study.settings import HONEST, LYING_NODES
from umpc.study.sizes import Sizes
from umpc.testing import lying
from umpc.ustat.estimators import PAIR_MEDIAN, estimate
from umpc.ustat.statistics import LIBRARY

N = 11
FACTS = {"protocol": "people", "people": made_up_terms(64), "max_colluding": 1}
REFUSED = {
    "mean",
    "triples_skewness",
    "triangle_density",
    *(name for name, each in LIBRARY.items() if each.degree == 4 or each.sampling == "two_sample"),
    *(name for name, each in LIBRARY.items() if each.estimator == PAIR_MEDIAN),
}
"""The library's statistics that people cannot have: they are over one record or four, or compare
three with each other, or have public classes, or are medians of pairs, whose cells share ε.
"""


def study_of(name: str, **changes) -> Study:
    """A library statistic over people, with hardly any noise. Raises: UmpcError."""
    facts = FACTS | changes
    fields, columns = fields_of(name), columns_of(name)
    return checked(
        library_study(name, fields, 2, columns, parameters=PARAMETERS.get(name), **facts)
    )


def run_and_check(study: Study, table, label: str) -> Simulated:
    """A whole study: all sums, the estimate and the cost are those of the people in the clear."""
    run = simulate(study, [table], Entropy(label))
    n = len(next(iter(table.values())))
    expected = clear_sums(study, [table], edges_of(study, bytes(32), [(0, n)]))
    multiplied = noisy_sums(run.transcript.shares, len(study.kernels), run.attempt.ring)
    assert [each // run.attempt.factor for each in multiplied] == expected, label
    means = [
        float(total * kernel.unit / run.report.edges)
        for total, kernel in zip(map(Fraction, expected), study.parsed_kernels, strict=True)
    ]
    zeros = [0.0] * len(means)
    value = estimate(study.estimator, means, zeros, zeros, run.attempt.sizes.sets)
    assert run.report.estimate == value.value
    check_cost(run, 2 if study.adversary == HONEST else 5)
    return run


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_people_have_all_statistics_but_these(name):
    of_pairs = LIBRARY[name].estimator == PAIR_MEDIAN and LIBRARY[name].sampling != "two_sample"
    with pytest.raises(UmpcError, match="Take protocol u-mpc" if of_pairs else "."):
        study_of(name)


@pytest.mark.parametrize("grade", [HONEST, LYING_NODES])
@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize("name", sorted(LIBRARY.keys() - REFUSED))
def test_every_statistic_is_the_clear_one(name, kind, grade):
    """Ties, bounds and all equal, from shares that are uniform words and wrap around."""
    if (name, grade) == ("contrastive_loss", LYING_NODES):
        with pytest.raises(StudyError, match="a cell may be that of no record"):
            study_of(name, adversary=grade)
        return
    study = study_of(name, adversary=grade)
    (table,) = tables_of(study, kind, [N], f"people {name} {kind}")
    run_and_check(study, table, f"people {name} {kind}")


def test_both_shares_wrap_and_are_the_whole_table_together():
    run = run_and_check(people_study(epsilon=LOUD), random_tables([N], "wrap")[0], "wrap")
    first, second = (node.columns[SHARE].view(np.uint64) for node in run.nodes)
    assert min(first.max(), second.max()) > 1 << 60, "no share looks like a count"
    assert (first + second).sum() == N


@pytest.mark.parametrize("bits", [32, 64])
def test_a_share_is_right_in_either_ring(bits):
    """A form takes f(r, r) off, which is not 0 here: shares are 64-bit words in both rings."""
    high = "3" if bits == 32 else "20000"
    study = people_study("a.x * b.x + (a.x == b.x)", epsilon=LOUD, x=("0", high))
    run = run_and_check(study, {"x": np.array([0, 3, 3, 3, 2, int(high)])}, f"ring {bits}")
    assert run.attempt.ring.bits == bits


def test_bins_strata_and_several_statistics_are_the_clear_ones():
    table = random_tables([N], "bins")[0]
    binned = people_study(KENDALL, epsilon=LOUD, bins=(FieldBins("x", 2),))
    over_bins = people_study(KENDALL, epsilon=LOUD)
    run = simulate(binned, [table], Entropy("bins"))
    (expected,) = clear_sums(
        over_bins, [table | {"x": table["x"] // 2}], edges_of(over_bins, bytes(32), [(0, N)])
    )
    assert run.report.sums[0].mean == expected / 55
    inside = [f"(a.x == {k}) * (b.x == {k}) * sign(a.y - b.y) * sign(a.y - b.y)" for k in (0, 1)]
    run_and_check(people_study(inside, epsilon=LOUD, estimator="means"), table, "strata")


def test_a_mean_is_a_kernel_of_pairs():
    study = people_study("(a.x + b.x) * (1/2)", epsilon=LOUD)
    run = run_and_check(study, {"x": np.array([0, 1, 3, 2, 2])}, "mean")
    assert run.report.estimate == 8 / 5


def test_triples_are_the_clear_ones():
    assert LIBRARY["spearman_rho"].degree == 3
    (table,) = tables_of(study_of("spearman_rho"), "random", [N], "triples")
    run = run_and_check(study_of("spearman_rho"), table, "triples")
    assert run.attempt.factor == 6


# --- n counts once --------------------------------------------------------------------------------


def test_n_counts_once_and_one_person_is_in_n_less_one_pairs():
    run = simulate(people_study(), random_tables([N], "once"), Entropy("once"))
    report, sizes = run.report, run.attempt.sizes
    assert (report.records, report.records_by_node) == (N, [N, N])
    assert (report.edges, report.max_degree) == (55, N - 1)
    assert sizes.sensitivities == (2 * (N - 1),)
    assert run.attempt.counts == [(0, N)]


def twice(honest, study, members):
    """The records of both aggregators added up."""
    return Sizes(study, sum(member.records for member in members), 0, 2)


def test_power_an_n_that_counts_twice_is_found():
    with lying("everybody", of=twice), pytest.raises(AssertionError):
        test_n_counts_once_and_one_person_is_in_n_less_one_pairs()


def test_each_aggregator_draws_all_of_the_noise():
    """ε = 1 and Δf = 2: one draw has the standard deviation √2·2(n − 1), and there are two."""
    report = simulate(people_study(), random_tables([N], "noise"), Entropy("noise")).report
    assert report.noise_std == pytest.approx(2 * 2 * (N - 1) / 55, rel=0.01)


def test_a_study_that_is_not_closed_yet_has_no_side():
    study = people_study()
    run = simulate(study, random_tables([N], "open"), Entropy("open"))
    counted, node = run.attempt.study, run.nodes[0]
    assert survey_of(counted) == study and survey_of(counted).hash == study.hash
    assert counted.hash != study.hash
    with pytest.raises(StudyError, match="is not closed yet"):
        type(node)(None, study, node.columns, N, Entropy("open"))
