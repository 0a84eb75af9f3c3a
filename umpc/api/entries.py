"""The entries of a study file, from the arguments of Python calls.

`umpc.kernel`: a Python function as a statistic of one's own.

    @umpc.kernel(estimator="ratio")
    def close_in_age(a, b):
        near = (a.age - b.age < 5) & (b.age - a.age < 5)
        return umpc.select(near, abs(a.balance - b.balance), 0), near

The ratio of the two sums is the mean over the pairs that are near. A single sum is averaged over
all pairs, of which the others count 0.

The function is traced once, where it is defined. A mistake is an error there, with its line. The
processes of a study see the expression that it computes, and never code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import update_wrapper
from pathlib import Path
from typing import Any, TypeAlias, overload

import numpy as np

from umpc.coordinator.studyfile import StudyFile, TracedKernel, read_study
from umpc.coordinator.studyfile_text import field_entry
from umpc.counts import COUNTED
from umpc.errors import StudyError
from umpc.protocols.registry import USUAL, chosen_protocol
from umpc.study.parts import FieldText
from umpc.study.settings import keys_of
from umpc.ustat.condition import fields_read
from umpc.ustat.estimators import find_estimator
from umpc.ustat.expression import fields_of
from umpc.ustat.statistics import find_statistic
from umpc.ustat.strata import PAIR
from umpc.ustat.text import to_text
from umpc.ustat.tracing import arity, trace_all


class PythonKernel:
    """A traced function. It can still be called.

    Args: estimator: what is made of the kernel's sums, such as "ratio". sampling: "balanced", or
        "two_sample" for a kernel over two classes.
    Raises: KernelError where the function cannot be computed as written.
    """

    def __init__(
        self, function: Callable[..., Any], estimator: str = "mean", sampling: str = "balanced"
    ):
        self.estimator = find_estimator(estimator).name
        self.sampling = sampling
        self.traced = TracedKernel(trace_all(function), arity(function))
        self.name = function.__name__
        self._function = function
        update_wrapper(self, function)

    def __call__(self, *records: Any) -> Any:
        return self._function(*records)

    @property
    def degree(self) -> int:
        """The number of records that the function takes."""
        return self.traced.degree

    @property
    def texts(self) -> tuple[str, ...]:
        """The canonical text of each sum's kernel, as nodes see it."""
        return tuple(map(to_text, self.traced.expressions))

    def __repr__(self) -> str:
        return f"<umpc.kernel {self.name}: {self.estimator} of {'; '.join(self.texts)}>"


@overload
def kernel(function: Callable[..., Any]) -> PythonKernel: ...
@overload
def kernel(
    *, estimator: str = "mean", sampling: str = "balanced"
) -> Callable[[Callable[..., Any]], PythonKernel]: ...
def kernel(
    function: Callable[..., Any] | None = None,
    *,
    estimator: str = "mean",
    sampling: str = "balanced",
) -> PythonKernel | Callable[[Callable[..., Any]], PythonKernel]:
    """Make a statistic of a function over the records of an edge: a decorator.

    Args: as of `PythonKernel`. Raises: KernelError with the line that cannot be computed.
    """
    if function is not None:
        return PythonKernel(function, estimator, sampling)
    return lambda given: PythonKernel(given, estimator, sampling)


# --- entries of a study ---------------------------------------------------------------------------


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


def columns_asked(
    statistic: Asked,
    columns: Sequence[str] | None,
    bounds: object,
    label: str | None,
    settings: Mapping[str, Any],
) -> tuple[Sequence[str] | None, tuple[str, ...]]:
    """The statistic's columns, and all that a study reads: its condition's, strata's and weights'.

    Without columns, a statistic of one column takes the only one with bounds.

    Raises: StudyError where they are not told.
    """
    if isinstance(statistic, str) and not columns and isinstance(bounds, Mapping):
        is_clear = len(bounds) == len(arguments_of(statistic)) == 1
        columns = list(bounds) if is_clear else columns
    if not isinstance(statistic, str | PythonKernel):
        found = tuple(name for _, own in _several(statistic, columns) for name in own)
    elif isinstance(statistic, PythonKernel):
        found = tuple(columns or _fields(statistic))
    elif columns:
        found = tuple(columns)
    else:
        arguments = ", ".join(arguments_of(statistic))
        raise StudyError(
            f"columns were expected: {statistic} takes {arguments}. Write columns=[...] with the "
            f"names of these columns in your frames"
        )
    named = (label, settings.get("strata"), settings.get("weight"))
    others = (*(name for name in named if name is not None), *fields_read(settings.get("where")))
    return columns, tuple(dict.fromkeys((*found, *others)))


def arguments_of(statistic: str) -> tuple[str, ...]:
    """The columns that a statistic takes. Raises: KernelError for an unknown one."""
    if counted := COUNTED.get(statistic):
        return counted.roles
    return find_statistic(statistic).arguments


def label_classes(statistic: Asked, columns: Sequence[str] | None) -> dict[str, int]:
    """Each column that a statistic of the library takes for a private label → its classes."""
    if isinstance(statistic, PythonKernel):
        return {}
    if isinstance(statistic, str) and (counted := COUNTED.get(statistic)):
        named = zip(counted.all_roles, columns or (), strict=False)
        return {column: 2 for role, column in named if role in counted.two_cells}
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
        name = statistic if statistic in COUNTED else find_statistic(statistic).name
        found |= {"statistic": name, "columns": list(columns or ())}
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
    found = {field.name for each in statistic.traced.expressions for field in fields_of(each)}
    return sorted(found)
