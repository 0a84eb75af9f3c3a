"""umpc.protocols.u_mpc.settings: shares added up, and the errors of each mean."""

from __future__ import annotations

from itertools import combinations, permutations
from math import comb, sqrt

import numpy as np
import pytest

from tests.support.protocols import noise_of, with_facts
from tests.support.reports import GINI_STUDY as STUDY
from tests.support.reports import attempt_over, build_report, shares_of
from tests.support.studies import CLASSES
from umpc.crypto.prg import Stream
from umpc.protocols.u_mpc.settings import noisy_sums, sampling_bound
from umpc.study.cost import Measured
from umpc.study.document import Study
from umpc.study.report import Report
from umpc.study.sizes import Sizes
from umpc.ustat.design import largest_factor, largest_factor_two_sample
from umpc.ustat.sampling import balanced


def report_over(study: Study, counts=(4, 6), first=(0, 0)) -> Report:
    """The report of a sum of 0."""
    return build_report(study, shares_of(0, 2, 4), attempt_over(study, counts, first), Measured())


@pytest.mark.parametrize("size", [4, 8])
@pytest.mark.parametrize("parts", [1, 2, 5])
@pytest.mark.parametrize("total", [0, 1, -1, 12345, -98765, (1 << 31) - 1, -(1 << 31)])
def test_shares_add_up_in_their_ring_to_a_signed_integer(total, parts, size):
    assert noisy_sums(shares_of(total, parts, size), 1) == [total]


def test_a_sum_beyond_half_the_ring_is_negative():
    assert noisy_sums([(1 << 31).to_bytes(4, "little")], 1) == [-(1 << 31)]
    assert noisy_sums([(1 << 31).to_bytes(8, "little")], 1) == [1 << 31]


@pytest.mark.parametrize("size", [4, 8])
@pytest.mark.parametrize("parts", [1, 2, 5])
def test_sums_after_each_other_in_one_string_do_not_touch(parts, size):
    totals = [-1, 1 << 30, -(1 << 31), 0, 7]
    columns = [shares_of(total, parts, size) for total in totals]
    assert noisy_sums([b"".join(row) for row in zip(*columns, strict=True)], len(totals)) == totals


def test_the_noises_deviation_is_that_of_discrete_laplace_in_the_estimates_unit():
    """Each of N nodes adds a share. h = N − t of these make a whole Laplace.

    So the variance is that of Laplace noise times N/h, here 2.
    """
    report = report_over(STUDY)
    scale = 4 * 20  # δ_max · Δf in units, ε = 1
    q = np.exp(-1 / scale)
    assert report.noise_std == pytest.approx(sqrt(2 * 2 * q) / (1 - q) * 0.5 / 20)
    assert report.noise_std == pytest.approx(noise_of(Sizes(STUDY, 10))[0].std * 0.5 / 20)


LINEAR = np.add.outer(np.array([1, 0, 0, 0, 1, 1.0]), np.array([1, 0, 0, 0, 1, 1.0])) / 2
PRISM = np.roll(np.eye(6), 1, axis=0) + np.roll(np.eye(6), -1, axis=0)
"""Two kernels. One adds a record's own values. The other has equal sums over any record's pairs."""


@pytest.mark.parametrize("kernel", [LINEAR, PRISM], ids=["linear", "degenerate"])
@pytest.mark.parametrize("edges", [1, 2, 3, 4, 5, 6, 9, 12, 14, 15])
def test_the_sampling_bound_of_pairs_holds_over_all_numberings(kernel, edges):
    """All 720 numberings of 6 records.

    With regular graphs the degenerate kernel's variance is exactly that of the bound.
    """
    study = with_facts(STUDY, edges=str(edges))
    sizes = Sizes(study, 6)
    words = Stream(bytes(32)).words
    graph = balanced(6, edges, words)
    order = np.array(list(permutations(range(6))))
    means = kernel[order[:, graph[:, 0]], order[:, graph[:, 1]]].mean(axis=1)
    pairs = kernel[np.triu_indices(6, 1)]
    bound = sampling_bound(2 * pairs.std(), sizes)
    assert means.std() <= bound + 1e-12
    if kernel is PRISM and edges % 3 == 0:
        assert means.std() == pytest.approx(bound)


def test_pairings_are_independent_of_each_other():
    one, five = (Sizes(with_facts(STUDY, edges=rule), 10) for rule in ("1p", "5p"))
    bounds = [sampling_bound(10.0, sizes) for sizes in (one, five)]
    assert bounds == pytest.approx([sqrt(100 * 8 / 7 / 20), sqrt(100 * 8 / 7 / 100)])


def test_the_sampling_bound_holds_for_the_worst_table():
    """Half the records at each bound; all sets of |E| = 3 of the 6 pairs of 4 records."""
    values = [abs(x - y) for x, y in combinations([0, 0, 10, 10], 2)]
    means = [sum(chosen) / 3 for chosen in combinations(values, 3)]
    three = with_facts(STUDY, edges="3")
    report = report_over(three, (2, 2))
    assert np.std(means) <= report.sampling_std_bound + 1e-12


@pytest.mark.parametrize(
    ("degree", "edges"), [(1, "3"), (1, "1n"), (3, "2n"), (3, "7"), (4, "11"), (8, "1")]
)
def test_the_sampling_bound_counts_sets_of_the_studys_degree(degree, edges):
    kernel = " + ".join(f"{name}.x" for name in "abcdefgh"[:degree])
    study = with_facts(STUDY, kernels=(kernel,), degree=degree, edges=edges)
    report = report_over(study)
    total, count, width = comb(10, study.degree), report.edges, 10 * study.degree
    assert (report.sets, report.degree) == (total, study.degree)
    factor = float(largest_factor(count, 10, degree))
    expected = sqrt(width**2 * factor / (4 * count))
    assert report.sampling_std_bound == pytest.approx(expected)
    drawn = (total - count) / (total - 1)
    assert drawn <= factor * (1 + 1e-12) or degree == 1, "sets drawn one by one are no better"
    assert factor <= drawn * (1 + (degree + 1) / 10) * (1 + 1e-12)


@pytest.mark.parametrize("edges", ["3", "1n", "all"])
def test_the_sampling_bound_of_two_samples_counts_pairs_across_the_classes(edges):
    fields = (*STUDY.fields, CLASSES)
    study = with_facts(STUDY, fields=fields, sampling="two_sample", edges=edges)
    report = report_over(study, (4, 6), first=(3, 1))
    total, count = 4 * 6, report.edges
    assert (report.sets, report.first_class_by_node) == (total, [3, 1])
    factor = float(largest_factor_two_sample(count, 4, 6))
    assert report.sampling_std_bound == pytest.approx(sqrt(10**2 * factor / (4 * count)))


@pytest.mark.parametrize("counts", [(4, 6), (1, 1), (2, 0)])
def test_all_pairs_leave_no_sampling_error(counts):
    every = with_facts(STUDY, edges="all")
    assert report_over(every, counts).sampling_std_bound == 0
