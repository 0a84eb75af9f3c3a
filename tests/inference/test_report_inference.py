"""Intervals, tests and sources of error of a report."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stdout
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from click.testing import CliRunner

import umpc
from bench.type_one import NullCase, excess, rejected
from tests.support.statistical import ALPHA
from umpc.cli.infer import infer as umpc_infer
from umpc.cli.shared import print_report
from umpc.inference.null_laws import LEAST
from umpc.inference.report_inference import KINDS, Inference
from umpc.reporting.rows import rounded

BOUNDS = {"x": (0, 255), "y": (0, 255), "g": ["u", "v"]}


def result(statistic="kendall_tau", columns=("x", "y"), **settings) -> umpc.Result:
    rng = np.random.default_rng(7)
    x = rng.permutation(200)
    table = {"x": x, "y": np.clip(x + rng.integers(-150, 150, 200), 0, 255), "g": ["u", "v"] * 100}
    given = {"epsilon": 2, "edges": "2n", "bounds": BOUNDS, **settings}
    given = {key: value for key, value in given.items() if value is not None}
    return umpc.estimate(statistic, [table], list(columns), **given)


@pytest.fixture(scope="module")
def kendall() -> umpc.Result:
    return result()


def test_each_kind_of_interval_lies_inside_the_next(kendall):
    found = [kendall.interval(kind=kind) for kind in KINDS]
    first = (kendall.report.low, kendall.report.high)
    assert (found[1].low, found[1].high) == pytest.approx(first, rel=1e-12)
    for inner, outer in pairwise(found):
        assert outer.low < inner.low < kendall.estimate < inner.high < outer.high
    low, high = kendall.interval(0.5, "population")
    assert found[2].low < low < high < found[2].high
    for wrong in ({"kind": "sure"}, {"level": 1.0}, {"level": 0.1}):
        with pytest.raises(umpc.errors.StudyError, match="level"):
            kendall.interval(**wrong)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"edges": "all", "epsilon": 40},
        {"edges": "all", "backend": "grid"},
        {"statistic": "kendall_tau_b", "epsilon": 8},
        {"statistic": "kendall_tau", "variance": "private"},
        {"statistic": "renyi_entropy", "columns": ["g"]},
        {"statistic": "mean", "columns": ["x"], "edges": "all"},
        {"protocol": "bell-2pc", "edges": "2p", "noise": "randomised_response"},
        {"protocol": "bell-ldp", "edges": None},
    ],
    ids=str,
)
def test_a_report_has_one_interval_of_the_noise_alone(settings):
    found = result(**settings)
    interval = found.interval(kind="noise")
    assert (found.report.noise_low, found.report.noise_high) == tuple(interval)
    document = found.to_dict()
    (first, *_) = document["inference"]["intervals"]
    assert first["kind"] == "noise" and document["noise_low"] == first["low"]
    with redirect_stdout(io.StringIO()) as table:
        print_report(found.report, "table")
    ends = (rounded(first[end], found.report.noise_std) for end in ("low", "high"))
    assert " … ".join(ends) in table.getvalue()


@pytest.mark.parametrize("kind", ["population", "hoeffding"])
def test_records_without_spread_do_not_make_the_population_known(kind):
    """Without noise the released value is the end of the range, where no law has any spread."""
    table = {"x": [0] * 20}
    found = umpc.estimate("mean", [table], ["x"], bounds={"x": (0, 1)}, epsilon=1000)
    low, high = found.interval(kind=kind)
    assert found.p_value(null=0.1) > 0.05 and low == 0 and 0.1 < high < 0.2
    # Hoeffding: (1 − θ)^20 = 2.5 %
    assert kind == "population" or high == pytest.approx(1 - 0.025 ** (1 / 20), rel=0.01)


def test_a_hypothesis_is_rejected_where_it_is_wrong(kendall):
    precise = result(edges="10n", epsilon=20)
    assert precise.p_value() < 1e-4 and precise.p_value("less") > 0.999
    inside = kendall.interval(kind="population")
    assert kendall.p_value(null=inside.low - 0.01) < 0.05 < kendall.p_value(null=inside.low + 0.01)
    assert kendall.test(null=0.3).null == 0.3
    with pytest.raises(umpc.errors.StudyError, match="alternative is one of"):
        kendall.p_value("bigger")
    with pytest.raises(umpc.errors.StudyError, match="no hypothesis"):
        result("gini_mean_difference", ["x"]).p_value()


def test_a_small_tau_star_is_evidence_of_nothing(tmp_path):
    found = result("bergsma_dassios_tau_star", epsilon=20)
    assert found.test().alternative == "greater" and found.p_value() == found.p_value("greater")
    for side in ("two-sided", "less"):
        with pytest.raises(umpc.errors.StudyError, match="'greater' only: it is 0 for independent"):
            found.p_value(side)
        assert 0 < found.p_value(side, null=0.0) <= 1
    infer = [str(found.save(tmp_path / "report.json")), "--alternative", "less"]
    assert "'greater' only" in str(CliRunner().invoke(umpc_infer, infer).exception)


def test_a_p_value_that_noise_hides_is_shown_as_below_the_least_one(tmp_path):
    """Scipy's would be below 1e-100, and the law of the noise has no such digits."""
    columns = list(range(256)) * 4
    table = {"x": columns, "y": columns}
    bounds = {name: BOUNDS[name] for name in "xy"}
    found = umpc.estimate(
        "kendall_tau", [table, table], ["x", "y"], bounds=bounds, epsilon=2, edges="4n"
    )
    test = found.test()
    assert test.is_below and test.p_value == found.p_value() == LEAST
    assert test.size == "p < 1e-12" and repr(test).startswith("NullTest(p_value<1e-12, ")
    assert "p &lt; 1e-12 (" in found.to_html()
    infer = [str(found.save(tmp_path / "report.json"))]
    assert "has p < 1e-12 (" in CliRunner().invoke(umpc_infer, infer).output
    given = CliRunner().invoke(umpc_infer, [*infer, "--null", "0.9", "--format", "json"]).output
    assert json.loads(given)["test"]["is_below"] == (found.test(null=0.9).p_value == LEAST)
    assert found.to_dict()["inference"]["test"]["is_below"] is True


def test_other_p_values_are_shown_as_they_are(kendall):
    test = replace(kendall.test(), p_value=0.012345)
    assert (test.size, test.is_below) == ("p = 0.0123", False)
    assert repr(test).startswith("NullTest(p_value=0.012345, alternative='two-sided', null=0.0, ")
    assert replace(test, p_value=3.21e-9).size == "p = 3.2e-09"


def test_the_four_sources_of_error_are_told_apart(kendall):
    noise, sampling, coarse, population = kendall.errors()
    assert noise.std == kendall.report.noise_std and sampling.std == kendall.report.sampling_std
    assert coarse.std is None
    # √(2/n·(1 − τ²)), the largest that any population leaves
    assert population.std == pytest.approx(np.sqrt(2 / 200 * (1 - kendall.estimate**2)))


def test_bounds_are_printed_as_bounds(kendall, tmp_path):
    """A reader took them for standard deviations."""
    noise, sampling, coarse, population = kendall.errors()
    assert noise.size == f"{noise.std:.3g}" and "not bounded" in coarse.size
    infer = [str(kendall.save(tmp_path / "report.json"))]
    shown = CliRunner().invoke(umpc_infer, infer).output
    for source in (sampling, population):
        assert source.size == f"at most {source.std:.3g}"
        assert source.size in shown and source.size in kendall.to_html()
    largest = "by the largest variance that it may have"
    assert largest in shown and largest in kendall.to_html()
    everything = result(edges="all").errors()
    assert everything[1].size == "0", "no sampling is known to have no error"


def test_two_classes_are_known_from_a_replay_too():
    found = result("auc", ["x"], label=("g", "u"), edges="all", epsilon=1)
    replay = replace(found.report, first_class_by_node=[], records_by_node=[])
    assert Inference(replay).classes == Inference(found.report).classes == (100, 100)
    assert Inference(replay).test() == found.test()
    uneven = replace(replay, records=110, sets=10 * 100)
    assert Inference(uneven).classes == (10, 100)


def test_a_report_without_a_value_has_no_inference(kendall):
    drowned = umpc.Result(replace(kendall.report, estimate=None, note="no value: drowned"))
    for asked in (drowned.interval, drowned.p_value, drowned.errors):
        with pytest.raises(umpc.errors.StudyError, match="no value"):
            asked()
    assert "no value" in drowned.plot().svg and "no value" in repr(drowned)


def test_a_true_hypothesis_is_rejected_in_at_most_alpha():
    """The whole table is `python -m bench.type_one`."""
    runs = 300
    tried = [("auc", "all"), ("wilcoxon_signed_rank", "2n"), ("auc_private", "2n")]
    for number, (statistic, edges) in enumerate(tried):
        rng = np.random.default_rng(number)
        case = NullCase(statistic, "2", edges)
        noisy = case.totals(rng, runs) + case.noise(rng, runs)
        (share,) = rejected(case, noisy, [0.1])
        assert excess(share, 0.1, runs) < -np.log10(ALPHA), (statistic, edges, share)
        (wrong,) = rejected(case, case.totals(rng, runs) + 3 * case.noise(rng, runs), [0.1])
        assert excess(wrong, 0.1, runs) > 4, "power: noise of a wrong scale is found"
