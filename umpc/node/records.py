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

*People.* Records of the same person: each record's place among them, so that only the first ones
count.

*Reading progress.* How far a long reading of a table is: in the log, and in a file for `umpc node
status`.

The file `<ledger>.reading` is there while a table is read that takes longer than a few seconds. It
has the number of rows so far, and the seconds since the reading began. Only the node's user may
read it. A file that a dead process left behind is older than a running one would let it be, and
says nothing.
"""

from __future__ import annotations

import logging
import re
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from hashlib import sha256
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from umpc.crypto.prg import SEED_BYTES, Stream
from umpc.errors import EmptyTable, NotNumeric
from umpc.node.table.batch import DIGEST_BYTES, Batch, Places, Values
from umpc.node.table.fingerprint import Cohort, CohortHash, selection_of
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
from umpc.transport.files import write_durably
from umpc.transport.patience import check_waited_for
from umpc.ustat.condition import Condition
from umpc.ustat.schema import FieldSchema
from umpc.ustat.text import secret_order


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
    persons: str = "",
) -> Records:
    """Read the study's fields of every complete row, as integers in units of the resolution.

    Args:
        node: the name in errors; None where the table's owner runs a command, whose errors name
            the file and all that is known.
        where: a condition; records for which it does not hold are left out.
        person: at most so many records of one person count, the first ones that are left.
        progress: the file that says how far a long reading is.
        persons: the name of a further column, (count,) text, each record's person.
    Returns: Records in the table's order, with lower_units <= column <= upper_units. The count is 0
        if every row is dropped.
    Raises: ConfigError (no such file), DataError (unreadable, other format), EmptyTable,
        UnknownField, RangeError (resolution beyond a double). None of them depends on a value.
    """
    site = OwnersTable("", source.path) if node is None else TableSite(node, source.path)
    for schema in fields:
        check_resolution(schema, site)
    gathered = _Gathered(source, fields, where, person, persons)
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
        persons: str,
    ):
        self.rows = 0
        self._persons, self._texts = persons, list[NDArray[np.object_]]()
        self._fields, self._where, self._person = fields, where, person
        self._dropped = 0
        self._count = 0
        self._people = PeopleSoFar()
        self._parts: dict[str, list[NDArray[Any]]] = {schema.name: [] for schema in fields}
        self._misfits = {schema.name: MisfitFinder(schema, source) for schema in fields}
        hashed = [*fields, _words_of(persons)] if persons else fields
        self._hashed, self._cohort = hashed, CohortHash(hashed)

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
        if self._persons:
            texts = batch.persons[rows]
            self._texts.append(texts)
            values = {**values, self._persons: _hashes_of(texts)}
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
        if self._persons:
            columns[self._persons] = np.concatenate(self._texts)
        misfits = tuple(each.misfit for each in self._misfits.values() if each.misfit)
        cohort = self._cohort.cohort(selection_of(self._hashed, self._where, self._person))
        return Records(columns, self._count, self._dropped, misfits, cohort)


def _words_of(persons: str) -> FieldSchema:
    """The column of people as the fingerprint has it: a field of words, of which none is listed."""
    return FieldSchema(persons, Fraction(0), Fraction(0), Fraction(1), ("",))


def _hashes_of(texts: NDArray[np.object_]) -> Values:
    """The people's texts as a fingerprint takes them: the digest of each, and no number."""
    digests = [sha256(each.encode()).digest() for each in texts]
    nothing = np.zeros(len(texts))
    return Values(nothing, nothing.astype(np.uint8), np.array(digests, f"S{DIGEST_BYTES}"))


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


# --- people ---------------------------------------------------------------------------------------


class PeopleSoFar:
    """The records of each person in the batches so far."""

    def __init__(self) -> None:
        self._places: defaultdict[str, Iterator[int]] = defaultdict(count)

    def places(self, persons: NDArray[np.object_]) -> Places:
        """Return each record's place among the records of its person, from 0, in the table's order.

        The batches before count. A place depends on that person's own records alone, so another
        person's records change none.

        Args: persons: (records,) text that tells people apart.
        """
        found = (next(self._places[person]) for person in persons)
        return np.fromiter(found, np.int64, len(persons))


# --- reading progress -----------------------------------------------------------------------------

log = logging.getLogger("umpc.node")

PROGRESS_SECONDS = 5
"""Seconds between two tellings."""
FORGOTTEN_SECONDS = 12 * PROGRESS_SECONDS
"""Age of a file from which on nobody seems to read any more."""
LINE = re.compile(r"([0-9]{1,20}) rows, ([0-9]{1,20}) s\n")


def reading_beside(ledger: Path) -> Path:
    """Return the path of the file that belongs to a ledger."""
    return Path(f"{ledger}.reading")


def rows_so_far(path: Path) -> tuple[int, int] | None:
    """Return the rows of a reading that goes on and its seconds; None where none does."""
    try:
        age = time.time() - path.stat().st_mtime
        found = LINE.fullmatch(path.read_text(encoding="ascii"))
    except (OSError, UnicodeDecodeError):
        return None
    return (int(found[1]), int(found[2])) if found and age < FORGOTTEN_SECONDS else None


class ReadingProgress:
    """One reading. Use it as a context. Args: path: of the file; None for the log alone."""

    def __init__(self, path: Path | None):
        self._path = path
        self._began = time.monotonic()
        self._next = self._began + PROGRESS_SECONDS
        self._has_told = False

    def __enter__(self) -> ReadingProgress:
        return self

    def tell(self, rows: int) -> None:
        """Tell the rows so far, every few seconds, to the administrator only."""
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + PROGRESS_SECONDS
        self._has_told = True
        log.info("for the administrator only: %d rows of the table are read", rows)
        if self._path is not None:
            try:
                line = f"{rows} rows, {now - self._began:.0f} s\n"
                write_durably(self._path, line.encode())
            except OSError as error:  # a study does not fail by what only informs
                log.info("%s: %s", self._path, error.strerror)

    def __exit__(self, *_: object) -> None:
        if self._path is not None and self._has_told:
            with suppress(OSError):
                self._path.unlink(missing_ok=True)
