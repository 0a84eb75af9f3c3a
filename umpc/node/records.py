"""A site's table, read into the integers that the study computes with.

Only the study's columns are read.
A row that lacks one of them is dropped. Every other row counts, whatever it holds:

| a value | counts as |
|---|---|
| beyond its field's bounds, also infinite | the nearer bound |
| between two steps of its field's resolution | the nearest step, half to even |
| text or NaN, where a number was expected | the lower bound |
| a word that is none of the field's categories | the last category |

Whether a value is missing depends on the table and on the administrator's `missing`, and on nothing
that a study says. Otherwise a coordinator could choose bounds or categories, and read a count of
values from the number of complete records.

A study may have a condition (`where`). Then the complete records for which it holds count, and no
others. The condition sees values as this table has them: after bounds, steps and categories. Where
a study protects people, a row without a person is dropped, and of each person's records that are
left the first few count, as many as the study says.

*Reveals*: the number of records that are left, and whether the file can
be read and has the study's columns. The message of an error may travel to the coordinator. It names
the node and the field, and never a value, a count, a row or a file. Counts, rows and the file are
in `Records.misfits` and in the error's `detail`, which only this site's administrator reads. No
number of a record is in either.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from umpc.crypto.prg import SEED_BYTES, Stream
from umpc.errors import EmptyTable, NotNumeric
from umpc.node.reading_progress import ReadingProgress
from umpc.node.table.batch import Batch
from umpc.node.table.fingerprint import Cohort, CohortHash, selection_of
from umpc.node.table.given_up import check_waited_for
from umpc.node.table.people import PeopleSoFar, Places
from umpc.node.table.source import OwnersTable, TableSite, TableSource
from umpc.node.table.units import (
    FieldUnits,
    Misfit,
    MisfitFinder,
    check_resolution,
    narrowest,
    to_units,
)
from umpc.study.parts import Person
from umpc.ustat.condition import Condition
from umpc.ustat.schema import FieldSchema
from umpc.ustat.words import secret_order

__all__ = ["Misfit", "Records", "TableSource", "load_records", "require_numbers"]


@dataclass(frozen=True)
class Records:
    """A node's records.

    `columns[name]` is (count,) int64: value / resolution, rounded half to even. `misfits` has one
    entry for each field with values that count as something else. `cohort` has hashes of the
    values, for the site's ledger alone.
    """

    columns: dict[str, NDArray[np.int64]] = field(repr=False)
    count: int
    dropped: int = field(repr=False)
    misfits: tuple[Misfit, ...] = field(default=(), repr=False)
    cohort: Cohort | None = field(default=None, repr=False)

    def numbered_anew(
        self,
        entropy: Callable[[int], bytes],
        tell: Callable[[NDArray[np.int64]], None] | None = None,
    ) -> Records:
        """Return the same records in an order that is uniformly random and secret.

        Each proof of privacy replaces one record and leaves every other in its place. A table need
        not do so: where it is sorted, one new value moves all records behind it, and each of them
        would meet other partners. After this the order says nothing, so only the values count.

        Args:
            entropy: number of bytes → that many uniform bytes, of this node alone.
            tell: takes the order, which must not leave this site (`told_order.py`).
        """
        order = secret_order(self.count, Stream(entropy(SEED_BYTES)).words)
        if tell is not None:
            tell(order)
        return replace(self, columns={name: each[order] for name, each in self.columns.items()})


def load_records(
    source: TableSource,
    fields: Sequence[FieldSchema],
    *,
    node: str | None,
    where: Condition | None = None,
    person: Person | None = None,
    progress: Path | None = None,
) -> Records:
    """Read the study's fields of every complete row, as integers in units of the resolution.

    Args:
        node: the name in errors; None where the table's owner runs a command, whose errors name
            the file and all that is known.
        where: a condition; records for which it does not hold are left out.
        person: at most so many records of one person count, the first ones that are left.
        progress: the file that says how far a long reading is (`reading_progress.py`).
    Returns: Records in the table's order, with lower_units <= column <= upper_units. The count is 0
        if every row is dropped.
    Raises: ConfigError (no such file), DataError (unreadable, other format), EmptyTable,
        UnknownField, RangeError (resolution beyond a double). None of them depends on a value.
    """
    site = OwnersTable("", source.path) if node is None else TableSite(node, source.path)
    for schema in fields:
        check_resolution(schema, site)
    gathered = _Gathered(source, fields, where, person)
    column = person.column if person else None
    from umpc.node.table.reading import read_batches  # DuckDB: not every process reads a table

    with ReadingProgress(progress) as reading:
        for batch in read_batches(source, fields, site, column):
            check_waited_for()
            gathered.add(batch)
            reading.tell(gathered.rows)
    if not gathered.rows:
        raise site.error(
            EmptyTable,
            "the table has a header and no rows; at least one row was expected. "
            "Put the records into the file, or correct path under [data]",
        )
    return gathered.records()


class _Gathered:
    """The records of the batches so far, in the narrowest types that hold the fields' bounds."""

    def __init__(
        self,
        source: TableSource,
        fields: Sequence[FieldSchema],
        where: Condition | None,
        person: Person | None,
    ):
        self.rows = 0
        self._fields, self._where, self._person = fields, where, person
        self._dropped = 0
        self._count = 0
        self._people = PeopleSoFar()
        self._parts: dict[str, list[NDArray[Any]]] = {schema.name: [] for schema in fields}
        self._misfits = {schema.name: MisfitFinder(schema, source) for schema in fields}
        self._cohort = CohortHash(fields)

    def add(self, batch: Batch) -> None:
        """Add the complete records of a batch that the study asks for."""
        rows = np.flatnonzero(batch.present)
        first = self.rows + 1
        self.rows += len(batch.present)
        self._dropped += len(batch.present) - len(rows)
        values = batch.values
        if len(rows) < len(batch.present):
            values = {name: each.take(rows) for name, each in values.items()}
        found = {
            schema.name: to_units(values[schema.name].numbers, schema) for schema in self._fields
        }
        kept = self._kept(batch, rows, found)
        if len(kept) < len(rows):
            rows = rows[kept]
            values = {name: each.take(kept) for name, each in values.items()}
            found = {name: each.take(kept) for name, each in found.items()}
        for schema in self._fields:
            name = schema.name
            self._misfits[name].add(found[name], values[name].marks, rows + first)
            self._parts[name].append(found[name].units.astype(narrowest(schema)))
        self._cohort.add(values, len(rows))
        self._count += len(rows)

    def _kept(self, batch: Batch, rows: Places, found: dict[str, FieldUnits]) -> Places:
        """Return which of the complete records the condition and the limit for people leave."""
        kept = np.arange(len(rows))
        if self._where is not None:
            kept = kept[self._where.holds({name: each.units for name, each in found.items()})]
        if self._person is not None:
            places = self._people.places(batch.persons[rows[kept]])
            kept = kept[places < self._person.records]
        return kept

    def records(self) -> Records:
        """Return all records. The parts of each column are dropped as soon as it is joined."""
        columns = {
            name: np.concatenate(self._parts.pop(name), dtype=np.int64) for name in [*self._parts]
        }
        misfits = tuple(each.misfit for each in self._misfits.values() if each.misfit)
        cohort = self._cohort.cohort(selection_of(self._fields, self._where, self._person))
        return Records(columns, self._count, self._dropped, misfits, cohort)


def require_numbers(records: Records, *, table: str) -> Records:
    """Return the records, if none of their values counts as a number that it is not.

    This is for commands of the table's own owner. A node must not ask: its answer would tell.
    Args: table: the name in errors.
    Raises: NotNumeric.
    """
    for misfit in records.misfits:
        if len(misfit.unknown):
            raise NotNumeric(f"{table}: {misfit}. Correct the table, or name the word as missing")
    return records
