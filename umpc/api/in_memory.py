"""`umpc.estimate`: a private statistic over data frames, by the real protocol in one process.

Data frames of any library as tables that a node's own reader reads.

`narwhals` reads frames of pandas, polars, pyarrow, DuckDB and others, without importing them. A
dictionary of columns and a numpy array are read without it. `umpc/node/table/conversions.py` says
what each value becomes.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from numbers import Real
from pathlib import Path
from typing import Any, TypeAlias
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from umpc.api.entries import (
    NOWHERE,
    Asked,
    PythonKernel,
    columns_asked,
    helper_entries,
    label_classes,
    plain,
    study_entries,
    study_file,
)
from umpc.api.fields import (
    Bounds,
    Label,
    checked_label,
    columns_at,
    fields_of,
    records_of,
    with_label,
)
from umpc.api.result import Result
from umpc.coordinator.studyfile import named_protocol
from umpc.errors import DataError, EmptyTable, StudyError, UnknownField
from umpc.node.table.conversions import ColumnValues, Fetched, typed
from umpc.node.table.source import TableSource
from umpc.protocols.registry import AUTO, USUAL, chosen_protocol, is_open
from umpc.simulation import simulate

COORDINATOR = "coordinator"
FrameLike: TypeAlias = Any
"""A data frame, a dictionary of columns, or a numpy array."""
Frames = Sequence[FrameLike] | Mapping[str, FrameLike]
"""A list of frames, one for each site; or site name → frame."""


def estimate(
    statistic: Asked,
    frames: Frames,
    columns: Sequence[str] | None = None,
    *,
    bounds: Mapping[str, Bounds] | str | None = None,
    epsilon: Any,
    label: Label | None = None,
    protocol: str | None = None,
    **settings: Any,
) -> Result:
    """Estimate a statistic over the records of all frames, with ε-differential privacy.

    All parties of the protocol run in this process, with the noise of a real run. It is for your
    own data and for trying a study out. One process protects nothing from its own user: for data of
    several owners take `umpc.Study`.

        umpc.estimate("kendall_tau", [df_a, df_b], columns=["age", "balance"],
                      bounds={"age": (0, 127), "balance": (-10000, 110000)}, epsilon=1)

    Args:
        statistic: the name of a statistic of the library, which `umpc kernels` lists, or of one of
            counts, such as "kaplan_meier"; or a function decorated with `umpc.kernel`. Or several
            of the library, each with its columns, as [("kendall_tau", ["age", "balance"]),
            ("gini_mean_difference", ["age"])]; they split epsilon, and `Result.parts` has their
            values.
        frames: one for each site: frames of pandas, polars, pyarrow and others, dictionaries of
            columns, or numpy arrays with the columns in order. With protocol="people" they are
            of people with one value each, and there are two aggregators.
        columns: the columns that the statistic takes, in its order. A kernel names them itself.
        bounds: column → (lower, upper), (lower, upper, resolution) or a list of categories. They
            are public, so take them from what the columns mean. "data" takes them from the values,
            which is not private.
        epsilon: the privacy of the result, against replacing one record.
        label: for a statistic of two classes, its public label and the class that should score
            higher; for a kernel of Python, the class of its first record.
        protocol: as in a study file; by default pairs or all pairs, whichever is cheaper.
        settings: further keys of a study file, such as edges="all", parameters={...},
            max_colluding=1, where="age >= 40", strata="sex", the statistic inside each category of
            a column, or weight="w", where pairs count by the product of both records' weights.
            `bounds` also has the fields of `where`, `strata` and `weight`.

    Warns: UserWarning where a value counts as another one.
    Raises: StudyError, DataError and their kinds; NotNumeric where no value of a field is a number,
        or in any of its categories.
    """
    sites = named_frames(frames)
    label = checked_label(label)
    columns, names = columns_asked(statistic, columns, bounds, label and label[0], settings)
    person = settings.get("person")
    read = names if person is None or person in names else (*names, person)
    sources = {site: frame_table(frame, read, site) for site, frame in sites.items()}
    found = {site: columns_at(source, names) for site, source in sources.items()}
    is_own = isinstance(statistic, PythonKernel)
    labelled = with_label(bounds, label, found, named_last=not is_own)
    classes = label_classes(statistic, columns)
    fields = fields_of(names, labelled, found, label and label[0], classes)
    chosen = {key: plain(value) for key, value in settings.items()}
    protocol = named_protocol(protocol, statistic)
    if is_open(protocol, chosen):
        chosen["backend"] = AUTO
        counts = (len(next(iter(site.values())).texts) for site in found.values() if site)
        chosen.setdefault("records", sum(counts))
    nodes = [*found]
    if protocol == "linked":
        raise StudyError(
            "linked rows have columns at two sites: join the frames by their keys, and take "
            'protocol="people", which has the same noise'
        )
    if chosen_protocol(protocol or USUAL, chosen).settings().shares_tables:
        from umpc.protocols.people.in_memory import made_up_entries

        nodes = ["aggregator-1", "aggregator-2"]
        places = sum(len(next(iter(site.values())).texts) for site in found.values() if site)
        chosen = made_up_entries(places) | chosen
    entries = {
        "name": "estimate",
        "epsilon": epsilon,
        "identity": ".",
        "protocol": protocol,
        "nodes": [{"name": node, "address": NOWHERE} for node in nodes],
        **helper_entries(protocol, chosen),
        **chosen,
    }
    asked = study_entries(statistic, columns, fields, **entries)
    study = study_file(asked, statistic).new_study(COORDINATOR)
    schemas = [field.schema() for field in study.fields]
    tables = [
        records_of(source, schemas, study.condition, study.people).numbered_anew(os.urandom).columns
        for source in sources.values()
    ]
    condition = study.condition
    for site, table in zip(found, tables, strict=True):
        if not len(next(iter(table.values()))):
            told = f" where {condition.text}" if condition else ""
            raise EmptyTable(
                f"site {site!r}: a complete record was expected{told}, and there is none"
            )
    finished = datetime.now(UTC).isoformat(timespec="seconds")
    return Result(replace(simulate(study, tables, os.urandom).report, finished=finished))


def named_frames(frames: Frames) -> dict[str, FrameLike]:
    """Site name → frame. Raises: StudyError where there is none."""
    if isinstance(frames, Mapping):
        found = {str(name): frame for name, frame in frames.items()}
    elif isinstance(frames, Sequence) and not isinstance(frames, str):
        found = {f"site-{number}": frame for number, frame in enumerate(frames, 1)}
    else:
        raise StudyError(
            f"a list of frames, one for each site, was expected, got {type(frames).__name__}; "
            f"write [frame] for a single site"
        )
    if not found:
        raise StudyError("at least one frame was expected, and the list is empty")
    return found


# --- frames ---------------------------------------------------------------------------------------


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
