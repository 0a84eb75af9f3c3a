"""The study's fields of all rows of a table, read with DuckDB: as numbers, or as texts.

*Arrow stream.* The rows of a query in DuckDB, batch by batch, as numpy arrays.

DuckDB hands rows on through Arrow's C stream interface, which is a structure in memory: no library
of Arrow is needed. A batch is computed when it is asked for, and its memory is given back before
the next one, so a table of any length takes the memory of one batch here.

*Paper*: Apache Arrow, "The Arrow C data interface" and "The Arrow C stream interface".
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import duckdb
import numpy as np
from numpy.typing import NDArray

from umpc.errors import ConfigError, StudyError
from umpc.node.table.batch import DIGEST_BYTES, Batch, Floats, ReadColumn, Values
from umpc.node.table.columns import open_table, staged_query
from umpc.node.table.conversions import Column, normal
from umpc.node.table.source import TableSite, TableSource
from umpc.ustat.schema import FieldSchema, check_words


def read_batches(
    source: TableSource, fields: Sequence[FieldSchema], site: TableSite, person: str | None = None
) -> Iterator[Batch]:
    """Read the fields of all rows, some rows at a time.

    Args: person: the column that tells people apart, whose texts are read too.
    Raises: as `open_table`; UnknownField; ConfigError where a category marks a missing value.
    """
    for schema in fields:
        check_categories(schema.name, schema.categories, source, site)
    wanted = [*(each.name for each in fields), *([person] if person is not None else [])]
    with open_table(source, site, wanted) as (connection, table):
        columns = [table.column(name, site) for name in wanted]
        labels = {
            f"categories{i}": [*map(normal, schema.categories)]
            for i, schema in enumerate(fields)
            if schema.categories
        }
        query = _batch_query(source, fields, columns, table.relation)
        parameters = {**table.parameters, **labels, **word_lists(source)}
        for found in batches(connection.sql(query, params=parameters)):
            values = {
                schema.name: Values(found[f"v{i}"], found[f"m{i}"], found.get(f"d{i}"))
                for i, schema in enumerate(fields)
            }
            nobody = np.empty(0, dtype=object)
            yield Batch(found["present"].view(bool), values, found.get("person", nobody))


def check_categories(
    name: str, categories: Sequence[str], source: TableSource, site: TableSite
) -> None:
    """Refuse a category that marks a missing value, unless the administrator has listed the marks.

    Raises: StudyError for a category with blanks at its ends; ConfigError. Both depend on the study
    and on [data], and on no value.
    """
    try:
        check_words(name, categories)
    except StudyError as error:
        raise site.error(StudyError, error.message) from None
    if source.states_missing:
        return
    for category in categories:
        if category in source.missing:
            raise site.error(
                ConfigError,
                f"field {name!r}: the study's category {category!r} marks a missing value at this "
                "site, where missing under [data] is not set. Correct it there: write missing = "
                f'[""] if {category!r} is a category in the table, or missing = ["", "{category}"] '
                "if it is none",
            )


def _batch_query(
    source: TableSource, fields: Sequence[FieldSchema], columns: Sequence[Column], relation: str
) -> str:
    """Return the statement of a batch's columns; one column beyond the fields is the person's.

    Levels upon `staged_query`: numbers and places; marks of values that are neither.
    """
    words = [i for i in range(len(columns)) if i >= len(fields) or fields[i].categories]
    inner = staged_query(columns, relation, source, words, USES_ALL)
    second, third = [], []
    for i, column in enumerate(columns):
        second += [f"t{i}", f"{_is_there(column, source, i, i in words)} AS k{i}"]
        if i >= len(fields):
            third += [f"coalesce(t{i}, '') AS person"]
            continue
        number = column.number_of(f"t{i}", f"n{i}")
        if fields[i].categories:
            number = f"nullif(list_position($categories{i}, t{i}), 0)::DOUBLE - 1"
        second += [f"{number} AS v{i}"]
        mark = f"CASE WHEN v{i} IS NULL THEN list_position($marks, t{i}) END"
        mark = "0::UTINYINT" if column.raw else f"coalesce({mark}, 0)::UTINYINT"
        third += [f"coalesce(v{i}, 'nan'::DOUBLE) AS v{i}", f"{mark} AS m{i}"]
        if fields[i].categories:
            # of every word, so that a clock does not see how many words a study lists
            third += [f"encode(md5(coalesce(t{i}, ''))) AS d{i}"]
    known = ["true", *(f"k{i}" for i in range(len(columns)))]
    third += [f"coalesce({' AND '.join(known)}, false)::UTINYINT AS present"]
    return f"SELECT {', '.join(third)} FROM (SELECT {', '.join(second) or '*'} FROM ({inner}))"


def _is_there(column: Column, source: TableSource, place: int, has_text: bool = True) -> str:
    """Return the expression of whether a value is there and is no word for a missing one."""
    known = f"k{place}" if column.known else f"t{place} IS NOT NULL"
    if not (has_text or column.may_be(source.missing)):
        return known
    return f"({known} AND NOT coalesce(list_contains($missing, t{place}), false))"


def read_columns(
    source: TableSource,
    names: Sequence[str],
    site: TableSite,
    categories: Mapping[str, Sequence[str]] | None = None,
) -> dict[str, ReadColumn]:
    """Read these columns of all rows, by the expressions of a study's reading.

    Args: categories: of the columns that have any.
    Raises: as `open_table`; UnknownField; ConfigError where a category marks a missing value.
    """
    labels = dict(categories or {})
    for name, own in labels.items():
        check_categories(name, own, source, site)
    with open_table(source, site, names) as (connection, table):
        columns = [table.column(name, site) for name in names]
        inner = staged_query(columns, table.relation, source, range(len(columns)), USES_ALL)
        chosen = []
        for i, (name, column) in enumerate(zip(names, columns, strict=True)):
            number = column.number_of(f"t{i}", f"n{i}")
            if name in labels:
                number = f"nullif(list_position($categories{i}, t{i}), 0)::DOUBLE - 1"
            there = f"coalesce({_is_there(column, source, i)}, false)"
            chosen += [f"CASE WHEN {there} THEN t{i} END AS t{i}"]
            chosen += [f"coalesce(CASE WHEN {there} THEN {number} END, 'nan'::DOUBLE) AS v{i}"]
        of_places = {
            f"categories{i}": [*map(normal, labels[name])]
            for i, name in enumerate(names)
            if name in labels
        }
        parameters = {**table.parameters, **word_lists(source), **of_places}
        query = f"SELECT {', '.join(chosen) or '*'} FROM ({inner})"
        found = connection.execute(query, parameters).fetchnumpy()
    return {name: _read(found[f"t{i}"], found[f"v{i}"]) for i, name in enumerate(names)}


def _read(texts: NDArray[np.object_], numbers: Floats) -> ReadColumn:
    own = np.ma.getdata(texts).astype(object)
    own[np.ma.getmaskarray(texts)] = None
    return ReadColumn(own, np.ma.getdata(numbers))


USES_ALL = "len($missing::VARCHAR[]) >= 0 AND len($marks::VARCHAR[]) >= 0"
"""A condition that holds. DuckDB wants every parameter used, so it has the lists of words."""


def word_lists(source: TableSource) -> dict[str, list[str]]:
    """Return the parameters of a reading: words for missing values, each also in normal form."""
    missing = [form for word in source.missing for form in (word, normal(word))]
    return {"missing": [*dict.fromkeys(missing)], "marks": [*source.unlisted_marks()]}


# --- arrow stream ---------------------------------------------------------------------------------

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


class _Arrow(ctypes.Structure):
    """ArrowArrayStream. Its functions release the interpreter's lock while they compute."""


_Arrow._fields_ = [
    ("get_schema", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(_Arrow), ctypes.c_void_p)),
    ("get_next", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(_Arrow), ctypes.c_void_p)),
    ("get_last_error", ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.POINTER(_Arrow))),
    ("release", ctypes.CFUNCTYPE(None, ctypes.POINTER(_Arrow))),
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
    stream = _Arrow.from_address(_pointer(capsule, b"arrow_array_stream"))
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


def _columns(stream: _Arrow) -> Sequence[tuple[str, np.dtype[Any]]]:
    """Return the names and types of the columns."""
    schema = _Schema()
    _call(stream, stream.get_schema, schema)
    try:
        children = [schema.children[place].contents for place in range(schema.n_children)]
        return [(each.name.decode(), KINDS[each.format]) for each in children]
    finally:
        schema.release(ctypes.byref(schema))


def _call(stream: _Arrow, function: Any, out: ctypes.Structure) -> None:
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
