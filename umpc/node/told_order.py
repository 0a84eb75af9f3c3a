"""The secret order of a node's records, written to a file for the demo that started the node.

A node numbers its records by an order that nobody else learns (`Records.numbered_anew`). A demo
holds all tables and computes its study over the same E in the clear, so it needs these orders. It
starts its own nodes with UMPC_ORDER_FILE set to a path. Without the variable, which is always so
outside a demo and tests, nothing is written. A node that starts with it says so on standard error.

The file tells a reader of the public E which records meet in it, so it is readable by its owner
only. It is never sent.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # `describe` is read at a start, before numpy is needed
    from umpc.mpc.arrays import IndexArray, IntArray

VARIABLE = "UMPC_ORDER_FILE"


def order_beside(table: Path) -> Path:
    """Return the place of the order of a demo's table."""
    return table.with_suffix(".order.npy")


def orders_told(tables: Iterable[Path]) -> dict[str, dict[str, str]]:
    """Return the environment of each node, by the name of its table, that makes it tell its order.

    For nodes that the caller starts for itself, over tables that are its own.
    """
    return {path.stem: {VARIABLE: str(order_beside(path))} for path in tables}


def tell_order(order: IndexArray) -> None:
    """Write the order of the latest attempt, if the environment names a file for it."""
    import numpy as np

    path = os.environ.get(VARIABLE)
    if not path:
        return
    ours = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(ours, "wb") as file:
        os.fchmod(ours, 0o600)  # a file that was there already keeps its rights otherwise
        np.save(file, order, allow_pickle=False)


def as_told(columns: Mapping[str, IntArray], table: Path) -> Mapping[str, IntArray]:
    """Return a table's columns, (records,) int64 each, in the order that its node told last."""
    import numpy as np

    place = order_beside(table)
    if not place.exists():
        return columns
    order = np.load(place, allow_pickle=False)
    return {name: column[order] for name, column in columns.items()}


def describe() -> str:
    """A sentence for the start of a node that writes its order; empty if it does not."""
    path = os.environ.get(VARIABLE)
    return f"{VARIABLE} is set: the order of the records is written to {path}" if path else ""
