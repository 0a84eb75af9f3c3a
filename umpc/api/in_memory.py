"""`umpc.estimate`: a private statistic over data frames, by the real protocol in one process."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from umpc.api.entries import (
    NOWHERE,
    Asked,
    columns_needed,
    helper_entries,
    plain,
    study_entries,
    study_file,
)
from umpc.api.fields import Bounds, fields_of, is_present, units_of, with_label
from umpc.api.frames import FrameLike, Values, columns_of
from umpc.api.result import Result
from umpc.crypto.prg import SEED_BYTES, Stream
from umpc.errors import EmptyTable, StudyError
from umpc.node.table.people import places_among_own
from umpc.protocols.left_open import AUTO, is_open
from umpc.simulation import simulate
from umpc.study.document import Study
from umpc.ustat.words import secret_order

COORDINATOR = "coordinator"
Units = dict[str, NDArray[np.int64]]
Frames = Sequence[FrameLike] | Mapping[str, FrameLike]
"""A list of frames, one for each site; or site name → frame."""


def estimate(
    statistic: Asked,
    frames: Frames,
    columns: Sequence[str] | None = None,
    *,
    bounds: Mapping[str, Bounds] | str | None = None,
    epsilon: Any,
    label: tuple[str, str] | None = None,
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
        label: for a statistic of two classes, its public label and the first class.
        protocol: as in a study file; by default pairs or all pairs, whichever is cheaper.
        settings: further keys of a study file, such as edges="all", parameters={...},
            max_colluding=1, where="age >= 40", or strata="sex", the statistic inside each category
            of a column. `bounds` also has the fields of `where` and `strata`.

    Warns: UserWarning where a value counts as another one.
    Raises: StudyError, DataError and their kinds.
    """
    sites = named_frames(frames)
    others = (settings.get("where"), settings.get("strata"))
    names = columns_needed(statistic, columns, label[0] if label else None, *others)
    person = settings.get("person")
    read = names if person is None or person in names else (*names, person)
    found = {site: columns_of(frame, read, site) for site, frame in sites.items()}
    if person is not None:
        found = {site: _with_person(values, person) for site, values in found.items()}
    fields = fields_of(names, with_label(bounds, label, found), found, label and label[0])
    study = _study(statistic, columns, fields, found, epsilon, protocol, settings)
    schemas = [field.schema() for field in fields]
    tables = [units_of(values, schemas, site)[0] for site, values in found.items()]
    tables = [
        _counted(study, table, values) for table, values in zip(tables, found.values(), strict=True)
    ]
    condition = study.condition
    for site, table in zip(found, tables, strict=True):
        if not len(next(iter(table.values()))):
            told = f" where {condition.text}" if condition else ""
            raise EmptyTable(
                f"site {site!r}: a complete record was expected{told}, and there is none"
            )
    return Result(simulate(study, tables, os.urandom).report)


def _with_person(values: Mapping[str, Values], person: str) -> dict[str, Values]:
    """A site's records that have a person."""
    known = is_present(values[person])
    return {name: column[known] for name, column in values.items()}


def _counted(study: Study, table: Units, values: Mapping[str, Values]) -> Units:
    """A site's records that count, as a node chooses and numbers them (`umpc/node/records.py`).

    Args: table: the complete records, in steps of their fields. values: all records.
    """
    if not table:
        return table
    kept = np.arange(len(next(iter(table.values()))))
    if study.condition is not None:
        kept = kept[study.condition.holds(table)]
    if (people := study.people) is not None:
        complete = np.logical_and.reduce([is_present(values[name]) for name in table])
        persons = np.array([str(each) for each in values[people.column][complete]], dtype=object)
        kept = kept[places_among_own(persons[kept]) < people.records]
    kept = kept[secret_order(len(kept), Stream(os.urandom(SEED_BYTES)).words)]
    return {name: column[kept] for name, column in table.items()}


def _study(
    statistic: Asked,
    columns: Sequence[str] | None,
    fields: Sequence[Any],
    sites: Mapping[str, Mapping[str, Values]],
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


def _length(columns: Mapping[str, Values]) -> int:
    return len(next(iter(columns.values()), ()))
