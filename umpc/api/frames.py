"""Data frames of any library as tables that a node's own reader reads.

`narwhals` reads frames of pandas, polars, pyarrow, DuckDB and others, without importing them. A
dictionary of columns and a numpy array are read without it. `umpc/node/table/conversions.py` says
what each value becomes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from numbers import Real
from pathlib import Path
from typing import Any, TypeAlias
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from umpc.errors import DataError, UnknownField
from umpc.node.table.conversions import ColumnValues, Fetched, typed
from umpc.node.table.source import TableSource

FrameLike: TypeAlias = Any
"""A data frame, a dictionary of columns, or a numpy array."""
NARROW = {"float16": np.float32, "longdouble": np.float64}


def frame_table(frame: FrameLike, names: Sequence[str], site: str) -> TableSource:
    """Return these columns of a frame as a table.

    A numpy array without field names has its columns in the order of `names`.

    Args: site: the name of the site, for errors.
    Raises: DataError for an object that is no frame, for columns of different lengths, of one name,
        or of a type that is neither number nor boolean nor text; UnknownField for a column that
        does not exist.
    """
    if isinstance(frame, np.ndarray):
        found = _of_array(frame, names, site)
    elif isinstance(frame, Mapping):
        found = {name: frame[name] for name in names if name in frame}
    else:
        found = _of_frame(frame, names, site)
    for name in names:
        if name not in found:
            raise UnknownField(
                f"site {site!r}: a column {name!r} was expected, and the frame has none. Correct "
                f"the name, or the frame"
            )
    columns = {name: _values(found[name], name, site) for name in names}
    lengths = {
        name: len(each.texts if isinstance(each, Fetched) else each)
        for name, each in columns.items()
    }
    if len(set(lengths.values())) > 1:
        raise DataError(
            f"site {site!r}: columns of one length were expected, got {lengths}. Correct the frame"
        )
    return TableSource(Path(f"site {site!r}"), frame=columns)


def _values(values: Any, name: str, site: str) -> ColumnValues:
    """An array of numbers or booleans as it is, and all other values one by one."""
    is_array = isinstance(values, np.ndarray)
    array = values if is_array else np.array([*_listed(values, name, site), None], object)[:-1]
    if array.ndim != 1:
        raise DataError(
            f"site {site!r}: column {name!r} should have one dimension, got {array.ndim}"
        )
    if array.dtype.kind in "biuf":
        narrow = NARROW.get(array.dtype.name, array.dtype)
        return array.astype(narrow if array.dtype.itemsize in (1, 2, 4, 8) else np.float64)
    if array.dtype.kind not in "OUST":
        raise _refused(array.dtype.name, name, site)
    return typed([_plain(value, name, site) for value in array.tolist()])


def _listed(values: Any, name: str, site: str) -> list[Any]:
    """A column that is no numpy array, as a list of its values."""
    try:
        return [*values]
    except TypeError:
        raise DataError(
            f"site {site!r}: column {name!r} should be a sequence of values, and is of type "
            f"{type(values).__name__}. Correct the frame"
        ) from None


def _plain(value: Any, name: str, site: str) -> Any:
    """A value of a type that `typed` knows. Raises: DataError for any other type."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return None
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, bool | np.bool_ | int | float | np.number | Decimal | str | UUID):
        return value
    if isinstance(value, Real):  # such as a fraction
        return math.nan if value != value else float(value)
    raise _refused(type(value).__name__, name, site)


def _refused(kind: str, name: str, site: str) -> DataError:
    return DataError(
        f"site {site!r}: column {name!r} should hold numbers, booleans or texts, and holds {kind}. "
        "Convert it first"
    )


def _of_array(array: NDArray[Any], names: Sequence[str], site: str) -> dict[str, Any]:
    if array.dtype.names is not None:
        return {name: array[name] for name in names if name in array.dtype.names}
    if array.ndim != 2 or array.shape[1] != len(names):
        raise DataError(
            f"site {site!r}: an array of {len(names)} column(s), one for each of "
            f"{', '.join(names)}, was expected, got the shape {array.shape}"
        )
    return {name: array[:, place] for place, name in enumerate(names)}


def _of_frame(frame: FrameLike, names: Sequence[str], site: str) -> dict[str, Any]:
    import narwhals as nw  # only here, because it takes a while
    from narwhals.exceptions import DuplicateError

    try:
        native = nw.from_native(frame)
        if isinstance(native, nw.LazyFrame):
            present = [name for name in names if name in native.collect_schema().names()]
            native = native.select(present).collect()
        present = [name for name in names if name in native.columns]
        return {name: _of_series(native.get_column(name), name, site) for name in present}
    except TypeError as error:
        raise DataError(
            f"site {site!r}: a data frame, a dictionary of columns or a numpy array was expected, "
            f"got {type(frame).__name__}"
        ) from error
    except DuplicateError:
        raise DataError(
            f"site {site!r}: columns with different names were expected, and two columns of the "
            "frame have one name. Rename one of the two"
        ) from None


def _of_series(series: Any, name: str, site: str) -> Any:
    """A column's values: numbers as an array, everything else as a list."""
    kind = series.dtype
    if kind.is_temporal() or kind.is_nested():
        raise _refused(str(kind), name, site)
    is_number = kind.is_numeric() and not kind.is_decimal()
    if is_number and (kind.is_float() or not series.null_count()):
        return series.to_numpy()
    return series.to_list()
