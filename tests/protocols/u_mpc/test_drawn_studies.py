"""Studies over uniform and Bernoulli E: exact sums, noise for the bound of degrees, refusals."""

from __future__ import annotations

import pytest

from tests.support.ideal_transfers import ideal_transfers
from tests.support.studies import (
    AUC,
    KENDALL,
    LOUD,
    SKEWNESS,
    Entropy,
    clear_sums,
    graph_of,
    library_study,
    make_study,
    random_tables,
)
from tests.support.triples import BY_TRIPLES
from umpc.errors import StudyError
from umpc.mpc.attempt import edges_of
from umpc.node.policy import computes
from umpc.planning.prediction import attempt_over
from umpc.protocols.registry import checked
from umpc.protocols.u_mpc.settings import noisy_sums
from umpc.simulation import simulate
from umpc.study.computation import computation_hash
from umpc.study.document import Study
from umpc.study.parts import FieldText
from umpc.study.sizes import Sizes
from umpc.ustat.sampling import greatest_degree
from umpc.ustat.statistics import find_statistic

COUNTS = (6, 0, 5, 7)


@pytest.fixture(autouse=True, scope="module")
def ideal():
    with ideal_transfers():
        yield


@pytest.mark.parametrize("sampling", ["uniform", "bernoulli"])
@pytest.mark.parametrize(
    "kernel, changes", [(KENDALL, {}), (SKEWNESS, {"degree": 3} | BY_TRIPLES)], ids=["2", "3"]
)
def test_the_sum_over_the_published_edges_is_exact_at_the_predicted_cost(sampling, kernel, changes):
    study = checked(make_study(kernel, 4, sampling=sampling, edges="2n", epsilon=LOUD, **changes))
    tables = random_tables(COUNTS, sampling)
    run = simulate(study, tables, Entropy(sampling))
    report, graph = run.report, graph_of(study, run.report)
    assert noisy_sums(run.transcript.shares, 1) == clear_sums(study, tables, graph)
    sizes = Sizes(study, sum(COUNTS))
    assert graph.edge_count == report.edges == sizes.edges
    assert (sizes.edges == 36) == (sampling == "uniform")
    most = max(graph.degrees(node).max(initial=0) for node in range(4))
    assert most <= report.max_degree == greatest_degree(sizes.edges, 18, study.degree)
    assert report.bytes_online == report.bytes_online_predicted
    assert report.bytes_offline == report.bytes_offline_predicted
    planned = attempt_over(study, ",".join(map(str, COUNTS)))
    assert planned.sizes.edges == report.edges, "a plan knows the size before the run"


def test_a_bernoulli_size_changes_with_the_name_and_with_nothing_else():
    study = make_study(KENDALL, 2, sampling="bernoulli", edges="2n")
    names = [study.replaced(name=f"study-{number}") for number in range(20)]
    assert len({Sizes(each, 60).edges for each in names}) > 8
    quieter = study.replaced(epsilon="1/8", adversary="lying_nodes")
    assert Sizes(study, 60).edges == Sizes(quieter, 60).edges
    everything = study.replaced(edges="all")
    assert Sizes(everything, 60).edges == 60 * 59 // 2


def test_noise_covers_the_bound_of_degrees_and_the_error_law_the_sampling():
    balanced, uniform = (
        Sizes(make_study(KENDALL, 2, sampling=sampling, edges="2n"), 500)
        for sampling in ("balanced", "uniform")
    )
    assert (balanced.max_degree, uniform.max_degree) == (4, greatest_degree(1000, 500))
    assert uniform.sensitivities == (2 * uniform.max_degree,)
    single = Sizes(make_study("a.x", 2, sampling="uniform", degree=1, edges="9"), 20)
    assert (single.edges, single.max_degree) == (9, 1)


@pytest.mark.parametrize("degree, kernel", [(2, KENDALL), (3, SKEWNESS)])
def test_another_record_moves_no_sum_by_more_than_the_noise_covers(degree, kernel):
    study = make_study(kernel, 2, sampling="bernoulli", edges="2n", degree=degree)
    (table,) = random_tables([9], "neighbours")
    seeds = [bytes([number]) * 32 for number in range(12)]
    sizes = Sizes(study, 9)
    moved = 0
    for seed in seeds:
        graph = edges_of(study, seed, [(0, 9)])
        (before,) = clear_sums(study, [table], graph)
        for record in range(9):
            other = {name: column.copy() for name, column in table.items()}
            for name, high in (("x", 3), ("y", 0)):
                other[name][record] = high
            moved = max(moved, abs(clear_sums(study, [other], graph)[0] - before))
    assert 0 < moved <= sizes.sensitivities[0]


def study_of(**changes) -> Study:
    facts = [FieldText(name, "0", "9", whole=True) for name in "xy"]
    return library_study("kendall_tau", facts, 2, ["x", "y"], **changes)


def test_a_site_allows_a_statistic_by_name_however_its_edges_are_drawn():
    kendall = find_statistic("kendall_tau")
    assert computes(study_of(sampling="uniform"), kendall)
    assert not computes(study_of(sampling="two_sample"), kendall)
    hashes = {computation_hash(study_of(sampling=each)) for each in ("balanced", "uniform")}
    assert len(hashes) == 2, "an allow-list of computations names the sampling"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"edges": "1p", "sampling": "uniform"}, "draws edges without regard to records"),
        ({"sampling": "stratified"}, "sampling must be one of balanced, uniform, bernoulli"),
    ],
    ids=str,
)
def test_rules_that_contradict_are_refused(changes, reason):
    with pytest.raises(StudyError, match=reason):
        checked(make_study(KENDALL, 2, **changes))


def test_classes_are_no_matter_of_drawn_edges():
    with pytest.raises(StudyError):
        checked(make_study(AUC, 2, sampling="uniform"))
