"""How often intervals computed from counts hold their value: `python -m bench.counts`.

A table of the clear counts of a public data set is made noisy with the law that a study releases
it by, again and again. "records" is the share of intervals that hold the value of these records.
"population" draws the records anew from the data set each time, and asks for the data set's own
value. For a curve the share is over all its points, with that of its worst point next to it, which
is below the others by chance; "records_band" is the share of whole curves.
The last table has the share of true hypotheses that a test rejects at 5 %.

`--lung`, `--bank`, `--heart` and `--whas500` name files of the data; a data set without a file is
left out, and made-up data stand for it in the tests. lung: time, status (1, 2), age. whas500:
lenfol, fstat, age. heart: age, num. bank: age, balance, y; its balance is in a dyadic tree.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite, sqrt
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bench.table import show
from umpc.counts.answers import BAND, POPULATION, RECORDS, CountsAnswer
from umpc.counts.statistics import Asker
from umpc.counts.table import CountTable
from umpc.study.report import CountedAxis, CountsReport

RUNS = 1000
EPSILONS = (0.5, 1.0, 2.0)
SENSITIVITY = 2
"""One record's replacement changes two cells by 1."""
EXACT = 1e-7
"""The scale of noise that is never drawn."""
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Case:
    """A statistic over columns of a data set. tree: its axis, or -1."""

    name: str
    kind: str
    axes: Sequence[CountedAxis]
    columns: Sequence[NDArray[np.float64]]
    tree: int = -1

    def cells(self, rows: Ints | None = None) -> Ints:
        """The clear table: of all records, or of some rows."""
        shape = tuple(len(axis.cuts) + 1 for axis in self.axes)
        found = np.zeros(shape, dtype=np.int64)
        places = [
            np.searchsorted(axis.cuts, column if rows is None else column[rows], side="right")
            for axis, column in zip(self.axes, self.columns, strict=True)
        ]
        np.add.at(found, tuple(places), 1)
        return found

    def report(self, cells: Ints, epsilon: float | None, rng: np.random.Generator) -> CountsReport:
        """The table that a study releases. Args: epsilon: None for no noise."""
        levels = [cells]
        while self.tree >= 0 and levels[-1].shape[self.tree] > 1:
            levels.append(halved(levels[-1], self.tree))
        flat = np.concatenate([level.ravel() for level in levels])
        scale = EXACT
        if epsilon is not None:
            # the last level over one axis alone is n, which is public
            moving = len(levels) - (len(levels) > 1 and cells.ndim == 1)
            scale = SENSITIVITY * moving / epsilon
            odds = 1 - np.exp(-1 / scale)
            flat = flat + rng.geometric(odds, len(flat)) - rng.geometric(odds, len(flat))
        values = [int(value) for value in flat]
        return CountsReport("counts", list(self.axes), values, self.tree, "laplace", scale, 1.0, 1)

    def answer(self, cells: Ints, epsilon: float | None, rng: np.random.Generator) -> CountsAnswer:
        table = CountTable.of(self.report(cells, epsilon, rng), int(cells.sum()))
        return Asker(table).ask(self.kind)


def halved(cells: Ints, axis: int) -> Ints:
    """The next level of a tree: sums of two neighbours, the last one alone where it has none."""
    return np.add.reduceat(cells, np.arange(0, cells.shape[axis], 2), axis=axis)


def whole(field: str, lower: float, upper: float, cuts: Sequence[float]) -> CountedAxis:
    """A field of whole numbers."""
    return CountedAxis(field, lower, upper, 1, [float(cut) for cut in cuts], [])


def two_cells(field: str) -> CountedAxis:
    """A field that is 0 or 1."""
    return whole(field, 0, 1, [1])


def cases_of(data: Mapping[str, Mapping[str, NDArray[np.float64]]]) -> list[Case]:
    """The cases of the data sets that are there."""
    found = []
    for name, time, top in (("lung", "time", 1100), ("whas500", "lenfol", 2400)):
        if name in data:
            table = data[name]
            axis = whole(time, 0, top, range(top // 11, top - 1, top // 11))
            years = whole("age", 20, 110, range(21, 111))
            old = whole("age", 20, 110, [65])
            pair = (table[time], table["event"])
            found += [
                Case(f"{name} curve", "kaplan_meier", (axis, two_cells("event")), pair),
                Case(f"{name} hazard", "nelson_aalen", (axis, two_cells("event")), pair),
                Case(
                    f"{name} two groups",
                    "kaplan_meier",
                    (axis, two_cells("event"), old),
                    (*pair, table["age"]),
                ),
                Case(f"{name} age", "ecdf", (years,), (table["age"],)),
            ]
    if "heart" in data:
        table = data["heart"]
        decades = whole("age", 20, 90, range(30, 90, 5))
        pair = (table["age"], table["disease"])
        found += [
            Case("heart age for disease", "roc", (decades, two_cells("disease")), pair),
            Case("heart age and disease", "contingency", (decades, two_cells("disease")), pair),
            Case("heart quantiles", "qq", (decades, two_cells("disease")), pair),
        ]
    if "bank" in data:
        table = data["bank"]
        balance = whole("balance", -8192, 73728, range(-8192 + 160, 73728, 160))
        found += [
            Case("bank balance, tree", "ecdf", (balance,), (table["balance"],), tree=0),
            Case(
                "bank age for y",
                "roc",
                (whole("age", 15, 95, range(20, 95, 5)), two_cells("y")),
                (table["age"], table["y"]),
            ),
        ]
    return found


@dataclass(frozen=True)
class Share:
    """How many intervals hold their value, how many at the worst point, half their mean length."""

    name: str
    kind: str
    covered: float
    worst: float
    half: float


def measure(case: Case, epsilon: float, runs: int, seed: int) -> list[Share]:
    """Make so many releases for each kind of interval."""
    rng = np.random.default_rng(seed)
    cells = case.cells()
    truth = case.answer(cells, None, rng)
    held: dict[tuple[str, str], list[NDArray[np.bool_]]] = {}
    lengths: dict[tuple[str, str], list[float]] = {}
    for run in range(2 * runs):
        kind = (RECORDS, POPULATION)[run % 2]
        drawn = cells
        if kind == POPULATION:
            size = int(cells.sum())
            drawn = rng.multinomial(size, cells.ravel() / size).reshape(cells.shape)
        answer = case.answer(drawn, epsilon, rng)
        for name, own, is_held, half in checks(answer, truth, kind):
            held.setdefault((name, own), []).append(is_held)
            lengths.setdefault((name, own), []).append(half)
    return [
        Share(
            name,
            own,
            float(np.mean(found)),
            float(np.min(np.mean(found, axis=0))),
            float(np.mean([half for half in lengths[name, own] if isfinite(half)] or [np.inf])),
        )
        for (name, own), found in held.items()
    ]


def checks(answer: CountsAnswer, truth: CountsAnswer, kind: str):
    """Each series and each number: its name, its kind, where it holds the truth, half a length."""
    kinds = (kind, BAND) if kind == RECORDS else (kind,)
    for series, true in zip(answer.series, truth.series, strict=True):
        for own in kinds:
            bounds = series.intervals.get(own)
            if bounds is None:
                continue
            low, high, value = (np.array(each) for each in (bounds.low, bounds.high, true.value))
            is_held = (low <= value + 1e-9) & (value <= high + 1e-9)
            if answer.kind == "qq":
                is_held = is_held | np.isnan(value)
            if own == BAND:
                is_held = is_held.all(keepdims=True)
            yield series.name, own, is_held, float(np.mean(high - low)) / 2
    for number, true in zip(answer.numbers, truth.numbers, strict=True):
        if kind not in number.intervals:
            continue
        low, high = number.intervals[kind]
        value = np.inf if true.value is None else true.value
        least, most = -np.inf if low is None else low, np.inf if high is None else high
        if low is None and number.name.startswith("median"):
            least = np.inf  # the curve stays above 1/2 for sure
        is_held = np.array([least <= value + 1e-9 and value <= most + 1e-9])
        yield number.name, kind, is_held, (most - least) / 2


def type_one(case: Case, epsilon: float, runs: int, seed: int) -> float:
    """The share of studies whose p-value is at most 0.05, with the last column shuffled."""
    rng = np.random.default_rng(seed)
    rejected = 0
    for _ in range(runs):
        columns = [*case.columns[:-1], rng.permutation(case.columns[-1])]
        shuffled = Case(case.name, case.kind, case.axes, columns)
        answer = shuffled.answer(shuffled.cells(), epsilon, rng)
        size = answer.number("p-value").value
        rejected += size is not None and size <= 0.05
    return rejected / runs


def read(file: Path, columns: Mapping[str, str], change: Callable) -> dict[str, NDArray]:
    """Columns of a CSV file under new names, without the rows that lack a value."""
    text = file.read_text(encoding="utf-8")
    separator = ";" if ";" in text.partition("\n")[0] else ","
    rows = list(csv.DictReader(text.splitlines(), delimiter=separator))
    kept = [row for row in rows if all(row[name] not in ("", "NA") for name in columns)]
    return {new: np.array([change(old, row[old]) for row in kept]) for old, new in columns.items()}


def read_data(given: argparse.Namespace) -> dict[str, dict[str, NDArray]]:
    """The data sets whose files were named."""
    names = {
        "lung": (
            {"time": "time", "status": "event", "age": "age"},
            lambda c, v: float(v) - (c == "status"),
        ),
        "whas500": ({"lenfol": "lenfol", "fstat": "event", "age": "age"}, lambda c, v: float(v)),
        "heart": (
            {"age": "age", "num": "disease"},
            lambda c, v: min(float(v), 1.0) if c == "num" else float(v),
        ),
        "bank": (
            {"age": "age", "balance": "balance", "duration": "duration", "y": "y"},
            lambda c, v: float(v == "yes") if c == "y" else float(v),
        ),
    }
    return {
        name: read(getattr(given, name), columns, change)
        for name, (columns, change) in names.items()
        if getattr(given, name)
    }


def leasts(rows: Sequence[Sequence[str]]) -> list[list[str]]:
    """For each data set, kind of interval and epsilon: how many values, and the least share."""
    found: dict[tuple[str, str, str], list[float]] = {}
    for name, epsilon, _, kind, held, *_ in rows:
        own = found.setdefault((name.partition(" ")[0], kind, epsilon), [])
        own.append(float(held.rstrip("%")))
    return [[*key, f"{len(own)}", f"{min(own):.1f}%"] for key, own in sorted(found.items())]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.counts", description=__doc__)
    parser.add_argument("--runs", type=int, default=RUNS, help="Releases of each case.")
    parser.add_argument("--only", default="", help="Cases whose name begins so.")
    parser.add_argument("--seed", type=int, default=50)
    for name in ("lung", "bank", "heart", "whas500"):
        parser.add_argument(f"--{name}", type=Path, help=f"The data set {name}, as CSV.")
    given = parser.parse_args()
    cases = [case for case in cases_of(read_data(given)) if case.name.startswith(given.only)]
    rows, least = [], 1.0
    for case in cases:
        for epsilon in EPSILONS:
            for each in measure(case, epsilon, given.runs, given.seed):
                least = min(least, each.covered)
                shown = [f"{each.covered:.1%}", f"{each.worst:.1%}", f"{each.half:.4g}"]
                rows.append([case.name, f"{epsilon:g}", each.name, each.kind, *shown])
                print(" ".join(rows[-1]), flush=True)
    columns = ["data", "epsilon", "value", "interval for", "held", "worst point", "half length"]
    show("Coverage of intervals from counts, 95 %", columns, rows)
    show("The least of them", ["data", "interval for", "epsilon", "values", "held"], leasts(rows))
    error = sqrt(0.05 * 0.95 / given.runs)
    print(f"least {least:.1%}; due 95 %, with a standard error of {error:.2%}")
    tests = []
    # a test's shuffled table depends on its columns alone: each table is tested once
    for case in {(len(case.axes), case.columns[0].tobytes()): case for case in cases}.values():
        kinds = {3: ("logrank", "gehan"), 2: ("contingency",)}.get(len(case.axes), ())
        for kind in kinds:
            for epsilon in EPSILONS:
                own = Case(case.name, kind, case.axes, case.columns)
                share = type_one(own, epsilon, given.runs, given.seed)
                tests.append([case.name, kind, f"{epsilon:g}", f"{share:.1%}"])
                print(" ".join(tests[-1]), flush=True)
    show("True hypotheses rejected at 5 %", ["data", "test", "epsilon", "rejected"], tests)


if __name__ == "__main__":
    main()
