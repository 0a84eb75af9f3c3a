"""Tables of counts over real processes: demos, a hub, and processes that are killed."""

from __future__ import annotations

import csv
import json
import signal
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest

from tests.support.node_ledgers import beside, share_of, start_again
from tests.support.released_tables import LUNG
from tests.system.conftest import TABLE, Lab, Outcome
from tests.system.test_demo import result
from umpc.errors import PeerLost

ALIKE = ("--nodes", "2", "--epsilon", "1000000000")


def test_a_demo_of_a_survival_curve_counts_its_tables_exactly(tmp_path):
    rng = np.random.default_rng(5)
    rows = [
        (int(time), int(event))
        for time, event in zip(rng.integers(1, 40, 60), rng.integers(0, 2, 60), strict=True)
    ]
    with (tmp_path / "trial.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("days", "died"), *rows])
    given = ("--csv", str(tmp_path / "trial.csv"), "--fields", "days,died")
    report = result("--statistic", "kaplan_meier", *given, "--bounds", "days=0:40", *ALIKE)
    table = np.zeros((41, 2), dtype=int)
    for time, event in rows:
        table[time, event] += 1
    assert report["counts"]["values"] == table.ravel().tolist()
    assert report["estimate"] == report["quantised"]
    assert report["bytes_online"] == report["bytes_online_predicted"]
    assert report["bytes_offline"] == report["bytes_offline_predicted"] == 0


def test_a_demo_without_a_table_has_one_of_its_own():
    for statistic, fields in (("kaplan_meier", ["time", "event"]), ("contingency", None)):
        report = result(
            "--statistic", statistic, "--noise", "in_mpc", "--nodes", "2", *BINS[statistic]
        )
        assert report["protocol"] == "counts" and report["noise"] == "in_mpc"
        assert fields is None or [axis["field"] for axis in report["counts"]["axes"]] == fields
        assert report["bytes_offline"] == report["bytes_offline_predicted"] > 0


BINS = {"kaplan_meier": ("--bins", "time=10"), "contingency": ("--bins", "mean radius=5")}


BY_R = json.loads((LUNG.parent / "lung_by_r.json").read_text(encoding="utf-8"))
AGE, DAYS = "age=30:89", "time=0:1022"
DEMOS = {
    "kaplan_meier": ("time,status", (DAYS,), ("--bins", "time=1023"), 1),
    "roc": ("age,status", (AGE,), (), 1),
    "quantiles": ("age", (AGE,), (), 0),
    "contingency": ("age,status", (AGE,), ("--bins", "age=2"), 1),
    "logrank": (
        "time,status,age",
        (DAYS, "age=35:94"),
        ("--bins", "time=1023", "--bins", "age=2"),
        1,
    ),
    "auc_difference": ("age,time,status", (AGE, DAYS), ("--edges", "all"), 1),
}
"""Statistic → its fields of lung, their bounds, more options, and how many pictures it has."""
BY_R_NUMBERS = {
    "kaplan_meier": ("median", BY_R["medians"][:1]),
    "roc": ("area", BY_R["area"]),
    "quantiles": (("first", "median", "third"), BY_R["quartiles"]),
    "contingency": ("chi-squared", BY_R["chi_squared"]),
    "logrank": ("chi-squared", BY_R["logrank"]),
}
"""Statistic → how its numbers begin, and these numbers by R."""


@pytest.mark.parametrize("statistic", DEMOS)
def test_a_demo_of_lung_prints_and_draws_what_r_finds(statistic, tmp_path):
    fields, bounds, more, pictures = DEMOS[statistic]
    given = ("--csv", str(LUNG), "--fields", fields, "--nodes", "2", "--epsilon", "1000000")
    given += tuple(word for each in bounds for word in ("--bounds", each))
    page = tmp_path / "report.html"
    report = result("--statistic", statistic, *given, *more, "--html", str(page))
    assert page.read_text(encoding="utf-8").count("<svg") == pictures
    if statistic == "auc_difference":
        assert report["estimate"] == pytest.approx(BY_R["difference"][0], abs=1e-6)
        # this test is more careful than DeLong's (docs/inference.md)
        assert BY_R["delong"][0] < report["inference"]["test"]["p_value"] < 0.1
        return
    answer = report["answers"][0]
    begins, due = BY_R_NUMBERS[statistic]
    numbers = [each["value"] for each in answer["numbers"] if each["name"].startswith(begins)]
    assert numbers == pytest.approx(due, abs=1e-9)
    if statistic == "kaplan_meier":
        curve = dict(zip(answer["series"][0]["x"], answer["series"][0]["value"], strict=True))
        assert len(BY_R["time"]) == 139 and report["estimate"] == BY_R["medians"][0]
        assert [curve[time] for time in BY_R["time"]] == pytest.approx(BY_R["surv"], abs=1e-12)
    if statistic == "roc":
        rates = [[each["value"][age - 30] for age in BY_R["scores"]] for each in answer["series"]]
        assert rates[0] == pytest.approx(BY_R["sensitivities"], abs=1e-9)
        assert rates[1] == pytest.approx([1 - each for each in BY_R["specificities"]], abs=1e-9)


# --- sites ----------------------------------------------------------------------------------------

AGES = [int(line.partition(",")[0]) for line in TABLE.splitlines()[1:]]
BUDGET = "2000000000"


@pytest.fixture
def sites(tmp_path) -> Iterator[Lab]:
    """Provide two nodes that are not started yet."""
    lab = Lab(tmp_path, 2)
    try:
        yield lab
    finally:
        lab.stop()


def ask(lab: Lab, name: str, epsilon: str) -> Outcome:
    """Ask for the quantiles of the ages."""
    asked = {"protocol": "counts", "statistic": "quantiles", "columns": ["age"]}
    return lab.run(name=name, epsilon=epsilon, **asked)


def spent(lab: Lab) -> list[Fraction]:
    return [beside(lab, name).account.spent.epsilon for name in lab.names]


def test_a_table_through_a_hub_is_exact_and_asked_again_it_is_free_and_equal(sites):
    sites.served["hub"] = sites.deployment.start_hub()
    sites.start(BUDGET, dealer=False)
    first = ask(sites, "ages", "1000000000")
    assert first.code == 0, first.error
    both = np.bincount(AGES, minlength=128) * len(sites.names)
    assert first.report["counts"]["values"] == both.tolist()
    assert first.report["estimate"] == np.percentile(AGES, 50, method="inverted_cdf")
    assert first.report["bytes_online"] == first.report["bytes_online_predicted"]
    again = ask(sites, "ages", "1000000000")
    assert again.report["replayed"] and again.report["counts"] == first.report["counts"]
    assert spent(sites) == [10**9, 10**9]
    assert sites.loud_lines() == []


@pytest.mark.parametrize("point", ["before-charge", "after-charge"])
def test_a_table_of_a_node_that_was_killed_is_charged_once_and_stays_the_same(sites, point):
    sites.start(BUDGET, dealer=False)
    start_again(sites, "node-2", point, BUDGET)
    first = ask(sites, "ages", "1")
    assert first.code == PeerLost.exit_code, first.error
    assert sites.served["node-2"].process.wait(10) == -signal.SIGKILL, "the point was not reached"
    sent = share_of(sites, "node-1", "ages")
    start_again(sites, "node-2", epsilon=BUDGET)
    second, third = ask(sites, "ages", "1"), ask(sites, "ages", "1")
    assert second.code == 0 and third.report["replayed"], second.error
    assert second.report["counts"] == third.report["counts"]
    assert sent in (None, share_of(sites, "node-1", "ages"))
    assert spent(sites) == [1, 1]
