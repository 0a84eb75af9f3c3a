"""A hypothetical attempt, for cost estimates: from a study and numbers of records.

*Expected edges.* The cells of a large sampled E without its edges, for predictions.

E is drawn from a seed that nobody has before the run. Each set of records is equally likely in it,
so a cell has |E| times its share of all sets, but for a few. A record in d edges meets no record of
a peer with about the probability (1 − p)^d, where p is the peer's part of a set's other records.
Both are the means over all seeds, so a large E is not drawn for a plan.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from umpc.crypto.prg import Stream
from umpc.crypto.signing import verify_nobody
from umpc.errors import ConfigError, LocalProtocolError, StudyError
from umpc.mpc.attempt import SharedAttempt
from umpc.planning.reference_table import ReferenceTable
from umpc.protocols.base.one_message import uniform_columns
from umpc.protocols.registry import attempt_of, protocol_of
from umpc.study.attempt import Attempt, commit, without
from umpc.study.document import Study
from umpc.study.sizes import ClassCounts, Member, Sizes
from umpc.ustat.cell_rows import Cell, Owners
from umpc.ustat.hypergraph import Hypergraph, expand, expand_two_sample


def reference_table_of(
    attempt: Attempt,
    file: Path | None,
    delimiter: str,
    missing: Sequence[str] = (),
    tell: Callable[[str], None] = lambda text: None,
) -> ReferenceTable:
    """A table like the sites' own: a file's records, clipped to the bounds, or uniform records.

    Args:
        file: a CSV file; None takes uniform records. delimiter: of the file.
        missing: words of the file that stand for no value, beside the usual ones.
        tell: told how many values were clipped, and how many records were left out.

    Raises: as `load_records`; ConfigError (no such file); NotNumeric.
    """
    study = attempt.study
    if file is None:
        records = attempt.sizes.records
        columns = uniform_columns(study, records, Stream(bytes(32)))
        if study.two_sample:
            is_second = np.arange(records) >= attempt.sizes.first_class
            columns[study.label] = is_second.astype(np.int64)
        return ReferenceTable.of(study, columns, attempt.counts, is_made_up=True)
    # It loads libraries that read files, which most plans do without.
    from umpc.node.records import load_records, require_numbers
    from umpc.node.table.source import TableSource

    fields = [field.schema() for field in study.fields]
    source = TableSource(file, delimiter)
    if missing:
        source = replace(source, missing=(*source.missing, *missing))
    if not file.is_file():
        raise ConfigError(
            f"--like {file}: a CSV or Parquet file was expected, and there is no such file. "
            "Correct the path"
        )
    loaded = load_records(source, fields, node=None, where=study.condition)
    table = require_numbers(loaded, table=file.name)
    for misfit in table.misfits:
        tell(f"{file.name}: {misfit}")
    if table.dropped:
        tell(f"{file.name}: {table.dropped} records with a missing value are left out")
    return ReferenceTable.of(study, table.columns, attempt.counts)


def attempt_over(study: Study, records: str) -> Attempt:
    """The attempt of a study over "300,300,200" records, with a joint seed of zeros.

    Where labels are public, each node has "first+second" records of the two classes:
    "180+120,150+150". Where nodes hold shares of one table, it is one number.

    Raises: StudyError where these are not as many numbers as nodes; TooFewRecords, RangeError and
    other errors, as a run over so many records raises them.
    """
    counts = [part.strip() for part in records.split(",")]
    pattern = "[0-9]+[+][0-9]+" if study.two_sample else "[0-9]+"
    is_shared = study.settings.shares_tables
    due = 1 if is_shared else len(study.nodes)
    if len(counts) != due or not all(re.fullmatch(pattern, part) for part in counts):
        where = "of people" if is_shared else f"per node, {due} here and separated by commas"
        raise StudyError(
            f"--records takes {_form(study)} {where}, and {records!r} came. Write it as "
            f"{_example(study, due)}"
        )
    counts *= len(study.nodes) // due
    opening = bytes(32)
    members = []
    for node, count in zip(study.nodes, counts, strict=True):
        parts = [int(part) for part in count.split("+")]
        first_class = parts[0] if study.two_sample else 0
        commitment = commit(study.hash, node.name, opening)
        members.append(Member(node.name, sum(parts), commitment, bytes(32), first_class))
    protocol_of(study).coordinator(study, verify_nobody).check_sizes(members)
    attempt = attempt_of(study, members, [opening] * len(members))
    if isinstance(attempt, SharedAttempt) and is_expected(attempt.sizes):
        attempt.hypergraph = expected_hypergraph(attempt.sizes, attempt.counts)
    return attempt


def worst_survivors(study: Study, records: str) -> tuple[Study, str] | None:
    """The study without the nodes of the most records that it may miss, which has the most noise.

    Args: records: as of `attempt_over`, which has checked them.
    Returns: the study, and the records of its nodes; None where no node may be missing.
    """
    if not study.most_missing:
        return None
    counts = {
        node.name: text.strip() for node, text in zip(study.nodes, records.split(","), strict=True)
    }

    def size(name: str) -> int:
        return sum(map(int, counts[name].split("+")))

    optional = [name for name in counts if name not in study.names_required]
    survivors = without(study, sorted(optional, key=size)[-study.most_missing :])
    return survivors, ",".join(counts[node.name] for node in survivors.nodes)


def _form(study: Study) -> str:
    """Return the form of one node's number of records, and what it counts."""
    if not study.two_sample:
        return "one number"
    first, second = study.schema[study.label].categories
    return f"FIRST+SECOND (the records with {study.label} = {first!r}, and those with {second!r})"


def _example(study: Study, due: int) -> str:
    """Return numbers of records that fit the study. Args: due: how many."""
    each = "180+120" if study.two_sample else "300"
    shown = ",".join([each] * min(due, 3))
    return shown + (",…" if due > 3 else "")


# --- expected edges -------------------------------------------------------------------------------

MOST_DRAWN = 1 << 16
"""A larger E is not drawn for a plan."""
LEAST_A_CELL = 256
"""The edges of a cell, on average, from which a cell's number is near its mean."""


@dataclass(frozen=True)
class ExpectedCell:
    """A cell of which only the number of edges is known. tables: each owner's records, by slot."""

    count: int
    tables: tuple[NDArray[np.int64], ...]

    def edges(self, start: int, stop: int) -> NDArray[np.int64]:
        """Raises: LocalProtocolError, because the cell has no edges."""
        raise LocalProtocolError("a planned cell has no edges")

    def records(self, slot: int) -> NDArray[np.int64]:
        return self.tables[slot]

    def occurrences(self, slot: int, records: int) -> NDArray[np.int64]:
        """Raises: LocalProtocolError, because the cell has no edges."""
        raise LocalProtocolError("a planned cell has no edges")


def is_expected(sizes: Sizes) -> bool:
    """Whether E is sampled, and too large to be drawn for a plan."""
    if not MOST_DRAWN < sizes.edges < sizes.sets:
        return False
    groups = int(sizes.holders**sizes.study.degree)
    return sizes.edges >= LEAST_A_CELL * groups


def expected_hypergraph(sizes: Sizes, classes: Sequence[ClassCounts]) -> Hypergraph:
    """The cells of a sampled E. Args: classes: each node's records of the two classes."""
    study = sizes.study
    if study.two_sample:
        every = expand_two_sample("all", classes, _no_words)
    else:
        every = expand("all", [sum(both) for both in classes], _no_words, study.degree)
    met = _Met(sizes, classes)
    cells: dict[Owners, Cell] = {}
    for owners, count in _shares(every, sizes.edges):
        tables = tuple(
            met.first(every.cells[owners].records(slot), slot, owners[slot], set(owners))
            for slot in range(len(owners))
        )
        cells[owners] = ExpectedCell(count, tables)
    counts = tuple(every.counts)
    if study.two_sample:
        return Hypergraph(counts, every.degree, sizes.edges, cells)
    return ExpectedHypergraph(counts, every.degree, sizes.edges, cells, met)


@dataclass(frozen=True)
class _Met:
    """The number of records that meet a peer's, in the mean over all E.

    classes: each node's records of the two classes.
    """

    sizes: Sizes
    classes: Sequence[ClassCounts]

    def first(
        self, records: NDArray[np.int64], slot: int, owner: int, owners: Iterable[int]
    ) -> NDArray[np.int64]:
        """The first of an owner's records, as many as meet a record of the largest other owner."""
        parts = [self._part(slot, peer) for peer in owners if peer != owner]
        missed = (1 - max(parts, default=1.0)) ** self._others(slot)
        return records[: ceil(len(records) * (1 - missed))]

    def _part(self, slot: int, peer: int) -> float:
        """A peer's part of the records that another record of a set is one of."""
        if self.sizes.study.two_sample:
            return self.classes[peer][1 - slot] / self.sizes.classes[1 - slot]
        return sum(self.classes[peer]) / (self.sizes.records - 1)

    def _others(self, slot: int) -> float:
        """How many other records a record is in an edge with, on average."""
        if self.sizes.study.two_sample:
            return self.sizes.edges / self.sizes.classes[slot]
        degree = self.sizes.study.degree
        return (degree - 1) * degree * self.sizes.edges / self.sizes.records


@dataclass(frozen=True)
class ExpectedHypergraph(Hypergraph):
    """A sampled E of which only numbers are known."""

    met: _Met

    def shared_records(self, node: int, other: int) -> NDArray[np.int64]:
        return self.met.first(np.arange(self.counts[node]), 0, node, (other,))


def _shares(every: Hypergraph, edges: int) -> Iterator[tuple[Owners, int]]:
    """Whole numbers of edges in proportion to the cells, which add up to all edges."""
    before, given = 0, 0
    for owners, cell in sorted(every.cells.items()):
        before += cell.count
        upto = round(Fraction(before * edges, every.edge_count))
        if upto > given:
            yield owners, upto - given
        given = upto


def _no_words(count: int) -> NDArray[np.uint64]:
    raise LocalProtocolError("a complete set of edges needs no words")
