"""The rules of the library's statistics for their fields, and what a study's classes mean.

A study document has kernels and no columns. Which field is which argument of a statistic of the
library follows from a comparison of the kernels with the library's own.

Bounds are public, so a refusal discloses nothing. It is for new runs only: a node asks these rules
after it has found that it has not released the study, and a released study answers as before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import permutations

from umpc.errors import KernelError
from umpc.study.document import Study
from umpc.study.parts import FieldText
from umpc.study.several import StudyPart
from umpc.ustat.expression import Expression, Rebuild, interpret
from umpc.ustat.sampling import BALANCED, UNBALANCED
from umpc.ustat.statistics import LIBRARY, Statistic
from umpc.ustat.statistics.statistic import SCORES_HIGHER
from umpc.ustat.strata import restricted
from umpc.ustat.text import MAX_DEPTH, to_text


def check_fields(study: Study) -> None:
    """Whether the fields' bounds fit the library's statistics that the study computes.

    Raises: RangeError naming the field.
    """
    for statistic, columns in _computed(study):
        statistic.check_fields(columns, study.schema)


def classes_of(study: Study) -> dict[str, str]:
    """Each label of the study → what its classes mean, such as which one should score higher.

    Labels of which only the equality counts have no entry.
    """
    found: dict[str, str] = {}
    for statistic, columns in _computed(study):
        for name, rule in statistic.rules_of(columns):
            words = rule.in_words(study.schema[name])
            if words and words not in found.get(name, ""):
                found[name] = "; ".join(filter(None, (found.get(name), words)))
    if has_direction(study):
        high, low = map(repr, study.schema[study.label].categories)
        found[study.label] = SCORES_HIGHER.format(high=high, low=low)
    return found


def has_direction(study: Study) -> bool:
    """Whether the first class of the study's public label is the one that should score higher.

    All statistics of the library over two classes have this direction; a kernel of one's own means
    what its author says.
    """
    if not study.two_sample:
        return False
    named = [LIBRARY.get(each.statistic) for each in study.single_statistics]
    return any(each is not None and each.sampling == study.sampling for each in named)


def with_other_direction(study: Study) -> Study | None:
    """A study with the classes of its public label exchanged; None without a direction."""
    if not has_direction(study):
        return None
    fields = (
        FieldText.of_categories(each.name, reversed(each.categories), public=True)
        if each.public
        else each
        for each in study.fields
    )
    return study.replaced(fields=tuple(fields))


def columns_of(
    study: Study, statistic: Statistic, stratum: str = "", place: int = 0
) -> tuple[str, ...] | None:
    """The fields that are the statistic's arguments, if a study computes exactly this statistic.

    Parameters have their defaults, and the fields differ.

    Args: study: of one value. stratum, place: the field of strata and the category that the kernels
        are inside of; empty without strata.
    Returns: None for other kernels.
    """
    # However E is drawn, the noise covers as many sets of a record as E has.
    sampling = BALANCED if study.sampling in UNBALANCED else study.sampling
    if (study.degree, sampling) != (statistic.degree, statistic.sampling):
        return None
    texts = tuple(kernel.text for kernel in study.parsed_kernels)
    used = _order(kernel.expression for kernel in study.parsed_kernels)
    if stratum:
        used = tuple(name for name in used if name != stratum)
    for columns in _assignments(used, statistic):
        if _kernels(statistic, columns, stratum, place) == (texts, study.estimator):
            return columns
    return None


def _computed(study: Study) -> Iterator[tuple[Statistic, tuple[str, ...]]]:
    """The statistics with rules that the study computes by name, and their fields."""
    parts: tuple[StudyPart | None, ...] = study.several or (None,)
    for part, alone in zip(parts, study.single_statistics, strict=True):
        statistic = LIBRARY.get(alone.statistic)
        if statistic is None or not statistic.rules:
            continue
        stratum, place = "", 0
        if part is not None and part.stratum:
            stratum = study.stratum_field
            place = study.schema[stratum].categories.index(part.stratum)
        columns = columns_of(alone, statistic, stratum, place)
        if columns is not None:
            yield statistic, columns


def _assignments(used: tuple[str, ...], statistic: Statistic) -> Iterable[tuple[str, ...]]:
    """The fields that the statistic's arguments may be, each used once.

    Feature columns are in the order of the kernel's sum. A kernel of more columns than MAX_DEPTH is
    not the library's, because the library's sums are chains.
    """
    arity = len(statistic.arguments)
    if statistic.is_variadic:
        return [used] if arity <= len(used) <= MAX_DEPTH else []
    return permutations(used) if len(used) == arity else []


@lru_cache(maxsize=64)
def _kernels(
    statistic: Statistic, columns: tuple[str, ...], stratum: str, place: int
) -> tuple[tuple[str, ...], str] | None:
    """The library's kernels and estimator; None if a parameter of it has no default."""
    try:
        found, estimator = statistic.expressions(columns), statistic.estimator
        if stratum:
            found, estimator = restricted(found, estimator, stratum, place, statistic.degree)
    except KernelError:
        return None
    return tuple(map(to_text, found)), estimator


def _order(expressions: Iterable[Expression]) -> tuple[str, ...]:
    """The fields' names in the order of their first use, from left to right."""
    found: dict[str, None] = {}

    class Names(Rebuild):
        def field(self, record: int, name: str) -> Expression:
            found.setdefault(name)
            return super().field(record, name)

    for expression in expressions:
        interpret(expression, Names())
    return tuple(found)
