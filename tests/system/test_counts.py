"""Tables of counts over real processes: a demo of two sites, and again at no cost."""

from __future__ import annotations

import csv

import numpy as np

from tests.system.test_demo import result

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
