"""The local Hájek estimator and the median of means: laws, predictions, ε."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from tests.support.curated import (
    CONSTANT,
    EQUAL,
    GINI,
    PRODUCT,
    SeededBits,
    accept_law,
    accept_moments,
    audited,
    columns,
    draws,
    heavy_cdf,
    random_columns,
)
from umpc.dp.events import PureEvent
from umpc.errors import InvalidEpsilon, StudyError, TooFewRecords
from umpc_papers.central.central_mechanisms import MedianOfMeans, failure, least_chunks
from umpc_papers.central.global_sensitivity import GlobalSensitivity
from umpc_papers.central.hajek import (
    LocalHajek,
    bernstein_concentration,
    private_mean,
    reweight,
    tune,
    tuning_of,
)
from umpc_papers.central.heavy_tail import add_heavy_tail
from umpc_papers.central.terms import CompleteFamily, kernel_terms, sums, values

ONE, GRID = Fraction(1), Fraction(1, 1 << 16)
EVEN = columns([0, 1, 2, 3] * 10)
"""Every value occurs equally often, so all H_i are equal, as for a degenerate statistic."""

# --- the estimator -----------------------------------------------------------------------------


def test_on_a_table_that_fits_its_error_is_the_predicted_noise():
    protocol = LocalHajek(EQUAL, ONE, Fraction(1, 20), grid=GRID)
    noise = protocol.noise_variance(CompleteFamily(40, 2))
    found = draws(lambda bits: protocol.estimate(EVEN, bits), 900, "hajek")
    accept_law(found - 4 * 45 / 780, heavy_cdf, noise**0.5)
    assert protocol.mse(40, 0.5) == 0.5 + noise


def test_subsampled_its_error_is_the_noise_of_the_family_drawn():
    """Section 4.5: the error is around the mean over the family.

    That mean has the variance of drawing sets. L, q and p are those of the family.
    """
    protocol = LocalHajek(EQUAL, Fraction(4), Fraction(1, 2), count=600, grid=GRID)
    terms, family = kernel_terms(EQUAL, EVEN), protocol.family(40, SeededBits("family"))
    exact = Fraction(int(values(terms, family).sum()), 600)
    assert (
        reweight(
            terms, family, tuning_of(terms, family, protocol.concentration, protocol.epsilon).bound
        ).level
        == 0
    )

    def once(bits):
        return (
            private_mean(terms, family, protocol.concentration, protocol.epsilon, bits, GRID)
            - exact
        )

    accept_law(draws(once, 900, "subsampled"), heavy_cdf, protocol.noise_variance(family) ** 0.5)
    released = protocol.estimate(EVEN, SeededBits("whole"))
    assert (released / protocol.grid).denominator == 1 and abs(released - exact) < 2


def test_outlying_records_raise_the_noise_and_move_the_estimate():
    table = columns([0] * 3 + [1, 2, 3] * 12 + [1])
    protocol = LocalHajek(PRODUCT, ONE, Fraction(1, 10))
    terms, family = kernel_terms(PRODUCT, table), CompleteFamily(40, 2)
    tuning = tuning_of(terms, family, protocol.concentration, ONE)
    found = reweight(terms, family, tuning.bound)
    assert found.level > 0 and tuning.scale(found.level, 40) > tuning.scale(0, 40)
    assert found.value != Fraction(sums(terms, family)[0], 780)


def test_it_beats_the_global_sensitivity_where_the_statistic_is_degenerate_and_only_there():
    """5000 records of 200 values: ξ from Bernstein, and ξ = C where nothing is known."""
    n, epsilon = 5000, ONE
    xi = bernstein_concentration(n, 2, ONE, Fraction(1, 200), Fraction(1, 20))
    family = CompleteFamily(n, 2)
    degenerate, unknown = LocalHajek(EQUAL, epsilon, xi), LocalHajek(EQUAL, epsilon, ONE)
    plain = GlobalSensitivity(EQUAL, epsilon).noise_variance(n)
    assert degenerate.noise_variance(family) < plain / 20
    assert unknown.noise_variance(family) > plain


def test_bernsteins_concentration_holds_for_all_records():
    """The H_i of 300 records, uniform over 10 values, in 40 tables; ξ is not 4 times too wide."""
    xi, rng, farthest = (
        bernstein_concentration(300, 2, ONE, Fraction(1, 10), Fraction(1, 20)),
        np.random.default_rng(5),
        [],
    )
    for _ in range(40):
        counts = np.bincount(rng.integers(0, 10, 300), minlength=10)
        mean = float((counts * (counts - 1)).sum() / (300 * 299))
        farthest.append(max(abs((c - 1) / 299 - mean) for c in counts if c))
    assert max(farthest) <= xi < 4 * max(farthest)


def test_tuning_is_the_least_noise_among_its_choices():
    best = tune(1, Fraction(1, 20), Fraction(2, 40), Fraction(1, 39), ONE, 40)
    assert best.alpha * Fraction(22_796, 10_000) + 3 * best.beta == 1
    for factor in (Fraction(1, 4), Fraction(4)):
        other = replace(best, bound=replace(best.bound, slope=best.bound.slope * factor))
        assert other.scale(0, 40) >= best.scale(0, 40)


@pytest.mark.parametrize("epsilon", ["1e-3", "1e-30"])
def test_an_epsilon_of_any_size_leaves_a_slope(epsilon):
    """The slope keeps 20 significant bits, so it is not 0. Half of ε gives four times the noise."""
    family = CompleteFamily(40, 2)
    small, half = (
        LocalHajek(EQUAL, Fraction(epsilon) / k, ONE).noise_variance(family) for k in (1, 2)
    )
    assert half == pytest.approx(4 * small, rel=0.01)
    tuning = tune(1, ONE, Fraction(2, 40), Fraction(1, 39), Fraction(epsilon), 40)
    assert 0 < tuning.bound.slope <= 8 * Fraction(epsilon) * Fraction(101, 100)


def test_its_loss_is_at_most_epsilon():
    """One of the neighbours has an outlying record, so the means and the scales differ."""
    tables = columns([1] * 7 + [0]), columns([1] * 7 + [3])
    protocol = LocalHajek(PRODUCT, Fraction(2), Fraction(1, 2), grid=GRID)
    assert audited(*(lambda b, t=t: protocol.estimate(t, b) for t in tables), 250, "hajek") <= 2
    part = LocalHajek(PRODUCT, Fraction(2), Fraction(1, 2), count=20, grid=GRID)
    assert audited(*(lambda b, t=t: part.estimate(t, b) for t in tables), 60, "hajek, part") <= 2
    loud = replace(part, epsilon=Fraction(500))
    assert (
        audited(*(lambda b, t=t: loud.estimate(t, b) for t in tables), 300, "loud hajek, part") > 2
    )


def test_noise_of_the_local_sensitivity_alone_loses_more():
    """Power: the audit detects noise scaled to a sixth of the difference of two tables."""
    tables = [kernel_terms(PRODUCT, columns([1] * 7 + [last])) for last in (0, 3)]
    family = CompleteFamily(8, 2)
    bound = tuning_of(tables[0], family, Fraction(1, 2), Fraction(2)).bound
    found = [reweight(terms, family, bound).value for terms in tables]
    scale = abs(found[0] - found[1]) / 6
    wrong = [lambda b, v=v: add_heavy_tail(v, scale, Fraction(1, 1 << 20), b) for v in found]
    assert audited(*wrong, 500, "wrong hajek") > 2


def test_a_constant_needs_no_noise():
    protocol = LocalHajek(CONSTANT, ONE, Fraction(0))
    assert protocol.estimate(columns([0, 1, 2]), SeededBits("constant")) == 2
    assert protocol.noise_variance(CompleteFamily(5, 2)) == 0 and protocol.event == PureEvent(ONE)


@pytest.mark.parametrize(
    "change",
    [{"concentration": Fraction(-1)}, {"concentration": 0.5}, {"count": 0}, {"grid": Fraction(0)}],
)
def test_hajek_refuses(change):
    with pytest.raises(StudyError):
        replace(LocalHajek(EQUAL, ONE, ONE), **change)
    with pytest.raises(InvalidEpsilon):
        LocalHajek(EQUAL, 1.0, ONE)


# --- the median of means -----------------------------------------------------------------------


@dataclass(frozen=True)
class Plain:
    """An estimator for medians: the mean of x with nearly normal noise."""

    event = PureEvent(ONE)

    def estimate(self, table, bits) -> Fraction:
        return Fraction(int(table["x"].sum()), len(table["x"])) + Fraction(
            bits(64).bit_count() - 32, 4
        )


@pytest.mark.parametrize("chunks", [1, 9])
def test_the_median_has_the_predicted_error(chunks):
    """Runs with nearly normal errors of variance 1 satisfy the bound for all laws."""
    protocol = MedianOfMeans(Plain(), chunks)
    found = draws(lambda bits: protocol.estimate(columns([1] * 45), bits), 2000, f"median {chunks}")
    accept_moments(found, 1.0, protocol.mse_normal(1.0))
    assert protocol.mse_normal(1.0) <= protocol.mse_bound(1.0) <= 2


def test_every_record_is_in_one_chunk_only():
    seen = []

    @dataclass(frozen=True)
    class Watching(Plain):
        def estimate(self, table, bits):
            seen.append(table["x"].tolist())
            return Fraction(0)

    MedianOfMeans(Watching(), 7).estimate({"x": np.arange(50)}, SeededBits("chunks"))
    assert sorted(i for chunk in seen for i in chunk) == list(range(50)) and {
        len(s) for s in seen
    } == {7, 8}


def test_so_many_chunks_make_failure_as_rare_as_wanted():
    assert least_chunks(Fraction(1, 100)) == 19 < 8 * np.log(100)
    assert failure(19, Fraction(1, 4)) <= Fraction(1, 100) < failure(17, Fraction(1, 4))
    assert np.isclose(float(failure(19, Fraction(1, 4))), stats.binom(19, 0.25).sf(9))


def test_the_medians_loss_is_at_most_epsilon():
    """The record may be in any of three chunks. The audit detects a much larger budget."""
    tables = columns([3] * 6 + [0] * 2), columns([3] * 7 + [0])
    inner = GlobalSensitivity(GINI, ONE)
    assert (
        audited(
            *(lambda b, t=t: MedianOfMeans(inner, 3).estimate(t, b) for t in tables), 200, "median"
        )
        <= 1
    )
    loud = MedianOfMeans(replace(inner, epsilon=Fraction(40)), 1)
    assert audited(*(lambda b, t=t: loud.estimate(t, b) for t in tables), 300, "loud median") > 1


def test_median_refuses():
    for chunks in (0, 2, -1, 1.0):
        with pytest.raises(StudyError):
            MedianOfMeans(Plain(), chunks)
    with pytest.raises(TooFewRecords):
        MedianOfMeans(Plain(), 5).estimate(random_columns(3, 1), SeededBits("unused"))
    for wanted, single in ((0.5, ONE / 4), (Fraction(0), ONE / 4), (ONE / 4, ONE / 2)):
        with pytest.raises(StudyError):
            least_chunks(wanted, single)
