"""The tables of Sinh & Ramon 2025, section 6, each with the kernel that is averaged over its pairs.

Bank and heart data are read from the data folder beside this project. Without them a made-up table
of the same size takes their place, and its name says so. The bounds are those of the tables
themselves. The paper normalises its columns to [0, 1], which is equivalent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import isqrt

import numpy as np

from bench.figures.draws import seed_of, stream_of
from bench.harness import BANK, bank_table
from umpc.cli.table import DemoTable, read_csv
from umpc.protocols.base.quantisation import Bins, Quantiser
from umpc.study.parts import FieldText
from umpc.ustat.kernel import Kernel
from umpc.ustat.sampling import below
from umpc.ustat.schema import Schema
from umpc.ustat.statistics import find_statistic

HEART = BANK.parents[1] / "heart" / "heart_sites.csv"
HEART_RECORDS = 834
GRID = 1 << 14
"""Steps of [0, 1]: the paper's h = 2^-14."""


@dataclass(frozen=True, eq=False)
class Data:
    """A table of records.

    source: the table's name.
    fields: the fields of a study of it.
    columns: field → (records,) int64, in steps.
    """

    source: str
    statistic: str
    fields: tuple[FieldText, ...]
    columns: dict[str, np.ndarray]

    @property
    def records(self) -> int:
        return len(next(iter(self.columns.values())))

    @property
    def kernel(self) -> Kernel:
        names = [field.name for field in self.fields]
        return Kernel(
            find_statistic(self.statistic).expression(names),
            Schema(f.schema() for f in self.fields),
        )

    def cells(self, bins: int) -> Quantiser:
        """t cells: t bins of equal width for one field, √t for each of two.

        A field of categories has one bin for each category.
        """
        each = bins if len(self.fields) == 1 else isqrt(bins)
        schemas = [field.schema() for field in self.fields]
        axes = [Bins.equal(schema, len(schema.categories) or each) for schema in schemas]
        return Quantiser(self.kernel, tuple(axes))


@lru_cache(maxsize=32)
def load(name: str, records: int) -> Data:
    """The table `uniform`, `bank`, `jobs`, `heart` or `diagnosis`, with this number of records.

    They are a random part of the table, which never changes.
    """
    return {"uniform": uniform, "bank": bank, "jobs": jobs, "heart": heart, "diagnosis": diagnosis}[
        name
    ](records)


def uniform(records: int, seed: bytes | None = None) -> Data:
    """Independent records, uniform on [0, 1) in steps of 2^-14.

    seed: for other records than the figure's own.
    """
    words = stream_of(seed or seed_of(f"uniform {records}"), "uniform").words(records)
    values = below(GRID, words)
    return Data(
        "uniform on [0, 1]",
        "gini_mean_difference",
        (FieldText("x", "0", "1", f"1/{GRID}"),),
        {"x": values},
    )


def bank(records: int) -> Data:
    table, source = bank_table()
    return _numeric(table, source, "kendall_tau", records)


def jobs(records: int) -> Data:
    if BANK.exists():
        return _categories(read_csv(BANK, ";", ["job"]), "Bank data", records)
    return _categories(
        _made_up_labels(4521, 12), "A made-up table of the bank data's size", records
    )


def heart(records: int) -> Data:
    if HEART.exists():
        return _numeric(
            read_csv(HEART, ",", ["trestbps", "chol"]), "Heart data", "kendall_tau", records
        )
    rows = [(str(80 + (i * 7919) % 121), str((i * 104_729) % 604)) for i in range(HEART_RECORDS)]
    made_up = DemoTable(("trestbps", "chol"), rows)
    return _numeric(made_up, "A made-up table of the heart data's size", "kendall_tau", records)


def diagnosis(records: int) -> Data:
    """The diagnosis of the records that the paper keeps.

    These have blood pressure and cholesterol.
    """
    if not HEART.exists():
        return _categories(
            _made_up_labels(HEART_RECORDS, 5), "A made-up table of the heart data's size", records
        )
    table = read_csv(HEART, ",", ["trestbps", "chol", "num"])
    return _categories(DemoTable(("num",), [row[2:] for row in table.rows]), "Heart data", records)


def _made_up_labels(records: int, labels: int) -> DemoTable:
    return DemoTable(
        ("label",), [(str((i * 7919) % (labels * 5) % labels),) for i in range(records)]
    )


def _numeric(table: DemoTable, source: str, statistic: str, records: int) -> Data:
    fields = table.fields()
    columns = {
        field.name: np.array([int(float(row[place])) for row in table.rows], dtype=np.int64)
        for place, field in enumerate(fields)
    }
    return Data(source, statistic, fields, _part(columns, records))


def _categories(table: DemoTable, source: str, records: int) -> Data:
    (name,) = table.columns
    labels = sorted({row[0] for row in table.rows})
    values = np.array([labels.index(row[0]) for row in table.rows], dtype=np.int64)
    field = FieldText.of_categories(name, labels)
    return Data(source, "duplicate_pair_ratio", (field,), _part({name: values}, records))


def _part(columns: dict[str, np.ndarray], records: int) -> dict[str, np.ndarray]:
    size = len(next(iter(columns.values())))
    chosen = np.argsort(stream_of(seed_of(f"part {records}"), "part").words(size), kind="stable")[
        :records
    ]
    return {name: column[np.sort(chosen)] for name, column in columns.items()}


def pair_values(data: Data, edges: np.ndarray) -> np.ndarray:
    """The kernel's values on pairs of records: (pairs, 2) int64 → (pairs,) int64, in its units."""
    records: Sequence = [
        {name: column[edges[:, side]] for name, column in data.columns.items()} for side in (0, 1)
    ]
    return data.kernel.evaluate(records)
