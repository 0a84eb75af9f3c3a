"""Kernels inside a stratum, weighted kernels, and kernels over triples that tell a variance.

Kernels inside a stratum count a set of records only if all of them have one category.

A stratum is a category of a field, such as sex = 'f'. The kernel of a stratum is

    select((a.sex == 0) & (b.sex == 0), kernel, 0)

and the share of the sets inside the stratum is the mean of its condition alone. A node accepts a
study of strata only if its kernels have this form (`is_inside`), because the strata share ε then
(docs/privacy.md).

*Weights.* A set of records counts as much as the product of its records' weights, which are a field
of the study. A mean becomes Σ w_a·w_b·f(a, b) / Σ w_a·w_b, so the range of a sum and its noise grow
with the square of the field's upper bound.

*Projection.* A pair kernel over triples, with a second kernel from which the variance of its mean
follows.

For a symmetric kernel f of pairs with mean θ,

    first(a, b, c)  = (f(a, b) + f(a, c) + f(b, c)) / 3
    second(a, b, c) = (f(a, b)·f(a, c) + f(a, b)·f(b, c) + f(a, c)·f(b, c)) / 3

have the means θ and ζ₁ + θ², where ζ₁ is the variance of the projection E f(a, ·) (Hoeffding 1948,
section 5). The mean of `first` over all triples is the mean of f over all pairs. So both sums have
one degree and one E.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from umpc.errors import KernelError
from umpc.ustat import expression as ex
from umpc.ustat.expression import Add, Constant, Expression, Multiply, permute_records, records_of

MEAN, RATIO, TOTAL = "mean", "ratio", "total"
RESTRICTED = {
    MEAN: RATIO,
    RATIO: RATIO,
    TOTAL: TOTAL,
    "geometric_ratio": "geometric_ratio",
    "difference": "difference_ratio",
    "difference_ratio": "difference_ratio",
}
"""A statistic's estimator → the estimator of the same statistic inside a stratum."""
_ZERO = ex.Constant(Fraction(0))
ONE: ex.Expression = ex.Constant(Fraction(1))


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

    A mean becomes a ratio: the restricted kernel over the share of the sets inside the stratum, and
    a difference of two means that of two ratios.

    Args: category: its number, from 0.
    Raises: KernelError for an estimator that has no such form.
    """
    condition, advice = inside(field, category, degree), "ask for one stratum at a time by `where`"
    inner = [ex.Select(condition, each, _ZERO) for each in kernels]
    return _counted("strata take", inner, condition, estimator, advice)


def _counted(
    what: str,
    kernels: Sequence[ex.Expression],
    share: ex.Expression,
    estimator: str,
    advice: str,
) -> tuple[tuple[ex.Expression, ...], str]:
    """The kernels, with how much a set counts where the estimator must divide by it."""
    if estimator not in RESTRICTED:
        raise KernelError(
            f"{what} a statistic whose estimator is {', '.join(RESTRICTED)}, and {estimator!r} "
            f"came; {advice}"
        )
    found = RESTRICTED[estimator]
    return (*kernels, *([share] if found != estimator else [])), found


def is_inside(kernel: ex.Expression, field: str, category: int, degree: int) -> bool:
    """Whether a kernel is 0 on every set that does not lie in the stratum, by its form."""
    condition = inside(field, category, degree)
    if isinstance(kernel, ex.Select):
        return kernel.condition == condition and kernel.otherwise == _ZERO
    return kernel == condition


# --- weights --------------------------------------------------------------------------------------

WEIGHTED = " weighted by "
"""It stands between a statistic's name and the field of its weights."""


def product_of(field: str, degree: int) -> ex.Expression:
    """The product of the weights of a set's records."""
    found: ex.Expression = ex.Field(0, field)
    for record in range(1, degree):
        found = Multiply(found, ex.Field(record, field))
    return found


def weighted(
    kernels: Sequence[ex.Expression], estimator: str, field: str, degree: int
) -> tuple[tuple[ex.Expression, ...], str]:
    """The kernels and the estimator of a statistic with weights.

    Raises: KernelError for an estimator that has no such form.
    """
    weight = product_of(field, degree)
    inner = [Multiply(each, weight) for each in kernels]
    return _counted("weight takes", inner, weight, estimator, "leave weight out")


def without_weight(kernel: ex.Expression, degree: int) -> tuple[ex.Expression, str] | None:
    """A kernel without its weights, and their field; None for a kernel without weights."""
    inner, weight = ONE, kernel
    for _ in range(2):
        last = weight.right if isinstance(weight, Multiply) and degree > 1 else weight
        if isinstance(last, ex.Field) and weight == product_of(last.name, degree):
            return inner, last.name
        if not isinstance(kernel, Multiply):
            return None
        inner, weight = kernel.left, kernel.right
    return None


# --- projection -----------------------------------------------------------------------------------

PAIR, TRIPLE = 2, 3
THIRD = Constant(Fraction(1, 3))


def over_triples(pair: Expression) -> tuple[Expression, Expression]:
    """(first, second) of a kernel of two records."""
    ab = pair
    ac = permute_records(pair, (0, 2, 1))
    bc = permute_records(pair, (1, 2, 0))
    first = Add(Add(ab, ac), bc)
    second = Add(Add(Multiply(ab, ac), Multiply(ab, bc)), Multiply(ac, bc))
    return Multiply(first, THIRD), Multiply(second, THIRD)


def is_over_triples(first: Expression, second: Expression) -> bool:
    """Whether two kernels are those of some kernel of pairs."""
    outer = first.left if isinstance(first, Multiply) else None
    inner = outer.left if isinstance(outer, Add) else None
    pair = inner.left if isinstance(inner, Add) else None
    if pair is None or not records_of(pair) <= set(range(PAIR)):
        return False
    return over_triples(pair) == (first, second)
