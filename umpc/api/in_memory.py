"""`umpc.estimate`: a private statistic over data frames, by the real protocol in one process."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from umpc.api.entries import (
    NOWHERE,
    Asked,
    columns_needed,
    helper_entries,
    label_classes,
    own_columns,
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
from umpc.api.frames import FrameLike, frame_table
from umpc.api.python_kernel import PythonKernel
from umpc.api.result import Result
from umpc.errors import EmptyTable, StudyError
from umpc.node.table.batch import ReadColumn
from umpc.protocols.registry import AUTO, is_open
from umpc.simulation import simulate
from umpc.study.document import Study

COORDINATOR = "coordinator"
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
        statistic: the name of a statistic of the library, which `umpc kernels` lists, or a function
            decorated with `umpc.kernel`. Or several of the library, each with its columns, as
            [("kendall_tau", ["age", "balance"]), ("gini_mean_difference", ["age"])]; they split
            epsilon, and `Result.parts` has their values.
        frames: one for each site: frames of pandas, polars, pyarrow and others, dictionaries of
            columns, or numpy arrays with the columns in order.
        columns: the columns that the statistic takes, in its order. A kernel names them itself.
        bounds: column → (lower, upper), (lower, upper, resolution) or a list of categories. They
            are public, so take them from what the columns mean. "data" takes them from the values,
            which is not private.
        epsilon: the privacy of the result, against replacing one record.
        label: for a statistic of two classes, its public label and the class that should score
            higher; for a kernel of Python, the class of its first record.
        protocol: as in a study file; by default pairs or all pairs, whichever is cheaper.
        settings: further keys of a study file, such as edges="all", parameters={...},
            max_colluding=1, where="age >= 40", or strata="sex", the statistic inside each category
            of a column. `bounds` also has the fields of `where` and `strata`.

    Warns: UserWarning where a value counts as another one.
    Raises: StudyError, DataError and their kinds; NotNumeric where no value of a field is a number,
        or in any of its categories.
    """
    sites = named_frames(frames)
    columns, label = own_columns(statistic, columns, bounds), checked_label(label)
    others = (settings.get("where"), settings.get("strata"))
    names = columns_needed(statistic, columns, label[0] if label else None, *others)
    person = settings.get("person")
    read = names if person is None or person in names else (*names, person)
    sources = {site: frame_table(frame, read, site) for site, frame in sites.items()}
    found = {site: columns_at(source, names) for site, source in sources.items()}
    is_own = isinstance(statistic, PythonKernel)
    labelled = with_label(bounds, label, found, named_last=not is_own)
    classes = label_classes(statistic, columns)
    fields = fields_of(names, labelled, found, label and label[0], classes)
    study = _study(statistic, columns, fields, found, epsilon, protocol, settings)
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


def _study(
    statistic: Asked,
    columns: Sequence[str] | None,
    fields: Sequence[Any],
    sites: Mapping[str, Mapping[str, ReadColumn]],
    epsilon: Any,
    protocol: str | None,
    settings: Mapping[str, Any],
) -> Study:
    """The checked study of an estimate."""
    chosen = {key: plain(value) for key, value in settings.items()}
    left_open = is_open(protocol, chosen)
    if left_open:
        chosen["backend"] = AUTO
        chosen.setdefault("records", sum(_length(site) for site in sites.values()))
    entries = study_entries(
        statistic,
        columns,
        fields,
        **{
            "name": "estimate",
            "epsilon": epsilon,
            "identity": ".",
            "protocol": protocol,
            "nodes": [{"name": site, "address": NOWHERE} for site in sites],
            **helper_entries(protocol, chosen),
            **chosen,
        },
    )
    return study_file(entries, statistic).new_study(COORDINATOR)


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


def _length(columns: Mapping[str, ReadColumn]) -> int:
    return len(next(iter(columns.values())).texts) if columns else 0
