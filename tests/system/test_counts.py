"""Tables of counts over real processes: demos, a hub, and processes that are killed."""

from __future__ import annotations

import csv
import json
import signal
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest
from msgspec import convert

from tests.support.node_ledgers import beside, share_of, start_again
from tests.support.released_tables import LUNG
from tests.system.conftest import TABLE, Lab, Outcome
from tests.system.test_demo import result
from umpc.counts.statistics import Asker
from umpc.counts.table import CountTable
from umpc.errors import PeerLost
from umpc.study.report import CountsReport

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


def asker_of(report: dict) -> Asker:
    return Asker(CountTable.of(convert(report["counts"], CountsReport), report["records"]))


def test_the_demos_curve_of_lung_is_survfits_at_every_event_time():
    by_r = json.loads((LUNG.parent / "lung_by_r.json").read_text(encoding="utf-8"))
    given = ("--csv", str(LUNG), "--fields", "time,status", "--bounds", "time=0:1022")
    bins = ("--bins", "time=1023", "--nodes", "2", "--epsilon", "1000000")
    report = result("--statistic", "kaplan_meier", *given, *bins)
    answer = asker_of(report).ask("kaplan_meier")
    curve = dict(zip(answer.series[0].x, answer.series[0].value, strict=True))
    assert len(by_r["time"]) == 139 and report["estimate"] == by_r["medians"][0]
    assert [curve[time] for time in by_r["time"]] == pytest.approx(by_r["surv"], abs=1e-12)


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
