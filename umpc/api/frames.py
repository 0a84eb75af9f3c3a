"""Data frames of any library as columns of plain values, without importing that library.

`narwhals` reads frames of pandas, polars, pyarrow, DuckDB and others. A dictionary of columns and a
numpy array are read without it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from umpc.errors import DataError, UnknownField

Values = NDArray[Any]
"""(records,) float64 with NaN where a value is missing, or object with texts and None."""
FrameLike: TypeAlias = Any
"""A data frame, a dictionary of columns, or a numpy array."""


def columns_of(frame: FrameLike, names: Sequence[str], site: str) -> dict[str, Values]:
    """These columns of a frame.

    A numpy array without field names has its columns in the order of `names`.

    Args: site: the name of the site, for errors.
    Raises: DataError for an object that is no frame, and for columns of different lengths;
        UnknownField for a column that does not exist.
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
    columns = {name: plain_values(found[name], name, site) for name in names}
    lengths = {name: len(values) for name, values in columns.items()}
    if len(set(lengths.values())) > 1:
        raise DataError(
            f"site {site!r}: columns of one length were expected, got {lengths}. Correct the frame"
        )
    return columns


def plain_values(values: Any, name: str, site: str) -> Values:
    """A column as float64 with NaN, or as texts with None. Raises: DataError."""
    array = np.ma.asarray(values) if isinstance(values, np.ma.MaskedArray) else np.asarray(values)
    if array.ndim != 1:
        raise DataError(
            f"site {site!r}: column {name!r} should have one dimension, got {array.ndim}"
        )
    if array.dtype.kind == "b":
        return np.where(array, "true", "false").astype(object)
    if array.dtype.kind in "iuf":
        filled = np.ma.filled(array.astype(np.float64), np.nan)
        return np.asarray(filled, dtype=np.float64)
    listed = [None if _is_missing(value) else value for value in array.tolist()]
    numbers = [value for value in listed if value is not None]
    if numbers and not any(isinstance(value, str | bytes | bool) for value in numbers):
        try:
            return np.array([np.nan if v is None else float(v) for v in listed])
        except (TypeError, ValueError):
            raise DataError(
                f"site {site!r}: column {name!r} should hold numbers or texts, and holds "
                f"{type(numbers[0]).__name__}. Convert it first"
            ) from None
    return np.array([None if value is None else _text(value) for value in listed], dtype=object)


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

    try:
        native = nw.from_native(frame)
    except TypeError as error:
        raise DataError(
            f"site {site!r}: a data frame, a dictionary of columns or a numpy array was expected, "
            f"got {type(frame).__name__}"
        ) from error
    if isinstance(native, nw.LazyFrame):
        present = [name for name in names if name in native.collect_schema().names()]
        native = native.select(present).collect()
    present = [name for name in names if name in native.columns]
    return {name: _of_series(native.get_column(name)) for name in present}


def _of_series(series: Any) -> Any:
    """A column's values: numbers as an array, everything else as a list."""
    if series.dtype.is_numeric() and not series.dtype.is_decimal():
        return series.to_numpy()
    return np.array(series.to_list(), dtype=object)


def _is_missing(value: Any) -> bool:
    """Whether a value is None, NaN, or a library's own mark of a missing value."""
    return value is None or value != value or type(value).__name__ in ("NAType", "NaTType")


def _text(value: Any) -> str:
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    return value.decode("utf-8") if isinstance(value, bytes) else str(value).strip()
