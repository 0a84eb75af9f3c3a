"""The tables of Sinh & Ramon 2025, section 6, each with the kernel that is averaged over its pairs.

`given.py` says where bank and heart data come from. The bounds are those of the tables themselves.
The paper normalises its columns to [0, 1], which is equivalent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import isqrt

import numpy as np

from reproduction.figures.draws import seed_of, stream_of
from reproduction.figures.given import bank_table, heart_table
from umpc.cli.table import DemoTable
from umpc.study.parts import FieldText
from umpc.ustat.kernel import Kernel
from umpc.ustat.sampling import below
from umpc.ustat.schema import Schema
from umpc.ustat.statistics import find_statistic
from umpc_papers.local.quantisation import Bins, Quantiser

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
    return _numeric(*bank_table(["age", "balance"]), "kendall_tau", records)


def jobs(records: int) -> Data:
    return _categories(*bank_table(["job"]), records)


def heart(records: int) -> Data:
    return _numeric(*heart_table(["trestbps", "chol"]), "kendall_tau", records)


def diagnosis(records: int) -> Data:
    """The diagnosis of the records that the paper keeps.

    These have blood pressure and cholesterol.
    """
    return _categories(*heart_table(["num"]), records)


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
