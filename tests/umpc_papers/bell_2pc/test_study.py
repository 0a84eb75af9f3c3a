"""Noisy pairs as whole studies in memory: exact sums where noise is off, at the stated cost.

α is below. Where only released values are looked at, the transfers are those of
`bell.without_transfers`.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import count

import numpy as np
import pytest
from scipy import stats

from tests.protocols.u_mpc.test_library import check_cost, counts_of, study_of, tables_of
from tests.support.bell import (
    EQUAL,
    bell_study,
    clear_values,
    laws_of,
    noisy_values,
    without_transfers,
)
from tests.support.garbled import without_dealer
from tests.support.limits import small_garbled_chunks
from tests.support.silent_pairs import CERTAIN, SILENT, changed
from tests.support.studies import (
    GINI,
    KENDALL,
    Entropy,
    clear_sums,
    random_tables,
    table,
)
from umpc.crypto.prg import Stream
from umpc.errors import (
    InvalidEpsilon,
)
from umpc.protocols.u_mpc.settings import noisy_sums
from umpc.simulation import Simulated, simulate
from umpc.study.document import Study
from umpc.study.sizes import Sizes
from umpc.ustat.estimators import PAIR_MEDIAN
from umpc.ustat.sampling import matchings
from umpc.ustat.statistics import LIBRARY
from umpc_papers.bell_2pc.pair_mechanisms import MOST_VALUES

pytestmark = pytest.mark.usefixtures("fast")

PAIRS = [
    name
    for name, statistic in LIBRARY.items()
    if statistic.degree == 2 and statistic.estimator != PAIR_MEDIAN
]
"""Statistics of pairs whose sums have noise of their own."""
by_statistic = pytest.mark.parametrize("name", PAIRS)
ALPHA = 1e-6
"""Chance that a chi-square test of right code fails, had its seed been chosen at random."""


def edges_of(name: str) -> str:
    return "5" if LIBRARY[name].sampling == "two_sample" else "2p"


def silent_study(name: str, tables, edges: str) -> Study:
    """A statistic with circuits of coins that do not fall: each sum has as much of ε as its range
    asks for.
    """
    study = without_dealer(study_of(name, len(tables), edges))
    ranges = [kernel.sensitivity_units for kernel in study.parsed_kernels]
    classes = [sum(int((t["label"] == 0).sum()) for t in tables)] if study.two_sample else []
    degree = Sizes(study, sum(counts_of(name, len(tables))), *classes).max_degree
    split = tuple(str(Fraction(each, sum(ranges))) for each in ranges)
    epsilon = str(SILENT * sum(ranges) * degree)
    return changed(study, protocol="bell-2pc", noise="pair_laplace", epsilon=epsilon, split=split)


def check_exact(study: Study, tables, label: str) -> Simulated:
    """All that is released is the clear sum over the same E, pair by pair; costs are the predicted
    ones.
    """
    run = simulate(study, tables, Entropy(label))
    clear, noisy = clear_values(study, tables, run), noisy_values(run)
    assert clear.keys() == noisy.keys() and all(
        np.array_equal(clear[owners], noisy[owners]) for owners in clear
    )
    expected = clear_sums(study, tables, run.attempt.hypergraph)
    assert noisy_sums(run.transcript.shares, len(study.kernels), run.attempt.ring) == expected, (
        label
    )
    means = [
        float(s * k.unit / run.report.edges)
        for s, k in zip(expected, study.parsed_kernels, strict=True)
    ]
    assert [entry.mean for entry in run.report.sums] == pytest.approx(means, rel=1e-9, abs=1e-9)
    check_cost(run)
    return run


@pytest.mark.parametrize("nodes", [1, 2, 3, 5])
@by_statistic
def test_without_noise_every_statistic_is_the_clear_one_over_the_same_pairs(name, nodes):
    label = f"bell {name} {nodes}"
    tables = tables_of(study_of(name, nodes), "ties", counts_of(name, nodes), label)
    with without_transfers():
        run = check_exact(silent_study(name, tables, edges_of(name)), tables, label)
    assert [noise.numbers for noise in run.attempt.pair_noise] == [2] * len(run.report.sums), (
        "one coin of each sign"
    )
    # random pairings of few records may join no two nodes
    joins_nodes = any(len(set(owners)) > 1 for owners in run.attempt.hypergraph.cells)
    assert run.report.protocol == "bell-2pc" and run.report.rounds == (4 if joins_nodes else 1)


@pytest.mark.parametrize("nodes", [1, 2, 3])
@by_statistic
def test_responses_that_are_certain_are_the_clear_values(name, nodes):
    study, label = without_dealer(study_of(name, nodes, edges_of(name))), f"response {name} {nodes}"
    study = changed(study, protocol="bell-2pc", noise="randomised_response", epsilon=CERTAIN)
    tables = tables_of(study, "random", counts_of(name, nodes), label)
    values = [kernel.sensitivity_units + 1 for kernel in study.parsed_kernels]
    if max(values) > MOST_VALUES:
        with pytest.raises(InvalidEpsilon, match=f"at most {MOST_VALUES} values, this one has"):
            simulate(study, tables, Entropy(label))
        return
    with without_transfers():
        check_exact(study, tables, label)


@pytest.mark.parametrize("noise", ["pair_laplace", "randomised_response"])
@pytest.mark.parametrize("pairings", [1, 2, 5])
@pytest.mark.parametrize("counts", [[3, 4], [5, 1, 1], [2, 0, 3, 1, 5]], ids=str)
def test_with_transfers_over_any_pairings_of_odd_numbers_of_records(noise, pairings, counts):
    """Only the base transfers are not the real ones. Each pairing leaves one record out."""
    epsilon = CERTAIN if noise == "randomised_response" else str(SILENT * 2 * pairings)
    study = bell_study(
        KENDALL, len(counts), x=("0", "3"), noise=noise, epsilon=epsilon, edges=f"{pairings}p"
    )
    label = f"odd {pairings} {counts} {noise}"
    run = check_exact(study, random_tables(counts, label, 0, 1), label)
    records, graph = sum(counts), run.attempt.hypergraph
    degrees = np.concatenate([graph.degrees(node) for node in range(len(counts))])
    assert degrees.sum() == 2 * run.report.edges == 2 * pairings * (records // 2)
    assert degrees.max() <= run.report.max_degree == pairings and degrees.min() >= 0


@pytest.mark.parametrize("sums", [(KENDALL, GINI), (EQUAL, "3")], ids=str)
@pytest.mark.parametrize("noise", ["pair_laplace", "randomised_response"])
def test_several_sums_have_coins_of_their_own(noise, sums):
    epsilon = CERTAIN if noise == "randomised_response" else str(2 * 2 * SILENT * 3)
    changes = {"x": ("0", "3"), "y": ("0", "3"), "noise": noise, "epsilon": epsilon, "edges": "2p"}
    check_exact(
        bell_study(sums, 2, estimator="ratio", **changes), random_tables([5, 4], "sums"), "sums"
    )


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("kernel", ["a.x", "b.x", "a.x * b.y"])
def test_kernels_of_two_samples_that_read_one_class_only(kernel, order):
    """One site has the first class, the other the second: then one of the two has no bits of
    records to send.
    """
    study = bell_study(kernel, 2, sampling="two_sample", edges="all", epsilon=str(SILENT * 3))
    tables = [table([0, 1, 1], [1, 0, 1], [0, 0, 0]), table([1, 0, 1], [0, 1, 1], [1, 1, 1])][
        ::order
    ]
    check_exact(study, tables, "one class")


@pytest.mark.parametrize("noise", ["pair_laplace", "randomised_response"])
def test_a_node_without_records_in_any_pair_releases_nothing(noise):
    """Its only record is left out of the pairing, or it has none."""
    epsilon = CERTAIN if noise == "randomised_response" else str(SILENT)
    study = bell_study(EQUAL, 3, noise=noise, epsilon=epsilon)
    for counts in ([4, 1, 2], [3, 0, 3]):
        for trial in count():
            label = f"left out {counts} {trial} {noise}"
            with without_transfers():
                run = check_exact(study, random_tables(counts, label, 0, 1), label)
            if not run.attempt.hypergraph.degrees(1).any():
                break
            assert trial < 60
        assert run.nodes[1].peers == () and run.transcript.shares[1] == b""
        assert run.attempt.released_values(1) == 0


def test_all_pairs_with_delta_have_less_noise_than_without():
    """Advanced composition over k = 19 pairs of a record, at its cost; δ is what was asked for and
    finite bits.
    """
    tables = random_tables([12, 8], "advanced", 0, 1)
    with without_transfers():
        runs = [
            simulate(bell_study(EQUAL, 2, edges="all", delta=delta), tables, Entropy("advanced"))
            for delta in ("", "1e-3")
        ]
    basic, advanced = (laws_of(run)[0] for run in runs)
    assert basic.epsilon == Fraction(1, 19) < advanced.epsilon
    assert runs[1].report.noise_std < 0.9 * runs[0].report.noise_std
    assert [run.report.delta for run in runs] == pytest.approx([0, 1e-3], abs=1e-9) and runs[
        0
    ].report.delta > 0
    for run in runs:
        check_cost(run)
        assert (run.report.edges, run.report.max_degree) == (190, 19)
        exact = clear_sums(run.attempt.study, tables, run.attempt.hypergraph)[0] / 190
        assert abs(run.report.estimate - exact) < 6 * run.report.noise_std


def test_many_chunks_are_the_same_as_one(limit):
    study = bell_study(KENDALL, 3, x=("0", "3"), epsilon=str(SILENT * 4), edges="2p")
    tables = random_tables([9, 8, 6], "chunks", 0, 1)
    one = check_exact(study, tables, "chunks")
    small_garbled_chunks(limit, 3)
    many = check_exact(study, tables, "chunks")
    assert many.report.estimate == one.report.estimate
    few, steps = (
        [frame for *_, frame in run.transcript.online if frame.step == "coins"]
        for run in (one, many)
    )
    assert len(few) == 3 and len(steps) > 2 * len(few)
    assert {frame.round for frame in steps} == {1} and len({frame.key for frame in steps}) == len(
        steps
    )


def test_pairings_are_uniform_and_independent_of_each_other():
    """4 records have 3 pairings, and 9 choices of two; each of 5 records is left out equally
    often.
    """
    words, draws = Stream(bytes(32)).words, 1800
    partners = np.array([matchings(4, 2, words).reshape(2, 2, 2) for _ in range(draws)])
    with_0 = np.array(
        [[pair[pair != 0][0] for rows in two for pair in rows if 0 in pair] for two in partners]
    )
    counts = np.bincount(3 * (with_0[:, 0] - 1) + with_0[:, 1] - 1, minlength=9)
    assert stats.chisquare(counts).pvalue > ALPHA, counts
    absent = [10 - int(matchings(5, 1, words).sum()) for _ in range(draws)]
    assert stats.chisquare(np.bincount(absent, minlength=5)).pvalue > ALPHA
