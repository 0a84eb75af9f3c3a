"""umpc.protocols.u_mpc.theory: the usual |E|, from the study document and record counts."""

from __future__ import annotations

import pytest

from tests.support.studies import GINI, KENDALL, SPEARMAN, make_study
from tests.support.studyfiles import participants, planned_file
from umpc.coordinator.studyfile import load_study_file
from umpc.errors import StudyError
from umpc.mpc.backends import predict
from umpc.planning.prediction import attempt_over
from umpc.protocols.u_mpc.theory import BUDGET_BYTES, bits_of_an_edge, usual_edges
from umpc.study.sizes import Sizes
from umpc.ustat.sampling import edge_count, max_degree, two_sample_edge_count


@pytest.mark.parametrize("kernel, degree", [(KENDALL, 2), (GINI, 2), (SPEARMAN, 3)])
def test_the_usual_number_costs_the_budget(kernel, degree):
    """An edge's bits are those that the plan's cost adds up, but for frames and padding."""
    study = make_study(kernel, degree, degree=degree, edges="50000", x=("0", "127"))
    cost = predict(attempt_over(study, ",".join(["400"] * degree)))
    shared = bits_of_an_edge(study) / 8 * 50_000
    measured = cost.bytes_dealt + cost.bytes_online
    # edges inside a node are free, and those of two owners are cheaper than those of three
    assert 0.2 * shared < measured < 1.05 * shared
    count = int(usual_edges(study).removeprefix("up to "))
    assert 0.9 * BUDGET_BYTES < count * bits_of_an_edge(study) / 8 <= BUDGET_BYTES


def test_a_file_without_edges_asks_for_them_and_all_parties_derive_one_number(tmp_path):
    (dealer,) = participants("dealer")
    path = planned_file(tmp_path, ("north", "south"), dealer=dealer, backend="shared")
    study = load_study_file(path).study("coordinator")
    assert study.edges == usual_edges(study) and study.edges.startswith("up to ")
    few, many = Sizes(study, 600), Sizes(study, 60_001)
    assert few.edges == few.sets, "all pairs of few records are within the budget"
    most = int(study.edges.removeprefix("up to "))
    assert most - 60_001 < many.edges <= most and many.max_degree * 60_001 - 2 * many.edges < 2
    single = make_study("a.x", degree=1, edges="")
    assert usual_edges(single) == "all"


def test_up_to_a_number_gives_all_sets_or_equal_degrees_and_never_fewer_than_2n():
    assert edge_count("up to 45", 10) == 45 and edge_count("up to 44", 10) == 40
    assert max_degree(edge_count("up to 44", 10), 10) == 8
    assert edge_count("up to 7", 10) == 20 and edge_count("up to 7", 4) == 6
    assert two_sample_edge_count("up to 23", 4, 6) == 20
    assert two_sample_edge_count("up to 24", 4, 6) == 24
    for wrong in ("up to 0", "up to 3n", "up to all", "up to", "up to -4"):
        with pytest.raises(StudyError, match="up to"):
            edge_count(wrong, 10)
