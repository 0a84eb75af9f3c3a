"""Predicted and measured widths of intervals: `python -m bench.plan_widths --lung FILE --bank FILE`

Each case is a study over a public table, split over two sites. The plan predicts the interval for
these records from the same table, and real protocol code in memory makes `--runs` reports with
noise. Half a width is shown for both; they should be within 15 % of one another. `--runs 200` has a
standard error of about 1 % for tables of counts.
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
from umpc.counts import reach
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
    """A study of a statistic over fields of a data set.

    fields: name → bounds of whole numbers. label: a field of 0 and 1 that is a public label.
    """

    data: str
    statistic: str
    fields: Mapping[str, tuple[int, int]]
    more: Mapping[str, Any] = field(default_factory=dict)
    label: str = ""


DAYS, EVENT, OLD = {"time": (0, 1099)}, {"event": (0, 1)}, {"age": (30, 89)}
CLIENT, YES, MONEY = {"age": (15, 94)}, {"y": (0, 1)}, {"balance": (-4096, 73727)}
TENS, CALL = {"decade": (0, 9)}, {"duration": (0, 4095)}
ALL = {"edges": "all", "preprocessing": "none"}
SAMPLED = {"edges": "2n", "dealer": {"name": "dealer", "address": "dealer:1"}}
GRID = {"backend": "grid", "preprocessing": "none"}
ANGLES = {"parameters": {"thresholds": "-40 -10 0 10 40"}}
MATRIX = {"protocol": "vector", "matrix": True, "delta": "1e-6", **SAMPLED}
WEIGHT = {"weight": "decade"}
CASES = [
    Case("lung", "kaplan_meier", DAYS | EVENT, {"bins": {"time": 100}}),
    Case("lung", "nelson_aalen", DAYS | EVENT, {"bins": {"time": 100}}),
    Case("lung", "quantiles", DAYS, {"bins": {"time": 100}}),
    Case("lung", "ecdf", OLD),
    Case("lung", "histogram", OLD, {"bins": {"age": 6}}),
    Case("lung", "roc", OLD | EVENT, {"bins": {"age": 12}}),
    Case("lung", "contingency", OLD | EVENT, {"bins": {"age": 3}}),
    Case("lung", "qq", OLD | EVENT, {"bins": {"age": 12}}),
    Case("lung", "logrank", DAYS | EVENT | OLD, {"bins": {"time": 20, "age": 2}}),
    Case("lung", "gehan", DAYS | EVENT | OLD, {"bins": {"time": 20, "age": 2}}),
    Case("lung", "counts", OLD, {"bins": {"age": 6}}),
    Case("lung", "hodges_lehmann", OLD, ALL),
    Case("lung", "hodges_lehmann_shift", OLD | EVENT, ALL, label="event"),
    Case("lung", "theil_sen", OLD | DAYS, ALL | ANGLES),
    Case("lung", "auc_difference", OLD | DAYS | EVENT, ALL),
    Case("lung", "tau_difference", OLD | TENS | DAYS, ALL),
    Case("lung", "concordance_difference", OLD | TENS | DAYS | EVENT, ALL),
    Case("lung", "kendall_tau", DAYS | OLD | EVENT, MATRIX),
    Case("lung", "kendall_tau", DAYS | OLD | TENS, ALL | WEIGHT),
    Case("bank", "quantiles", CLIENT),
    Case("bank", "ecdf", CLIENT),
    Case("bank", "histogram", CLIENT, {"bins": {"age": 16}}),
    Case("bank", "roc", CLIENT | YES, {"bins": {"age": 16}}),
    Case("bank", "contingency", CLIENT | YES, {"bins": {"age": 4}}),
    Case("bank", "qq", CLIENT | YES, {"bins": {"age": 16}}),
    Case("bank", "counts", CLIENT, {"bins": {"age": 16}}),
    Case("bank", "hodges_lehmann", CLIENT, GRID),
    Case("bank", "hodges_lehmann_shift", CLIENT | YES, GRID, label="y"),
    Case("bank", "theil_sen", CLIENT | MONEY, SAMPLED),
    Case("bank", "auc_difference", CLIENT | MONEY | YES, SAMPLED),
    Case("bank", "tau_difference", CLIENT | TENS | MONEY, SAMPLED),
    Case("bank", "concordance_difference", CLIENT | MONEY | CALL | YES, SAMPLED),
    Case("bank", "kendall_tau", CLIENT | MONEY | CALL, MATRIX),
    Case("bank", "kendall_tau", CLIENT | MONEY | TENS, SAMPLED | WEIGHT),
]


def with_scores(data: Mapping[str, dict[str, NDArray[np.float64]]]) -> Mapping[str, Table]:
    """The data sets with a coarser age, for comparisons with the age itself and as a weight."""
    return {name: {**table, "decade": table["age"] // 10} for name, table in data.items()}


def width(report: Report) -> float | None:
    """Half of the report's interval; of a curve and of several values the mean of theirs."""
    if report.counts is None:
        return report.half_width
    ends = reach(report.counts, report.records)
    return None if ends is None else sum(ends) / 2


def compare(case: Case, table: Table, epsilon: float, runs: int) -> tuple[float | None, ...]:
    """The predicted half width, and the mean of the measured ones. Raises: StudyError."""
    others = (case.more.get("weight"), case.label)
    entries = {
        "name": "widths",
        "statistic": case.statistic,
        "columns": [name for name in case.fields if name not in others],
        "epsilon": f"{epsilon:g}",
        "identity": "coordinator",
        "fields": [
            {"name": name, "categories": ["0", "1"], "public": True}
            if name == case.label
            else {"name": name, "lower": low, "upper": high, "whole": True}
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
    attempt = attempt_over(study, ",".join(records_of(site, case.label) for site in sites))
    like = ReferenceTable.of(study, columns, attempt.counts)
    predicted = protocol_of(study).half_width(attempt, like)
    found = [width(simulate(study, sites, secrets.token_bytes).report) for _ in range(runs)]
    known = [each for each in found if each is not None]
    return predicted, float(np.mean(known)) if known else None


def records_of(site: Mapping[str, NDArray[np.int64]], label: str) -> str:
    """A site's number of records, or of both classes of a public label, as a plan takes them."""
    if label:
        return "+".join(map(str, np.bincount(site[label], minlength=2)))
    return str(len(next(iter(site.values()))))


def row(case: Case, table: Table, epsilon: float, runs: int) -> Sequence[str]:
    """A line of the table that is shown."""
    kind = "matrix" if "matrix" in case.more else "weighted" if "weight" in case.more else ""
    name = [case.data, " ".join(filter(None, (kind, case.statistic))), f"{epsilon:g}"]
    try:
        predicted, measured = compare(case, table, epsilon, runs)
    except StudyError as error:
        return [*name, "none", "none", error.message]
    if predicted is None or measured is None:
        return [*name, str(predicted), str(measured), "no interval"]
    if not measured:
        return [*name, f"{predicted:.4g}", "0", "one value alone"]
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
    data, rows = with_scores(read_data(given)), []
    for case in CASES:
        if case.data in data and case.statistic.startswith(given.only):
            for epsilon in given.epsilon:
                rows.append(row(case, data[case.data], epsilon, given.runs))
                print(*rows[-1], flush=True)
    columns = ["data", "statistic", "epsilon", "predicted", "measured", "off"]
    show("Half the width of a 95 % interval, planned and run", columns, rows)


if __name__ == "__main__":
    main()
