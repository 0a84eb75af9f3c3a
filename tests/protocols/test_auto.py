"""umpc.protocols.auto: a study file that leaves the backend open becomes one definite study."""

from __future__ import annotations

import re

import pytest

from tests.support.protocols import one_node_study
from tests.support.studyfiles import participants, planned_file
from umpc.coordinator.studyfile import StudyFile, load_study_file
from umpc.errors import KernelError, StudyError
from umpc.planning.prediction import attempt_over
from umpc.protocols.auto import Needs, grid_needs, pairs_needs
from umpc.protocols.grid.binding import grid_of, least_cells_of
from umpc.protocols.registry import checked, decode_study, find_protocol, is_open, protocol_of
from umpc.study.parts import FieldText
from umpc.testing import lying
from umpc.ustat.sampling import TWO_SAMPLE
from umpc.ustat.statistics import LIBRARY
from umpc.ustat.text import to_text

FEW_CELLS = [{"name": name, "lower": 0, "upper": 15, "whole": True} for name in ("age", "balance")]
WIDE = [{**FEW_CELLS[0], "upper": 2000}, {**FEW_CELLS[1], "upper": 2000}]
LIARS = {"adversary": "lying_nodes", "max_colluding": 1}


def loaded(folder, **changes) -> StudyFile:
    (dealer,) = participants("dealer")
    entries = {"dealer": dealer, "fields": FEW_CELLS, "epsilon": "1", **changes}
    if entries.get("preprocessing") == "none":
        del entries["dealer"]
    return load_study_file(planned_file(folder, ("north", "south"), **entries))


def backend_of(folder, **changes) -> str:
    return loaded(folder, **changes).study("coordinator").backend


@pytest.mark.parametrize(
    ("changes", "backend"),
    [
        ({}, "grid"),
        ({"edges": "all"}, "grid"),
        ({"backend": "auto"}, "grid"),
        ({"backend": "auto", "edges": "2n"}, "grid"),
        ({"backend": "auto", "edges": "2n", "records": 20}, "shared"),
        ({"backend": "auto", "edges": "2n", "fields": WIDE}, "shared"),
        ({"backend": "auto", "edges": "2n", "fields": WIDE, "records": 10_000_000}, "grid"),
        ({"edges": "2n"}, "shared"),
        ({"protocol": "u-mpc"}, "shared"),
        ({"backend": "shared"}, "shared"),
        ({"coins": "dealt", "noise": "in_mpc"}, "shared"),
        (LIARS, "grid"),
        ({**LIARS, "edges": "all"}, "grid"),
        ({**LIARS, "backend": "auto", "edges": "2n"}, "shared"),
        ({**LIARS, "records": 10_000_000}, "grid"),
        ({**LIARS, "records": 40_000_000}, "shared"),
        ({**LIARS, "fields": WIDE}, "shared"),
        ({**LIARS, "statistic": "spearman_rho"}, "grid"),
        ({**LIARS, "backend": "auto", "edges": "2n", "statistic": "spearman_rho"}, "grid"),
        ({"preprocessing": "none", "backend": "auto"}, "grid"),
        ({"bins": {"age": 4}}, "grid"),
        ({"levels": 3, "fields": WIDE}, "grid"),
        ({"fields": [{**WIDE[0], "upper": 10**9}, {**WIDE[1], "upper": 10**9}]}, "shared"),
        ({"statistic": "mean", "columns": ["age"], "fields": FEW_CELLS[:1]}, "shared"),
    ],
    ids=str,
)
def test_the_cheaper_way_is_chosen_and_the_document_names_it(tmp_path, changes, backend):
    study = loaded(tmp_path, **changes).study("coordinator")
    assert study.backend == backend
    assert decode_study(study.encode()) == checked(study)
    assert study.edges == "all" if backend == "grid" else study.edges


def test_a_file_that_is_read_again_is_the_same_study(tmp_path):
    first, again = (loaded(tmp_path).study("coordinator") for _ in range(2))
    assert first.hash == again.hash
    assert loaded(tmp_path, records=9_000).study("coordinator").hash == first.hash
    named = loaded(tmp_path, backend="grid").study("coordinator")
    assert named.hash == first.hash, "the choice leaves no trace in the document"
    pairs = loaded(tmp_path, backend="auto", edges="2n", records=20).study("coordinator")
    assert pairs.hash == loaded(tmp_path, backend="shared", edges="2n").study("coordinator").hash


def test_the_reason_has_both_costs(tmp_path):
    assert loaded(tmp_path, backend="shared").chosen == ""
    reason = loaded(tmp_path).chosen
    assert reason.startswith("the grid: over 10,000 records the grid needs about 0.0041 MB")
    assert "and pairs about" in reason
    assert loaded(tmp_path, records=20, backend="auto", edges="2n").chosen.startswith(
        "pairs: over 20"
    )
    assert "lacks some" in loaded(tmp_path, coins="dealt", noise="in_mpc").chosen


def test_where_nodes_may_lie_the_reason_has_the_noise_of_both_ways(tmp_path):
    of_grid, of_pairs = r"the noise of a mean is 0\.0008", r"0\.0024 by pairs"
    assert re.search(
        f"^the grid: over .*; {of_grid}, and {of_pairs}$", loaded(tmp_path, **LIARS).chosen
    )
    named = loaded(tmp_path, **LIARS, backend="auto", edges="2n")
    assert named.chosen.startswith("pairs, because the file names a number of edges")
    triples = loaded(tmp_path, **LIARS, statistic="spearman_rho")
    assert triples.chosen == "the grid, because pairs are not possible in this grade"


def test_less_noise_is_worth_what_pairs_may_cost_unasked_and_no_more(tmp_path):
    pairs = Needs(2e8, 5)
    for grid, backend in (
        (Needs(2e8, 8), "grid"),
        (Needs(2.01e8, 5), "shared"),
        (Needs(2e8, 8.1), "shared"),
    ):
        needs = {
            "grid_needs": lambda *_, needs=grid: needs,
            "pairs_needs": lambda *_: pairs,
        }
        with lying("coordinator", **needs):
            assert backend_of(tmp_path, **LIARS) == backend
    small = {"grid_needs": lambda *_: Needs(1e8, 8), "pairs_needs": lambda *_: Needs(1e6, 1)}
    with lying("coordinator", **small):
        assert backend_of(tmp_path, **LIARS) == "grid"
        assert backend_of(tmp_path) == "shared", "honest nodes have the same noise"


def test_the_needs_where_nodes_may_lie_are_about_those_of_the_plan(tmp_path):
    for nodes, records in ((2, 20_000), (5, 100_000)):
        file = loaded(
            tmp_path, **LIARS, backend="grid", nodes=participants(*map(str, range(nodes)))
        )
        study = file.study("coordinator")
        each = ",".join([str(records // nodes)] * nodes)
        attempt = attempt_over(study, each)
        exact = protocol_of(study).cost(attempt)
        found = grid_needs(study, records).bytes
        assert 0.95 < found / (exact.bytes_online + exact.bytes_offline) < 1.05


def test_both_bytes_and_seconds_must_be_no_more(tmp_path):
    for grid, pairs, backend in (
        (Needs(5e6, 5), Needs(5e6, 5), "grid"),
        (Needs(6e6, 5), Needs(5e6, 9), "shared"),
        (Needs(5e6, 6), Needs(9e6, 5), "shared"),
    ):
        needs = {
            "grid_needs": lambda *_, needs=grid: needs,
            "pairs_needs": lambda *_, needs=pairs: needs,
        }
        with lying("coordinator", **needs):
            assert backend_of(tmp_path) == backend


def test_a_few_records_do_not_wait_for_the_operators_of_a_wide_table(tmp_path):
    """Three records with fine values took 11.8 s: the grid was compiled only to be left."""
    wide = [{**each, "upper": 100, "resolution": "0.00001"} for each in FEW_CELLS[:1]]
    wide = [{key: value for key, value in each.items() if key != "whole"} for each in wide]
    file = loaded(
        tmp_path, statistic="gini_mean_difference", columns=["age"], fields=wide, records=3
    )
    assert file.chosen.startswith("pairs: over 3 records the grid needs at least")
    assert "at least" not in loaded(tmp_path, records=10_000).chosen


OF_PAIRS = [name for name, each in sorted(LIBRARY.items()) if each.degree in (2, 3)]


@pytest.mark.parametrize("name", OF_PAIRS)
def test_no_table_has_fewer_cells_than_the_first_look_says(name):
    statistic = LIBRARY[name]
    names = [each.rstrip(".") for each in statistic.arguments]
    fields = [FieldText(each, "0", "2", whole=True) for each in names]
    if statistic.sampling == TWO_SAMPLE:
        fields.append(FieldText.of_categories("class", ["a", "b"], public=True))
    parameters = {"cells": 3} if name == "uniformity" else {}
    study = one_node_study(
        fields,
        tuple(map(to_text, statistic.expressions(names, parameters))),
        degree=statistic.degree,
        sampling=statistic.sampling,
        protocol="grid",
    )
    least = least_cells_of(study)
    try:
        cells = grid_of(study).cells
    except KernelError:
        return  # no grid, whatever the number of cells
    assert 0 < least <= cells


def test_what_is_needed_grows_with_what_it_depends_on(tmp_path):
    grid = loaded(tmp_path, backend="grid").study("coordinator")
    wide = loaded(tmp_path, backend="grid", fields=WIDE).study("coordinator")
    assert grid_needs(grid, 100) == grid_needs(grid, 1_000)
    assert grid_needs(wide, 100).bytes == 2 * 2 * 2001**2 * 4
    pairs = loaded(tmp_path, backend="shared", edges="2n").study("coordinator")
    more, less = pairs_needs(pairs, 2_000), pairs_needs(pairs, 1_000)
    assert (more.bytes, more.seconds) == (2 * less.bytes, 2 * less.seconds)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"records": 0}, "`records` is a whole number from 1 on, got 0"),
        ({"records": "many"}, "records"),
        ({"protocol": "grid", "backend": "auto"}, "must be one of grid, got 'auto'"),
        ({"levles": 3}, "`levles` is not a key"),
        ({"protocol": "u-mpc", "levels": 3}, "`levels` is not a key"),
        ({"bins": {"age": 4}, "edges": "2n", "backend": "shared"}, "`bins` is not a key"),
        ({"bins": {"shoe": 4}}, "got bins for shoe"),
    ],
    ids=str,
)
def test_bad_input_is_refused(tmp_path, changes, message):
    with pytest.raises(StudyError, match=message):
        loaded(tmp_path, **changes).study("coordinator")


def test_only_a_file_that_names_nothing_is_open():
    assert is_open(None, {}) and is_open(None, {"edges": "all", "delta": "1e-9"})
    assert is_open("u-mpc", {"backend": "auto"}) and not is_open("u-mpc", {})
    assert not is_open("gopa", {"backend": "auto"}) and not is_open(None, {"edges": "2n"})
    assert not is_open(None, {"preprocessing": "none"})


def test_a_definite_document_never_says_auto(tmp_path):
    study = loaded(tmp_path, backend="shared").study("coordinator")
    refusal = "backend must be one of shared, garbled, triples, got 'auto'"
    with pytest.raises(StudyError, match=refusal):
        checked(study.replaced(backend="auto"))
    assert find_protocol("u-mpc").settings().backend == "shared"
