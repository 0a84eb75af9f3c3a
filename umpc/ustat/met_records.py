"""The records of one node that each other node meets, for all other nodes at once.

Among many nodes each pair shares a few edges, so one look at all of them takes the place of many.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from umpc.ustat.cell_rows import ListedCells

Records = NDArray[np.int64]
MANY_EDGES = 1 << 18
"""A larger E has no such tables: those of all its nodes take up to 32 bytes for each edge."""
NONE = np.empty(0, dtype=np.int64)


class MetRecords:
    """The records in the edges that one node shares with others.

    Args:
        own: other node → the records of this node in an edge with one of the other, ascending.
        theirs: other node → its records in an edge with one of this node, ascending.
    """

    def __init__(self, own: Mapping[int, Records], theirs: Mapping[int, Records]):
        self._own = own
        self._theirs = theirs
        self.nodes = tuple(own)
        """The other nodes, ascending."""

    @classmethod
    def of(cls, cells: ListedCells, node: int) -> MetRecords:
        """Look through the cells that a node shares with others."""
        rows = cells.rows.shared_of_node(node)
        owners = np.repeat(cells.rows.owners[rows], cells.rows.counts[rows], axis=0).T
        records = cells.edges_of(rows)
        size = int(records.max(initial=0)) + 1
        own, theirs = [], []
        for here, slot in enumerate(owners):
            for there, other in enumerate(owners):
                met = ((slot == node) & (other != node)).nonzero()[0]
                own.append(other[met] * size + records[here, met])
                theirs.append(other[met] * size + records[there, met])
        ends = (_by_node(np.concatenate(each), size) for each in (own, theirs))
        return cls(*ends)

    def own(self, other: int) -> Records:
        """The records of this node that another node meets."""
        return self._own.get(other, NONE)

    def theirs(self, other: int) -> Records:
        """The records of another node that this node meets."""
        return self._theirs.get(other, NONE)


def _by_node(met: Records, size: int) -> dict[int, Records]:
    """node · size + record, in any order and repeated → node → its records, ascending."""
    nodes, records = np.divmod(np.unique(met), size)
    starts = np.flatnonzero(np.diff(nodes, prepend=-1))
    parts = np.split(records, starts[1:])
    return dict(zip(nodes[starts].tolist(), parts, strict=False))
