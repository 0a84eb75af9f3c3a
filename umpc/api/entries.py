"""The entries of a study file, from the arguments of Python calls."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from umpc.api.python_kernel import PythonKernel
from umpc.coordinator.studyfile import StudyFile, read_study
from umpc.coordinator.studyfile_text import field_entry
from umpc.errors import StudyError
from umpc.protocols.registry import USUAL, chosen_protocol
from umpc.study.parts import FieldText
from umpc.study.settings import keys_of
from umpc.ustat.condition import fields_read
from umpc.ustat.statistics import find_statistic
from umpc.ustat.strata import PAIR

NOWHERE = "127.0.0.1:1"
"""The address of a process that does not listen, or not yet."""
Asked: TypeAlias = str | PythonKernel | Sequence[tuple[str, Sequence[str]]]
"""A statistic of the library, a kernel of Python, or several statistics with their columns."""
ABOUT = Path("umpc.Study")
"""The name under which errors speak of a study that is no file."""


def helper_entries(protocol: str | None, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The entries of the dealer or the shufflers that a study needs, all at NOWHERE.

    Args: protocol: its name; None for the usual one. settings: of the protocol, as a file has them.
    """
    chosen = chosen_protocol(protocol or USUAL, settings)
    known = keys_of(chosen.settings)
    found: dict[str, Any] = {}
    has_dealer = chosen.usual_of_degree(settings, PAIR).get("preprocessing") != "none"
    if "dealer" in known and has_dealer:
        found["dealer"] = {"name": "dealer", "address": NOWHERE}
    if "shufflers" in known:
        names = ("shuffler-1", "shuffler-2")
        found["shufflers"] = [{"name": name, "address": NOWHERE} for name in names]
    return found


def columns_needed(
    statistic: Asked,
    columns: Sequence[str] | None,
    label: str | None,
    where: str | None = None,
    strata: str | None = None,
) -> tuple[str, ...]:
    """The columns that a study reads, with those of its condition and its strata.

    Raises: StudyError where they are not told.
    """
    if not isinstance(statistic, str | PythonKernel):
        found = tuple(name for _, own in _several(statistic, columns) for name in own)
    elif isinstance(statistic, PythonKernel):
        found = tuple(columns or _fields(statistic))
    elif columns:
        found = tuple(columns)
    else:
        arguments = ", ".join(find_statistic(statistic).arguments)
        raise StudyError(
            f"columns were expected: {statistic} takes {arguments}. Write columns=[...] with the "
            f"names of these columns in your frames"
        )
    named = [name for name in (label, strata) if name is not None]
    others = (*named, *fields_read(where))
    return tuple(dict.fromkeys((*found, *others)))


def own_columns(
    statistic: Asked, columns: Sequence[str] | None, bounds: object
) -> Sequence[str] | None:
    """The columns that were given; else the only one with bounds, for a statistic of one column."""
    if columns or not isinstance(statistic, str) or not isinstance(bounds, Mapping):
        return columns
    is_clear = len(bounds) == len(find_statistic(statistic).arguments) == 1
    return list(bounds) if is_clear else columns


def label_classes(statistic: Asked, columns: Sequence[str] | None) -> dict[str, int]:
    """Each column that a statistic of the library takes for a private label → its classes."""
    if isinstance(statistic, PythonKernel):
        return {}
    if isinstance(statistic, str):
        asked = [(statistic, list(columns or ()))]
    else:
        asked = _several(statistic, columns)
    found: dict[str, int] = {}
    for name, own in asked:
        library = find_statistic(name)
        if len(own) == len(library.arguments):
            found |= {column: rule.classes for column, rule in library.rules_of(own)}
    return {column: classes for column, classes in found.items() if classes}


def _several(
    statistics: Iterable[tuple[str, Sequence[str]]], columns: Sequence[str] | None
) -> list[tuple[str, list[str]]]:
    """Several statistics, each with its columns. Raises: StudyError for another form."""
    try:
        found = [(str(name), [str(each) for each in own]) for name, own in statistics]
    except (TypeError, ValueError) as error:
        raise StudyError(
            "several statistics are a list of pairs, a name and its columns, as "
            '[("kendall_tau", ["age", "balance"]), ("gini_mean_difference", ["age"])]'
        ) from error
    if columns:
        raise StudyError("each of several statistics has its own columns; leave columns out")
    return found


def study_entries(
    statistic: Asked,
    columns: Sequence[str] | None,
    fields: Iterable[FieldText],
    **entries: Any,
) -> dict[str, Any]:
    """The entries of a study file, without those that are None or empty.

    Args: entries: any other keys of a study file, as `umpc study --help` lists them.
    """
    found: dict[str, Any] = {"fields": [field_entry(field) for field in fields]}
    if not isinstance(statistic, str | PythonKernel):
        found["statistics"] = [
            {"statistic": name, "columns": own} for name, own in _several(statistic, columns)
        ]
    elif isinstance(statistic, PythonKernel):
        found |= {
            "kernel": statistic.name,
            "estimator": statistic.estimator,
            "sampling": statistic.sampling,
        }
    else:
        found |= {"statistic": find_statistic(statistic).name, "columns": list(columns or ())}
    given = {key: plain(value) for key, value in entries.items()}
    return found | {key: value for key, value in given.items() if value not in (None, [], {})}


def study_file(entries: Mapping[str, Any], statistic: Asked, about: Path = ABOUT) -> StudyFile:
    """The study of these entries, checked key by key. Raises: StudyError."""
    traced = statistic.traced if isinstance(statistic, PythonKernel) else None
    return read_study(about, entries, traced)


def plain(value: Any) -> Any:
    """A Python value as a study file has it: exact numbers, text, lists and tables."""
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) < 2**53 else repr(value)
    return str(value) if isinstance(value, Decimal | Fraction | Path) else value


def _fields(statistic: PythonKernel) -> list[str]:
    """The fields that a kernel reads, sorted."""
    from umpc.ustat.expression import fields_of

    found = {field.name for each in statistic.traced.expressions for field in fields_of(each)}
    return sorted(found)
