"""Kernels inside a stratum: they count a set of records only if all of them have one category.

A stratum is a category of a field, such as sex = 'f'. The kernel of a stratum is

    select((a.sex == 0) & (b.sex == 0), kernel, 0)

and the share of the sets inside the stratum is the mean of its condition alone. A node accepts a
study of strata only if its kernels have this form (`is_inside`), because the strata share ε then
(docs/privacy.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from umpc.errors import KernelError
from umpc.ustat import expression as ex

MEAN, RATIO, TOTAL = "mean", "ratio", "total"
RESTRICTED = {MEAN: RATIO, RATIO: RATIO, TOTAL: TOTAL, "geometric_ratio": "geometric_ratio"}
"""A statistic's estimator → the estimator of the same statistic inside a stratum."""
_ZERO = ex.Constant(Fraction(0))


def inside(field: str, category: int, degree: int) -> ex.Expression:
    """The bit that says whether all records of a set have this category of the field."""
    number = ex.Constant(Fraction(category))
    first, *others = (ex.Equal(ex.Field(record, field), number) for record in range(degree))
    condition: ex.Expression = first
    for bit in others:
        condition = ex.And(condition, bit)
    return condition


def restricted(
    kernels: Sequence[ex.Expression], estimator: str, field: str, category: int, degree: int
) -> tuple[tuple[ex.Expression, ...], str]:
    """The kernels and the estimator of a statistic inside one stratum.

    A mean becomes a ratio: the restricted kernel over the share of the sets inside the stratum.

    Args: category: its number, from 0.
    Raises: KernelError for an estimator that has no such form.
    """
    if estimator not in RESTRICTED:
        raise KernelError(
            f"strata take a statistic whose estimator is {', '.join(RESTRICTED)}, and "
            f"{estimator!r} came; ask for one stratum at a time by `where`"
        )
    condition = inside(field, category, degree)
    found = [ex.Select(condition, kernel, _ZERO) for kernel in kernels]
    share = [condition] if estimator == MEAN else []
    return (*found, *share), RESTRICTED[estimator]


def is_inside(kernel: ex.Expression, field: str, category: int, degree: int) -> bool:
    """Whether a kernel is 0 on every set that does not lie in the stratum, by its form."""
    condition = inside(field, category, degree)
    if isinstance(kernel, ex.Select):
        return kernel.condition == condition and kernel.otherwise == _ZERO
    return kernel == condition
