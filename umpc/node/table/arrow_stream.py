"""The rows of a query in DuckDB, batch by batch, as numpy arrays.

DuckDB hands rows on through Arrow's C stream interface, which is a structure in memory: no library
of Arrow is needed. A batch is computed when it is asked for, and its memory is given back before
the next one, so a table of any length takes the memory of one batch here.

*Paper*: Apache Arrow, "The Arrow C data interface" and "The Arrow C stream interface".
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import duckdb
import numpy as np
from numpy.typing import NDArray

from umpc.node.table.batch import DIGEST_BYTES

KINDS: dict[bytes, np.dtype[Any]] = {
    b"g": np.dtype(np.float64),
    b"C": np.dtype(np.uint8),
    b"u": np.dtype(object),
    b"z": np.dtype(f"S{DIGEST_BYTES}"),
}
"""Arrow's formats that a query may have → what a column of them becomes."""


class _Array(ctypes.Structure):
    """ArrowArray: a batch, or one column of it."""


_Array._fields_ = [
    ("length", ctypes.c_int64),
    ("null_count", ctypes.c_int64),
    ("offset", ctypes.c_int64),
    ("n_buffers", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("buffers", ctypes.POINTER(ctypes.c_void_p)),
    ("children", ctypes.POINTER(ctypes.POINTER(_Array))),
    ("dictionary", ctypes.c_void_p),
    ("release", ctypes.CFUNCTYPE(None, ctypes.POINTER(_Array))),
    ("private_data", ctypes.c_void_p),
]


class _Schema(ctypes.Structure):
    """ArrowSchema: the name and the format of a column."""


_Schema._fields_ = [
    ("format", ctypes.c_char_p),
    ("name", ctypes.c_char_p),
    ("metadata", ctypes.c_void_p),
    ("flags", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("children", ctypes.POINTER(ctypes.POINTER(_Schema))),
    ("dictionary", ctypes.c_void_p),
    ("release", ctypes.CFUNCTYPE(None, ctypes.POINTER(_Schema))),
    ("private_data", ctypes.c_void_p),
]


class _Stream(ctypes.Structure):
    """ArrowArrayStream. Its functions release the interpreter's lock while they compute."""


_Stream._fields_ = [
    ("get_schema", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(_Stream), ctypes.c_void_p)),
    ("get_next", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(_Stream), ctypes.c_void_p)),
    ("get_last_error", ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.POINTER(_Stream))),
    ("release", ctypes.CFUNCTYPE(None, ctypes.POINTER(_Stream))),
    ("private_data", ctypes.c_void_p),
]

_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype = ctypes.c_void_p
_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]


def batches(relation: duckdb.DuckDBPyRelation) -> Iterator[dict[str, NDArray[Any]]]:
    """Yield the rows of a query as columns: name → array of the batch's own.

    Args: relation: columns of DOUBLE, UTINYINT, VARCHAR, and BLOB of DIGEST_BYTES each, in which
    no value is NULL, but texts may be, which are then empty.
    Raises: duckdb.Error where the query fails, also in the middle.
    """
    capsule = relation.__arrow_c_stream__()  # owns the stream
    stream = _Stream.from_address(_pointer(capsule, b"arrow_array_stream"))
    columns = _columns(stream)
    while True:
        batch = _Array()
        _call(stream, stream.get_next, batch)
        if not batch.release:
            return
        try:
            found = {
                name: _copied(batch.children[place].contents, kind)
                for place, (name, kind) in enumerate(columns)
            }
        finally:
            batch.release(ctypes.byref(batch))
        yield found


def _columns(stream: _Stream) -> Sequence[tuple[str, np.dtype[Any]]]:
    """Return the names and types of the columns."""
    schema = _Schema()
    _call(stream, stream.get_schema, schema)
    try:
        children = [schema.children[place].contents for place in range(schema.n_children)]
        return [(each.name.decode(), KINDS[each.format]) for each in children]
    finally:
        schema.release(ctypes.byref(schema))


def _call(stream: _Stream, function: Any, out: ctypes.Structure) -> None:
    """Call a function of the stream. Raises: duckdb.Error with DuckDB's own text."""
    if function(ctypes.byref(stream), ctypes.addressof(out)):
        said: bytes = stream.get_last_error(ctypes.byref(stream)) or b""
        raise duckdb.InvalidInputException(said.decode("utf-8", "replace"))


def _copied(column: _Array, kind: np.dtype[Any]) -> NDArray[Any]:
    """Return the values of a column, which outlive its buffers."""
    rows, start = column.length, column.offset
    if not rows:
        return np.empty(0, kind)
    if kind.hasobject:
        return _texts(column)
    if kind.char == "S":
        return _digests(column, kind)
    values = _view(column.buffers[1], (start + rows) * kind.itemsize).view(kind)
    return values[start:].copy()


def _texts(column: _Array) -> NDArray[np.object_]:
    """Return a column of texts, whose buffers are offsets and all bytes."""
    rows, start = column.length, column.offset
    offsets = _view(column.buffers[1], (start + rows + 1) * 4).view(np.int32)[start:].tolist()
    data = ctypes.string_at(column.buffers[2], offsets[-1]) if offsets[-1] else b""
    found = np.empty(rows, object)
    found[:] = [data[low:high].decode() for low, high in pairwise(offsets)]
    return found


def _digests(column: _Array, kind: np.dtype[Any]) -> NDArray[Any]:
    """Return a column of bytes, all of one length, so that their offsets say nothing more."""
    rows, start = column.length, column.offset
    first = _view(column.buffers[1], (start + 1) * 4).view(np.int32)[start]
    return _view(column.buffers[2] + int(first), rows * kind.itemsize).view(kind).copy()


def _view(address: int, size: int) -> NDArray[np.uint8]:
    memory = (ctypes.c_uint8 * size).from_address(address)
    return np.frombuffer(memoryview(memory), np.uint8)
