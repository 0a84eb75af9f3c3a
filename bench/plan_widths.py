"""Predicted and measured widths of intervals: `python -m bench.plan_widths --lung FILE --bank FILE`

Each case is a study over a public table, split over two sites. The plan predicts the interval for
these records over the same table without noise, and real protocol code in memory makes `--runs`
reports with noise. Half a width is shown for both; they should be within 15 % of one another.
`--runs 200` has a standard error of about 1 % for tables of counts.
"""

from __future__ import annotations

import argparse
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.counts import read_data
from bench.table import show
from umpc.coordinator.studyfile import read_study
from umpc.errors import StudyError
from umpc.planning.prediction import attempt_over
from umpc.planning.reference_table import ReferenceTable
from umpc.protocols.registry import protocol_of
from umpc.simulation import simulate
from umpc.study.report import Report

NODES = 2
DUE = 0.15
Table = Mapping[str, NDArray[np.float64]]


@dataclass(frozen=True)
class Case:
    """A study of a statistic over fields of a data set. fields: name → bounds of whole numbers."""

    data: str
    statistic: str
    fields: Mapping[str, tuple[int, int]]
    more: Mapping[str, Any] = field(default_factory=dict)


DAYS, EVENT, OLD = {"time": (0, 1099)}, {"event": (0, 1)}, {"age": (30, 89)}
CLIENT, YES = {"age": (15, 94)}, {"y": (0, 1)}
PAIRS = {"edges": "all", "preprocessing": "none"}
CASES = [
    Case("lung", "kaplan_meier", DAYS | EVENT, {"bins": {"time": 100}}),
    Case("lung", "quantiles", DAYS, {"bins": {"time": 100}}),
    Case("lung", "roc", OLD | EVENT, {"bins": {"age": 12}}),
    Case("lung", "contingency", OLD | EVENT, {"bins": {"age": 3}}),
    Case("lung", "logrank", DAYS | EVENT | OLD, {"bins": {"time": 20, "age": 2}}),
    Case("lung", "counts", OLD, {"bins": {"age": 6}}),
    Case("lung", "hodges_lehmann", OLD, PAIRS),
    Case(
        "lung", "theil_sen", OLD | DAYS, PAIRS | {"parameters": {"thresholds": "-40 -10 0 10 40"}}
    ),
    Case("lung", "auc_difference", OLD | DAYS | EVENT, PAIRS),
    Case("bank", "quantiles", CLIENT),
    Case("bank", "roc", CLIENT | YES, {"bins": {"age": 16}}),
    Case("bank", "contingency", CLIENT | YES, {"bins": {"age": 4}}),
    Case("bank", "counts", CLIENT, {"bins": {"age": 16}}),
]


def width(report: Report) -> float | None:
    """Half of the report's interval, None where it has none."""
    if report.low is None or report.high is None:
        return None
    return (report.high - report.low) / 2


def compare(case: Case, table: Table, epsilon: float, runs: int) -> tuple[float | None, ...]:
    """The predicted half width, and the mean of the measured ones. Raises: StudyError."""
    entries = {
        "name": "widths",
        "statistic": case.statistic,
        "columns": list(case.fields),
        "epsilon": f"{epsilon:g}",
        "identity": "coordinator",
        "fields": [
            {"name": name, "lower": low, "upper": high, "whole": True}
            for name, (low, high) in case.fields.items()
        ],
        "nodes": [{"name": f"node-{i}", "address": "node:1"} for i in range(NODES)],
        **case.more,
    }
    study = read_study(Path("study.toml"), entries).new_study("coordinator")
    columns = {
        name: np.clip(table[name], low, high).astype(np.int64)
        for name, (low, high) in case.fields.items()
    }
    sites = [{name: each[part::NODES] for name, each in columns.items()} for part in range(NODES)]
    counts = ",".join(str(len(next(iter(site.values())))) for site in sites)
    attempt = attempt_over(study, counts)
    like = ReferenceTable.of(study, columns, attempt.counts)
    predicted = width(protocol_of(study).expected_report(attempt, like))
    found = [width(simulate(study, sites, secrets.token_bytes).report) for _ in range(runs)]
    known = [each for each in found if each is not None]
    return predicted, float(np.mean(known)) if known else None


def row(case: Case, table: Table, epsilon: float, runs: int) -> Sequence[str]:
    """A line of the table that is shown."""
    name = [case.data, case.statistic, f"{epsilon:g}"]
    try:
        predicted, measured = compare(case, table, epsilon, runs)
    except StudyError as error:
        return [*name, "none", "none", error.message]
    if predicted is None or measured is None:
        return [*name, str(predicted), str(measured), "no interval"]
    off = predicted / measured - 1
    told = f"{off:+.1%}" + (" MISSED" if abs(off) > DUE else "")
    return [*name, f"{predicted:.4g}", f"{measured:.4g}", told]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.plan_widths", description=__doc__)
    parser.add_argument("--runs", type=int, default=200, help="Reports of each case.")
    parser.add_argument("--epsilon", type=float, nargs="+", default=[1.0, 4.0])
    parser.add_argument("--only", default="", help="Statistics whose name begins so.")
    for name in ("lung", "bank", "heart", "whas500"):
        parser.add_argument(f"--{name}", type=Path, help=f"The data set {name}, as CSV.")
    given = parser.parse_args()
    data, rows = read_data(given), []
    for case in CASES:
        if case.data in data and case.statistic.startswith(given.only):
            for epsilon in given.epsilon:
                rows.append(row(case, data[case.data], epsilon, given.runs))
                print(*rows[-1], flush=True)
    columns = ["data", "statistic", "epsilon", "predicted", "measured", "off"]
    show("Half the width of a 95 % interval, planned and run", columns, rows)


if __name__ == "__main__":
    main()
