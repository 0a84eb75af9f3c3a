"""Kernels of every shape that the protocol knows, a schema for them, and records at all corners of it."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from umpc.ustat.kernel import Kernel
from umpc.ustat.statistics import find_statistic
from umpc.ustat.tracing import maximum, minimum, select, sign, trace

from .studies import make_schema

SCHEMA = make_schema(
    x=("0", "5"),
    y=("-2", "2", "0.5"),
    z=("-1000", "1000"),
    big=("-4503599627370496", "4503599627370496"),
    label=("0", "1"),
    fixed=("3", "3"),
)

EXPRESSIONS = {
    "kendall_tau": find_statistic("kendall_tau").expression(["x", "y"]),
    "gini_mean_difference": find_statistic("gini_mean_difference").expression(["y"]),
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
    "unlike_forms": trace(lambda a, b: sign(3 * a.x - 3 * b.x) * sign(a.y + a.x - b.y - b.x) + (a.x == b.x)),
    "crossed_fields": trace(lambda a, b: (a.x < b.y) + (b.x < a.y)),
    "against_a_constant": trace(lambda a, b: (a.x + b.x < 5) + (a.y * a.y + b.y * b.y == 4)),
    "local_bits": trace(lambda a, b: (a.x < 3) * (b.x < 3)),
    "local_bits_and_a_comparison": trace(lambda a, b: (a.x < 3) * (b.x < 3) * abs(a.z - b.z)),
    "compared_bits": trace(lambda a, b: (a.x < 3) == (b.x < 3)),
    "three_comparisons": trace(lambda a, b: sign(a.x - b.x) * sign(a.y - b.y) * (a.label == b.label)),
    "wide_sign": trace(lambda a, b: sign(a.big - b.big) * sign(a.x - b.x)),
    "wide_distance": trace(lambda a, b: abs(a.big - b.big)),
    "one_value_field": trace(lambda a, b: (a.fixed == b.fixed) + abs(a.fixed - b.fixed)),
    "bit_times_other_value": trace(lambda a, b: (a.x < b.x) * b.z + (b.x < a.x) * a.z),
}
KERNELS = {name: Kernel(expression, SCHEMA) for name, expression in EXPRESSIONS.items()}


def record_corners() -> dict[str, np.ndarray]:
    """Records at the bounds of all fields, all equal, crossed, in the middle, and one step off a bound."""
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
    return {f.name: rng.integers(f.lower_units, f.upper_units, count, endpoint=True) for f in SCHEMA}


def take(records: dict[str, np.ndarray], rows: np.ndarray | slice) -> dict[str, np.ndarray]:
    return {name: column[rows] for name, column in records.items()}


def corner_edges() -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Every corner record against every other and itself: (first, second)."""
    corners = record_corners()
    count = len(corners["x"])
    return take(corners, np.repeat(np.arange(count), count)), take(corners, np.tile(np.arange(count), count))
