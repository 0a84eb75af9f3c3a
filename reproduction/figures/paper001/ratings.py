"""Two ordered columns of six values: the paper's ratings if given, or the bank data.

TripAdvisor has `rooms` and `cleanliness`, 0 to 5; records with a missing rating are left out.
Without it the columns are age by decades (below 30, …, 70 and more) and yearly balance (below 0,
100, 500, 1,000, 3,000 euros, and more). They are cut at round numbers, which are public.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np

from bench.harness import RECORDS, made_up
from reproduction.figures.given import bank_table, file_of, is_made_up
from reproduction.figures.paper001.classifier import read_table
from umpc.cli.table import DemoTable
from umpc.study.parts import FieldText
from umpc.ustat.kernel import Kernel
from umpc.ustat.schema import Schema
from umpc.ustat.statistics import find_statistic
from umpc_papers.local.quantisation import Bins, Quantiser

VALUES = 6
AGES = (30, 40, 50, 60, 70)
BALANCES = (0, 100, 500, 1000, 3000)
MISSING = ("", "-1")


@dataclass(frozen=True, eq=False)
class Ratings:
    """Two columns of ratings. columns: `x` and `y`, (n,) int64 of 0 .. 5. source: their data."""

    source: str
    columns: dict[str, np.ndarray]

    @property
    def records(self) -> int:
        return len(self.columns["x"])

    @cached_property
    def cell(self) -> np.ndarray:
        """(n,) int64: a record's cell, 0 .. 35."""
        return self.columns["x"] * VALUES + self.columns["y"]

    @cached_property
    def counts(self) -> np.ndarray:
        """(36,) int64: the number of records in each cell."""
        return np.bincount(self.cell, minlength=VALUES**2)


@lru_cache(maxsize=1)
def kendall_cells() -> Quantiser:
    """Kendall's tau between the cells, without quantisation."""
    schema = Schema(
        FieldText(name, "0", str(VALUES - 1), whole=True).schema() for name in ("x", "y")
    )
    kernel = Kernel(find_statistic("kendall_tau").expression(["x", "y"]), schema)
    return Quantiser(kernel, tuple(Bins.equal(schema[name], VALUES) for name in ("x", "y")))


@lru_cache(maxsize=3)
def load(name: str) -> Ratings:
    return {"bank": bank, "made up": made_up_bank, "tripadvisor": tripadvisor}[name]()


def bank() -> Ratings:
    return _banded(*bank_table(["age", "balance"]))


def made_up_bank() -> Ratings:
    """A made-up table of the bank data's size, also where the bank data are at hand."""
    return _banded(made_up(RECORDS), "A made-up table of the bank data's size")


def _banded(table: DemoTable, source: str) -> Ratings:
    age, balance = np.array([[int(value) for value in row] for row in table.rows]).T
    columns = (
        np.searchsorted(cuts, own, side="right") for cuts, own in ((AGES, age), (BALANCES, balance))
    )
    return Ratings(source, dict(zip("xy", columns, strict=True)))


def tripadvisor() -> Ratings:
    """The given ratings. Raises: SystemExit if no file was given, or if it holds other data."""
    file = file_of("tripadvisor")
    names, rows = _reviews(file) if _is_tagged(file) else read_table(file, ",")
    if not {"rooms", "cleanliness"} <= set(names):
        raise SystemExit(
            f"{file}: columns `rooms` and `cleanliness` were expected; it has "
            f"{', '.join(names[:9])} …"
        )
    places = [names.index(name) for name in ("rooms", "cleanliness")]
    kept = [
        values
        for row in rows
        if not set(MISSING) & set(values := [row[place].strip() for place in places])
    ]
    try:
        columns = (
            np.array([[int(float(value)) for value in values] for values in kept]).reshape(-1, 2).T
        )
    except ValueError as error:
        raise SystemExit(
            f"{file}: ratings must be whole numbers of 0 to {VALUES - 1}, or -1: {error}"
        ) from error
    if not columns.size or columns.min() < 0 or columns.max() >= VALUES:
        raise SystemExit(
            f"{file}: ratings must be whole numbers of 0 to {VALUES - 1}, or -1 where missing"
        )
    return Ratings("TripAdvisor data", dict(zip("xy", columns, strict=True)))


def _is_tagged(file: Path) -> bool:
    """Whether a file is of the data's own form: reviews of lines such as `<Rooms>4`."""
    with file.open(encoding="utf-8", errors="replace") as lines:
        return next((line for line in lines if line.strip()), "").startswith("<")


def _reviews(file: Path) -> tuple[list[str], list[list[str]]]:
    """The ratings of the reviews of one or more hotels. A review begins with `<Author>`."""
    names = ["rooms", "cleanliness"]
    rows: list[list[str]] = []
    with file.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            tag, _, value = line.strip().removeprefix("<").partition(">")
            if tag == "Author":
                rows.append(["", ""])
            elif tag.lower() in names and line.startswith("<") and rows:
                rows[-1][names.index(tag.lower())] = value
    return names, rows


def label_of(name: str) -> str:
    """The name of the data in series and pictures."""
    if name == "bank":
        source = "made-up table" if is_made_up(name) else "bank data"
        return f"{source}, age and balance, in place of TripAdvisor"
    return "TripAdvisor, rooms and cleanliness"
