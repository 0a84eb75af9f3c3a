"""Tables of counts over real processes: a demo of two sites, and again at no cost."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest
from msgspec import convert

from tests.support.released_tables import LUNG
from tests.system.test_demo import result
from umpc.counts.statistics import Asker
from umpc.counts.table import CountTable
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


def test_the_demos_curve_of_lung_is_survfits_at_every_event_time():
    by_r = json.loads((LUNG.parent / "lung_by_r.json").read_text(encoding="utf-8"))
    given = ("--csv", str(LUNG), "--fields", "time,status", "--bounds", "time=0:1022")
    bins = ("--bins", "time=1023", "--nodes", "2", "--epsilon", "1000000")
    report = result("--statistic", "kaplan_meier", *given, *bins)
    counts = convert(report["counts"], CountsReport)
    answer = Asker(CountTable.of(counts, report["records"])).ask("kaplan_meier")
    curve = dict(zip(answer.series[0].x, answer.series[0].value, strict=True))
    assert len(by_r["time"]) == 139 and report["estimate"] == by_r["medians"][0]
    assert [curve[time] for time in by_r["time"]] == pytest.approx(by_r["surv"], abs=1e-12)
