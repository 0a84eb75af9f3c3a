"""Bins and levels of a grid: sums of coarser records, words for people, views, and bad input."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from tests.protocols.grid.operators.test_dyadic import defined_sum
from tests.protocols.grid.test_grid_run import check_cost
from tests.support.fields import number_field
from tests.support.grid import COUNTS, cells_of, grid_study, silent
from tests.support.mpc_studies import ALPHA, homogeneity, uniformity
from tests.support.protocols import assert_refused, noise_of
from tests.support.studies import (
    CLASSES,
    KENDALL,
    SPEARMAN,
    Entropy,
    clear_sums,
    graph_of,
    library_study,
    random_tables,
    table,
)
from umpc.errors import KernelError, LocalProtocolError, RangeError, StudyError
from umpc.planning.prediction import attempt_over, reference_table_of
from umpc.protocols.grid.binding import grid_of, statistic_of_grid
from umpc.protocols.grid.coarse import ties_bound
from umpc.protocols.registry import checked, decode_study, find_protocol, protocol_of
from umpc.protocols.u_mpc.settings import noisy_sums
from umpc.simulation import Simulated, simulate
from umpc.study.document import Study
from umpc.study.parts import FieldBins
from umpc.study.sizes import Sizes

WIDTH = 4
"""The bits of both columns where the grid has levels."""
X, Y = ("0", "15"), ("-3", "12")
CUTS = {"x": (3, 4, 11), "y": (-2, 0, 9, 12)}
BINS = tuple(FieldBins(name, cuts=tuple(map(str, cuts))) for name, cuts in CUTS.items())
EDGE_VALUES = (0, 2, 3, 4, 10, 11, 12)
"""Values at cut points and beside them."""


def coarse_study(kernels: str | Sequence[str] = KENDALL, **changes) -> Study:
    return silent(checked(grid_study(kernels, x=X, y=Y, **changes)))


def statistic_study(name: str, **changes) -> Study:
    fields = (number_field("x", *X), number_field("y", *Y), CLASSES)
    columns = ("x",) if name in ("auc", "mann_whitney_u") else ("x", "y")
    facts = {"protocol": "grid", "backend": "grid", "noise": "distributed", **changes}
    return checked(library_study(name, fields, 3, columns, **facts))


def tables_for(study: Study, label: str) -> list[dict]:
    """Random tables, one of them of values at cut points."""
    found = random_tables(COUNTS, label, 0, 12, classes=True)
    places = np.arange(COUNTS[-1]) % len(EDGE_VALUES)
    found[-1]["x"] = np.array(EDGE_VALUES)[places]
    names = {field.name for field in study.fields}
    return [{name: each[name] for name in each if name in names} for each in found]


def binned(study: Study, cuts: Mapping[str, Sequence[int]]) -> Study:
    """A study over bins as fields of their own, for the oracle."""
    fields = tuple(
        number_field(each.name, "0", str(len(cuts[each.name]))) if each.name in cuts else each
        for each in study.fields
    )
    return study.replaced(fields=fields, bins=())


def bins_of(columns: Mapping[str, np.ndarray], cuts: Mapping[str, Sequence[int]]) -> dict:
    """The columns with the number of cut points that each value reaches, counted one by one."""
    return {
        name: np.array([sum(cut <= value for cut in cuts.get(name, ())) for value in column])
        if name in cuts
        else column
        for name, column in columns.items()
    }


def run_over(study: Study, tables: Sequence[Mapping], label: str) -> tuple[list[int], Simulated]:
    """Return the sums without noise of a whole study in memory, in the kernels' units."""
    run = simulate(study, tables, Entropy(label))
    check_cost(run)
    multiplied = noisy_sums(run.transcript.shares, len(study.kernels))
    return [each // run.attempt.factor for each in multiplied], run


@pytest.mark.parametrize(
    "name",
    ["kendall_tau", "kendall_tau_b", "goodman_kruskal_gamma", "spearman_rho", "auc"],
)
def test_sums_over_bins_are_the_clear_ones_of_records_in_bins(name):
    cuts = {"x": CUTS["x"]} if name == "auc" else CUTS
    study = statistic_study(name, bins=BINS[: len(cuts)])
    tables = tables_for(study, name)
    sums, run = run_over(study, tables, name)
    oracle = binned(study, cuts)
    coarse = [bins_of(each, cuts) for each in tables]
    assert sums == clear_sums(oracle, coarse, graph_of(oracle, run.report))
    assert sums != clear_sums(study, tables, graph_of(study, run.report))


def test_bins_of_equal_width_and_cut_points_are_one_thing():
    by_count = coarse_study(bins=(FieldBins("x", 4),))
    by_cuts = coarse_study(bins=(FieldBins("x", cuts=("4", "8", "12")),))
    tables = tables_for(by_count, "equal width")
    first, second = (run_over(each, tables, "equal width")[0] for each in (by_count, by_cuts))
    assert first == second
    assert grid_of(by_count).cells == 4 * 16
    assert by_count.hash != by_cuts.hash != coarse_study().hash


def test_a_field_without_bins_keeps_its_values():
    study = coarse_study(bins=BINS[:1])
    tables = [{k: v for k, v in each.items() if k != "label"} for each in tables_for(study, "one")]
    sums, run = run_over(study, tables, "one")
    coarse = [bins_of(each, {"x": CUTS["x"]}) for each in tables]
    oracle = binned(study, {"x": CUTS["x"]})
    assert sums == clear_sums(oracle, coarse, graph_of(oracle, run.report))


@pytest.mark.parametrize("levels", [1, 3, 5, 6])
@pytest.mark.parametrize("name", ["kendall_tau", "kendall_tau_b", "goodman_kruskal_gamma"])
def test_sums_at_levels_are_those_of_their_definition(name, levels, monkeypatch):
    monkeypatch.setattr(
        "tests.protocols.grid.operators.test_dyadic.WIDTHS", {"x": WIDTH, "y": WIDTH}
    )
    study = statistic_study(name, levels=levels)
    tables = tables_for(study, f"{name} {levels}")
    sums, run = run_over(study, tables, "levels")
    whole = {key: np.concatenate([each[key] for each in tables]) for key in "xy"}
    defined = [defined_sum(kernel, whole, ("x", "y"), levels) for kernel in study.parsed_kernels]
    assert sums == defined
    is_exact = sums == clear_sums(study, tables, graph_of(study, run.report))
    assert is_exact or levels < 2 * (WIDTH - 1)
    assert (run.report.note == "") == (levels == 2 * (WIDTH - 1))


# --- what people are told -------------------------------------------------------------------------


def tied(study: Study, columns: Mapping[str, np.ndarray], levels: int) -> float:
    """The share of pairs that are ties, real or by the levels, counted pair by pair."""
    lows = {"x": int(X[0]), "y": int(Y[0])}
    pairs = list(combinations(range(len(columns["x"])), 2))
    ties = 0
    for a, b in pairs:
        bits = {
            k: int((c[a] - lows[k]) ^ (c[b] - lows[k])).bit_length() for k, c in columns.items()
        }
        is_tie = 0 in bits.values() or sum(WIDTH - bits[k] for k in bits) > levels
        ties += is_tie
    return ties / len(pairs)


@pytest.mark.parametrize("name", ["kendall_tau", "goodman_kruskal_gamma"])
def test_the_report_bounds_the_share_of_ties(name):
    study = statistic_study(name, levels=3)
    for number in range(5):
        tables = tables_for(study, f"ties {number}")
        _, run = run_over(study, tables, "ties")
        whole = {key: np.concatenate([each[key] for each in tables]) for key in "xy"}
        share, bound = tied(study, whole, 3), ties_bound(study, run.report.sums)
        assert share <= bound + 1e-12
        if name == "goodman_kruskal_gamma":
            assert bound == pytest.approx(share)
        assert run.report.interval_covers == "the value at 3 levels of x and y"
        assert "agree on more than 3 leading bits of x and y together are ties" in run.report.note
        assert f"at most {100 * bound:.3g} % of all pairs" in run.report.note or bound == 1


def test_noise_widens_the_bound_and_other_kernels_have_none():
    study = statistic_study("goodman_kruskal_gamma", levels=3)
    _, run = run_over(study, tables_for(study, "widen"), "widen")
    sums = run.report.sums
    loud = [replace(each, noise_std=0.05) for each in sums]
    assert ties_bound(study, loud) == pytest.approx(min(1, ties_bound(study, sums) + 0.1))
    assert ties_bound(study, [replace(each, noise_std=9.0) for each in sums]) == 1
    auc = statistic_study("auc", bins=BINS[:1])
    _, run = run_over(auc, tables_for(auc, "auc"), "auc")
    assert "no released mean bounds their share" in run.report.note
    assert "x has 4 bins for 16 values" in run.report.note
    assert run.report.interval_covers == "the value on the records' bins"


def test_people_see_bins_and_levels_before_they_allow_a_study():
    lines = dict(find_protocol("grid").describe(coarse_study(bins=BINS[:1])))
    assert lines["grid"] == "64 cells: 4 (x) × 16 (y)"
    assert lines["bins"] == "4 of x, cut at 3, 4, 11; values in one bin are ties"
    lines = dict(find_protocol("grid").describe(coarse_study(levels=4)))
    assert lines["grid"] == "224 cells: 4 tables of leading bits of x and y"
    assert "more than 4 leading bits of x and y together are ties" in lines["levels"]
    exact = dict(find_protocol("grid").describe(coarse_study(levels=6)))
    assert exact["levels"] == "as many as tell all values apart"


@pytest.mark.parametrize("changes", [{"bins": BINS}, {"levels": 2}])
def test_a_plan_has_the_bias_of_coarser_records(changes):
    study = coarse_study(**changes)
    attempt = attempt_over(study, "20,20,20")
    like = reference_table_of(attempt, None, ",")
    error = protocol_of(study).error(attempt, like)
    coarse = statistic_of_grid(study, like.columns, like.first)
    assert error.bins == pytest.approx(coarse - like.statistic) and error.bins != 0
    finest = coarse_study()
    assert protocol_of(finest).error(attempt_over(finest, "20,20,20"), like).bins == 0


# --- privacy --------------------------------------------------------------------------------------


@pytest.mark.parametrize("changes", [{"bins": BINS}, {"levels": 2}])
@pytest.mark.parametrize("name", ["kendall_tau", "kendall_tau_b", "goodman_kruskal_gamma"])
def test_coarser_records_change_a_set_by_no_more_than_the_noise_is_for(name, changes):
    """Every value on coarser records lies in the kernel's range, so Δf stays."""
    study = statistic_study(name, **changes)
    exact = statistic_study(name)
    for coarse, fine in zip(noise_of(Sizes(study, 9)), noise_of(Sizes(exact, 9)), strict=True):
        assert coarse.std == fine.std
    rng = np.random.default_rng(5)
    for _ in range(60):
        pair = {"x": rng.integers(0, 16, 2), "y": rng.integers(-3, 13, 2)}
        tables = [pair, *({"x": np.zeros(0, int), "y": np.zeros(0, int)} for _ in "ab")]
        value = statistic_sums(study, tables[0])
        for total, kernel in zip(value, study.parsed_kernels, strict=True):
            low, high = kernel.interval.low, kernel.interval.high
            assert low <= total * kernel.unit <= high


def statistic_sums(study: Study, columns: Mapping[str, np.ndarray]) -> list[int]:
    """The sums of a grid in the clear."""
    grid = grid_of(study)
    histogram = grid.tabulate(columns)
    found = []
    for form in grid.forms:
        doubled = int((form.apply(histogram) * histogram).sum(dtype=np.uint64))
        doubled -= int((form.diagonal() * histogram).sum(dtype=np.uint64))
        doubled = (doubled + (1 << 63)) % (1 << 64) - (1 << 63)
        found.append(doubled // 2)
    return found


RUNS = 100


@pytest.mark.parametrize("changes", [{"bins": (FieldBins("x", 2),)}, {"levels": 1}])
def test_what_others_see_of_coarser_records_does_not_depend_on_a_record(changes):
    study = grid_study(KENDALL, 2, x=("0", "3"), y=("0", "3"), **changes)
    checked(study)
    samples = []
    for number, mine in enumerate((table([0], [0]), table([3], [3]))):
        entropy = Entropy(f"coarse views {number} {changes}")
        runs = [simulate(study, [mine, table([1], [2])], entropy) for _ in range(RUNS)]
        samples.append([seen(run) for run in runs])
    for name in samples[0][0]:
        pair = [np.array([each[name] for each in sample]) for sample in samples]
        assert homogeneity(*pair) > ALPHA, name
        assert min(uniformity(sample, 16) for sample in pair) > ALPHA, name


def seen(run: Simulated) -> dict[str, int]:
    """Small categories of what the coordinator sees of node-0."""
    bits = run.attempt.ring.bits
    masked = cells_of([f for source, _, f in run.transcript.online if source == "node-0"], bits)
    share = int.from_bytes(run.transcript.shares[0], "little")
    return {
        "first cell": int(masked[0]) & 15,
        "last cell": int(masked[-1]) >> (bits - 4),
        "share": share & 15,
    }


# --- bad input ------------------------------------------------------------------------------------

REFUSED = [
    ({"bins": BINS, "levels": 3}, "give one of them"),
    ({"bins": (FieldBins("z", 3),)}, "has x, y; got bins for z"),
    ({"bins": (BINS[0], BINS[0])}, "given once"),
    ({"bins": (FieldBins("x", 1),)}, "a number of bins from 2 on"),
    ({"bins": (FieldBins("x"),)}, "got neither"),
    ({"bins": (FieldBins("x", -2),)}, "a number of bins from 2 on"),
    ({"bins": (FieldBins("x", 3, ("2",)),)}, "a number of bins from 2 on, or a list"),
    ({"bins": (FieldBins("x", 17),)}, "16 values and cannot have 17 bins"),
    ({"bins": (FieldBins("x", cuts=("5", "5")),)}, "must ascend"),
    ({"bins": (FieldBins("x", cuts=("0", "5")),)}, "above the lower bound"),
    ({"bins": (FieldBins("x", cuts=("5", "16")),)}, "above the upper bound"),
    ({"bins": (FieldBins("x", cuts=("1/2",)),)}, "not a multiple of the resolution"),
    ({"bins": (FieldBins("x", cuts=("many",)),)}, "must be a number"),
    ({"levels": -1}, "from 1 to 64, got -1"),
    ({"levels": 1 << 60}, "from 1 to 64"),
    ({"levels": 3, "kernels": SPEARMAN, "degree": 3}, "not for triples"),
]


@pytest.mark.parametrize(("changes", "message"), REFUSED)
def test_bins_and_levels_that_make_no_sense_are_refused(changes, message):
    kernels = changes.pop("kernels", KENDALL)
    assert_refused(grid_study(kernels, x=X, y=Y, **changes), StudyError, message)


def test_bins_of_a_label_and_levels_of_two_classes_are_refused():
    facts = {"protocol": "grid", "backend": "grid", "noise": "distributed"}
    fields = (number_field("x", *X), CLASSES)
    auc = library_study("auc", fields, 2, ("x",), **facts)
    assert_refused(auc.replaced(bins=(FieldBins("label", 2),)), StudyError, "have no order")
    assert_refused(auc.replaced(levels=3), StudyError, "two classes")


@pytest.mark.parametrize(
    ("kernel", "changes", "message"),
    [
        ("(a.x - b.x) * (a.y - b.y)", {"bins": BINS}, "leave the bins of this field out"),
        ("(a.x - b.x) * (a.y - b.y)", {"levels": 3}, r'does more.*backend = "shared"'),
        ("sign(a.x - b.x) * sign(a.x - b.x)", {"levels": 3}, "levels are of two columns"),
    ],
)
def test_a_kernel_that_is_more_than_order_is_refused(kernel, changes, message):
    assert_refused(grid_study(kernel, x=X, y=Y, **changes), KernelError, message)


def test_a_table_that_is_too_large_says_how_many_levels_it_may_have():
    wide = {"x": ("0", "1000000000"), "y": ("0", "1000000000")}
    study = grid_study(KENDALL, levels=40, **wide)
    assert_refused(study, RangeError, "take at most 19 levels")
    checked(study.replaced(levels=19))
    assert_refused(grid_study(KENDALL, **wide), RangeError, "or levels = 17")
    assert_refused(grid_study("a.x == b.x", **wide), RangeError, r'edges = "2n"$')


def test_a_value_outside_the_bounds_never_reaches_a_table():
    for changes in ({"bins": BINS}, {"levels": 3}):
        for outside in (-4, 13):
            with pytest.raises(LocalProtocolError, match="outside the bounds"):
                bounded = {"levels": 3} if "levels" in changes else {"bins": BINS[:1]}
                grid_of(coarse_study(**bounded)).tabulate(table([1], [outside]))


def test_a_study_with_bins_survives_its_bytes():
    for changes in ({"bins": BINS}, {"levels": 5}):
        study = coarse_study(**changes)
        assert decode_study(study.encode()) == study


def test_a_file_writes_bins_as_a_table_and_levels_as_a_number():
    read = find_protocol("grid").read_settings
    settings = read({"bins": {"x": 4, "y": [1, "5/2"]}, "levels": 0}, 2, "1")
    assert settings.bins == (FieldBins("x", 4), FieldBins("y", cuts=("1", "5/2")))
    assert read({"levels": 17}, 2, "1").levels == 17
    with pytest.raises(StudyError, match="table of fields"):
        read({"bins": 3}, 2, "1")
    with pytest.raises(StudyError, match="levels"):
        read({"levels": "many"}, 2, "1")
    assert Fraction(settings.bins[1].cuts[1]) == Fraction(5, 2)
