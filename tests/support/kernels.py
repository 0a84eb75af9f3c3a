"""Kernels of every shape, a schema for them, and records at all corners of the schema."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from functools import reduce
from itertools import permutations, product
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

from tests.support.mpc_studies import Columns, make_schema
from umpc.ustat import expression as ex
from umpc.ustat.expression import Add, Expression, permute_records
from umpc.ustat.kernel import Kernel
from umpc.ustat.statistics import find_statistic
from umpc.ustat.tracing import maximum, minimum, select, sign, trace

SCHEMA = make_schema(
    x=("0", "5"),
    y=("-2", "2", "0.5"),
    z=("-1000", "1000"),
    big=("-4503599627370496", "4503599627370496"),
    label=("0", "1"),
    fixed=("3", "3"),
)


def library(name: str, *columns: str) -> Expression:
    (expression,) = find_statistic(name).expressions(list(columns))
    return expression


PAIRS = {
    "kendall_tau": library("kendall_tau", "x", "y"),
    "gini_mean_difference": library("gini_mean_difference", "y"),
    "product": trace(lambda a, b: a.z * b.z),
    "product_of_products": trace(lambda a, b: a.x * a.z * b.x * b.z + 2 * a.y * b.y),
    "covariance": trace(lambda a, b: (a.x - b.x) * (a.y - b.y) * Fraction(1, 2)),
    "minimum": trace(lambda a, b: minimum(a.z, b.z)),
    "maximum": trace(lambda a, b: maximum(a.y, b.y)),
    "equality": trace(lambda a, b: a.x == b.x),
    "both_equal": trace(lambda a, b: (a.x == b.x) & (a.y == b.y)),
    "rand_index": trace(lambda a, b: (a.x == b.x) * (a.y == b.y) + (a.x != b.x) * (a.y != b.y)),
    "auc": trace(
        lambda a, b: ((a.label < b.label) & (a.z < b.z)) | ((b.label < a.label) & (b.z < a.z)),
    ),
    "select_by_tie": trace(lambda a, b: select(a.x == b.x, abs(a.z - b.z), a.y + b.y)),
    "separable": trace(lambda a, b: a.x * a.y + b.x * b.y - 7),
    "constant": trace(lambda a, b: Fraction(7, 3)),
    "zero": trace(lambda a, b: a.x - a.x),
    "sign_times_difference": trace(lambda a, b: sign(a.y - b.y) * (a.z - b.z)),
    "two_distances": trace(lambda a, b: abs(a.x - b.x) * abs(a.y - b.y)),
    "mixed_coefficients": trace(lambda a, b: abs(2 * a.x + 3 * a.y - 2 * b.x - 3 * b.y)),
    "unlike_forms": trace(
        lambda a, b: sign(3 * a.x - 3 * b.x) * sign(a.y + a.x - b.y - b.x) + (a.x == b.x)
    ),
    "crossed_fields": trace(lambda a, b: (a.x < b.y) + (b.x < a.y)),
    "against_a_constant": trace(lambda a, b: (a.x + b.x < 5) + (a.y * a.y + b.y * b.y == 4)),
    "local_bits": trace(lambda a, b: (a.x < 3) * (b.x < 3)),
    "local_bits_and_a_comparison": trace(lambda a, b: (a.x < 3) * (b.x < 3) * abs(a.z - b.z)),
    "compared_bits": trace(lambda a, b: (a.x < 3) == (b.x < 3)),
    "three_comparisons": trace(
        lambda a, b: sign(a.x - b.x) * sign(a.y - b.y) * (a.label == b.label)
    ),
    "wide_sign": trace(lambda a, b: sign(a.big - b.big) * sign(a.x - b.x)),
    "wide_distance": trace(lambda a, b: abs(a.big - b.big)),
    "one_value_field": trace(lambda a, b: (a.fixed == b.fixed) + abs(a.fixed - b.fixed)),
    "bit_times_other_value": trace(lambda a, b: (a.x < b.x) * b.z + (b.x < a.x) * a.z),
    "product_compared": trace(lambda a, b: a.x * b.x < 3),
    "nested_comparison": trace(lambda a, b: abs(a.x - b.x) < 2),
    "equality_of_comparisons": trace(
        lambda a, b: ((a.x < b.x) == (b.y < a.y)) + ((b.x < a.x) == (a.y < b.y))
    ),
    "equality_of_counts": trace(
        lambda a, b: ((a.x < b.x) * 1 == (b.y < a.y) * 1) + ((b.x < a.x) * 1 == (a.y < b.y) * 1)
    ),
    "all_three_agree": trace(lambda a, b: (a.x == b.x) & (a.y == b.y) & (a.label == b.label)),
    "logic_of_three": trace(
        lambda a, b: (
            ~((a.x < b.x) & (a.y < b.y) & (a.z < b.z)) ^ ((b.x < a.x) & (b.y < a.y) & (b.z < a.z))
        )
    ),
    "logic_with_local_parts": trace(
        lambda a, b: (
            ((a.x < b.x) & (a.label == 0) & (b.y < 1)) | ((b.x < a.x) & (b.label == 0) & (a.y < 1))
        )
    ),
}


def symmetrised(half: Expression, degree: int) -> Expression:
    """Return the sum over all exchanges of the records, which is symmetric."""
    first, *others = (permute_records(half, order) for order in permutations(range(degree)))
    return reduce(Add, others, first)


def of_three(kernel: Callable[..., Any]) -> Expression:
    return symmetrised(trace(kernel), 3)


TRIPLES = {
    "kendall_of_two": of_three(lambda a, b, c: sign(a.x - b.x) * sign(a.y - b.y)),
    "gini_of_two": trace(lambda a, b, c: abs(a.y - b.y) + abs(b.y - c.y) + abs(a.y - c.y)),
    "spearman": of_three(lambda a, b, c: sign(a.x - b.x) * sign(a.y - c.y)),
    "product_of_three": trace(lambda a, b, c: a.x * b.x * c.x + 2),
    "unlike_products": of_three(lambda a, b, c: a.x * b.y * c.z),
    "distance_against_a_third": of_three(lambda a, b, c: abs(a.x - b.x) < c.x),
    "distance_against_a_constant": of_three(lambda a, b, c: abs(a.x - b.x) < 2),
    "maximum_of_three": trace(lambda a, b, c: maximum(a.x, maximum(b.x, c.x))),
    "minimum_of_three": trace(lambda a, b, c: minimum(a.y, minimum(b.y, c.y))),
    "leaning": of_three(lambda a, b, c: sign(a.x + b.x - 2 * c.x)),
    "wide_leaning": of_three(lambda a, b, c: sign(a.big + b.big - 2 * c.big)),
    "triples_skewness": library("triples_skewness", "x"),
    "leaning_times_value": of_three(lambda a, b, c: (a.x + b.x < 2 * c.x) * c.z),
    "sum_against_a_constant": trace(lambda a, b, c: (a.y + b.y + c.y < 1) + (a.x + b.x + c.x == 7)),
    "product_against_a_product": of_three(lambda a, b, c: a.x * b.x < c.x * c.x),
    "ordered": of_three(lambda a, b, c: (a.x < b.x) & (b.x < c.x)),
    "alike_in_three": trace(
        lambda a, b, c: (a.x == b.x) & (b.x == c.x) & (a.label == b.label) & (b.label == c.label)
    ),
    "any_alike": trace(lambda a, b, c: (a.x == b.x) | (b.x == c.x) | (a.x == c.x)),
    "odd_order": trace(
        lambda a, b, c: (
            ~((a.x < b.x) ^ (b.x < c.x) ^ (c.x < a.x)) + ~((b.x < a.x) ^ (a.x < c.x) ^ (c.x < b.x))
        )
    ),
    "separable": trace(lambda a, b, c: a.x * a.y + b.x * b.y + c.x * c.y),
    "constant": trace(lambda a, b, c: Fraction(5, 2)),
}
QUADRUPLES = {
    "product_of_four": trace(lambda a, b, c, d: a.x * b.x * c.x * d.x),
    "sums_of_two": trace(
        lambda a, b, c, d: sum(
            sign(a.x + p.x - q.x - r.x) ** 2 for p, q, r in ((b, c, d), (c, b, d), (d, b, c))
        )
    ),
    "two_distances": trace(
        lambda a, b, c, d: sum(
            (abs(a.x - p.x) < abs(q.x - r.x)) + (abs(q.x - r.x) < abs(a.x - p.x))
            for p, q, r in ((b, c, d), (c, b, d), (d, b, c))
        )
    ),
    "total": trace(lambda a, b, c, d: abs(a.y + b.y + c.y + d.y)),
    "all_alike": trace(lambda a, b, c, d: (a.x == b.x) & (b.x == c.x) & (c.x == d.x)),
    "tau_star": library("bergsma_dassios_tau_star", "x", "y"),
}


class Kernels(Mapping[str, Kernel]):
    """Kernels of one degree by their names. Each is checked when it is first asked for."""

    def __init__(self, expressions: Mapping[str, Expression], degree: int):
        self.degree = degree
        self._expressions = expressions
        self._kernels: dict[str, Kernel] = {}

    def __getitem__(self, name: str) -> Kernel:
        if name not in self._kernels:
            self._kernels[name] = Kernel(self._expressions[name], SCHEMA, self.degree)
        return self._kernels[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._expressions)

    def __len__(self) -> int:
        return len(self._expressions)


KERNELS = Kernels(PAIRS, 2)
TRIPLE_KERNELS = Kernels(TRIPLES, 3)
QUADRUPLE_KERNELS = Kernels(QUADRUPLES, 4)


class Case(NamedTuple):
    """A kernel, and the owners of its slots."""

    kernels: Kernels
    name: str
    pattern: tuple[int, ...]

    @property
    def kernel(self) -> Kernel:
        return self.kernels[self.name]


def record_corners() -> dict[str, np.ndarray]:
    """Return records at all bounds: equal, crossed, in the middle, and one step off a bound."""
    low = {field.name: field.lower_units for field in SCHEMA}
    high = {field.name: field.upper_units for field in SCHEMA}
    middle = {name: (low[name] + high[name]) // 2 for name in low}
    crossed = {name: (low if i % 2 else high)[name] for i, name in enumerate(low)}
    uncrossed = {name: (high if i % 2 else low)[name] for i, name in enumerate(low)}
    near_low = {name: min(low[name] + 1, high[name]) for name in low}
    near_high = {name: max(high[name] - 1, low[name]) for name in low}
    rows = [low, high, middle, crossed, uncrossed, near_low, near_high]
    return {name: np.array([row[name] for row in rows], dtype=np.int64) for name in low}


def random_records(rng: np.random.Generator, count: int) -> dict[str, np.ndarray]:
    return {
        f.name: rng.integers(f.lower_units, f.upper_units, count, endpoint=True) for f in SCHEMA
    }


def take(records: Columns, rows: np.ndarray | slice) -> dict[str, np.ndarray]:
    return {name: column[rows] for name, column in records.items()}


def corner_edges(degree: int = 2) -> list[dict[str, np.ndarray]]:
    """Return every corner record with every other and itself, per slot."""
    corners = record_corners()
    index = np.array(list(product(range(len(corners["x"])), repeat=degree))).T
    return [take(corners, rows) for rows in index]


# --- random kernels

SMALL = make_schema(x=("0", "2"), y=("-1", "1"))
"""Nine records: all edges can be tried."""


def every_edge(degree: int) -> list[dict[str, np.ndarray]]:
    """Return each record of the small schema with each other and itself, per slot."""
    index = np.array(list(product(range(9), repeat=degree))).T
    return [{"x": rows // 3, "y": rows % 3 - 1} for rows in index]


@st.composite
def expressions(draw: st.DrawFn, degree: int, size: int = 14) -> ex.Expression:
    """Draw kernels over the small schema of about `size` nodes, most of them with comparisons."""
    choices = st.integers(0, 11)

    def leaf() -> ex.Expression:
        if draw(choices) == 0:
            return ex.Constant(Fraction(draw(st.integers(-2, 3))))
        return ex.Field(draw(st.integers(0, degree - 1)), draw(st.sampled_from("xy")))

    def number(size: int) -> ex.Expression:
        choice = draw(choices)
        if size <= 1:
            return leaf()
        if choice < 6:
            return (ex.Add, ex.Subtract, ex.Multiply)[choice % 3](
                number(size // 2), number(size - 1 - size // 2)
            )
        if choice < 8:
            return (ex.Sign, ex.Absolute)[choice % 2](
                ex.Subtract(number(size // 2), number(size // 2))
            )
        return (
            bit(size)
            if choice < 11
            else ex.Select(bit(size // 3), number(size // 3), number(size // 3))
        )

    def bit(size: int) -> ex.Expression:
        choice = draw(choices)
        if size < 6 or choice < 4:
            return (ex.Less, ex.Equal)[choice % 2](number(size // 2), number(size // 2))
        inner = (bit(size // 2), bit(size - size // 2))
        return ex.Not(bit(size - 1)) if choice == 4 else (ex.And, ex.Or, ex.Xor)[choice % 3](*inner)

    return number(size)
