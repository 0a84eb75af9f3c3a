"""The cells of a large sampled E without its edges, for predictions.

E is drawn from a seed that nobody has before the run. Each set of records is equally likely in it,
so a cell has |E| times its share of all sets, but for a few. A large E is not drawn for a plan.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from umpc.errors import LocalProtocolError
from umpc.study.sizes import ClassCounts, Sizes
from umpc.ustat.hypergraph import Cell, Hypergraph, Owners, expand, expand_two_sample

MOST_DRAWN = 1 << 21
"""A larger E is not drawn for a plan."""
LEAST_DEGREE = 128
"""A record in so many edges meets records of every node, but for a few."""


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
    return MOST_DRAWN < sizes.edges < sizes.sets and sizes.max_degree >= LEAST_DEGREE


def expected_hypergraph(sizes: Sizes, classes: Sequence[ClassCounts]) -> Hypergraph:
    """The cells of a sampled E. Args: classes: each node's records of the two classes."""
    study = sizes.study
    if study.two_sample:
        every = expand_two_sample("all", classes, _no_words)
    else:
        every = expand("all", [sum(both) for both in classes], _no_words, study.degree)
    cells: dict[Owners, Cell] = {}
    for owners, count in _shares(every, sizes.edges):
        tables = tuple(every.cells[owners].records(slot) for slot in range(len(owners)))
        cells[owners] = ExpectedCell(count, tables)
    return Hypergraph(every.counts, every.degree, sizes.edges, cells)


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
