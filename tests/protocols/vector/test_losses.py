"""Pairwise losses and clipping: what a record can move, and the kernels' texts."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from tests.support.studies import generator
from umpc.errors import StudyError
from umpc.protocols.vector.losses import (
    ALLOWED,
    LOSSES,
    Coordinate,
    clip_columns,
    coordinate_of,
    gradient_kernels,
)
from umpc.ustat.schema import FieldSchema


def test_a_clipped_record_is_inside_the_ball_and_a_short_one_stays():
    rng = generator("clip")
    columns = {"a": rng.integers(-900, 900, 2000), "b": rng.integers(0, 60, 2000)}
    columns["c"] = np.ones(2000, dtype=np.int64)
    coordinates = (Coordinate("a", 7, Fraction(50)), Coordinate("b", 30, Fraction(7, 2)))
    for most in (Fraction(1), Fraction(5, 2), Fraction(40)):
        clipped = clip_columns(columns, coordinates, most)
        lengths = [
            ((int(a) - 7) / Fraction(50)) ** 2 + ((int(b) - 30) / Fraction(7, 2)) ** 2
            for a, b in zip(clipped["a"], clipped["b"], strict=True)
        ]
        assert max(lengths) <= (most * ALLOWED) ** 2  # exactly, in fractions
        assert max(lengths) > (min(most, 15) * Fraction(9, 10)) ** 2
        before = ((columns["a"] - 7) / 50) ** 2 + ((columns["b"] - 30) / 3.5) ** 2
        short = before <= float(most) ** 2
        assert (clipped["a"][short] == columns["a"][short]).all()
        assert (clipped["b"][short] == columns["b"][short]).all()
        assert clipped["c"] is columns["c"]


def test_the_middle_of_odd_bounds_is_a_step_too():
    field = FieldSchema("a", Fraction(0), Fraction(5, 2), Fraction(1, 2))
    assert coordinate_of(field, None, None) == Coordinate("a", 2, Fraction(3))
    given = coordinate_of(field, Fraction(1), Fraction(1, 4))
    assert given == Coordinate("a", 2, Fraction(1, 2))
    for centre, scale in ((Fraction(1, 3), None), (Fraction(9), None), (None, Fraction(0))):
        with pytest.raises(StudyError, match="field 'a'"):
            coordinate_of(field, centre, scale)


def test_one_record_moves_an_edge_by_no_more_than_the_stated_part_of_the_ball():
    """Random records of a ball, and those that move the most; 2C is reached."""
    rng = generator("change")
    points = rng.normal(size=(60, 3))
    points /= np.linalg.norm(points, axis=1)[:, None]
    for name, gates in (("auc_hinge", (0.0, 1.0)), ("contrastive", (-1.0, 0.0, 1.0))):
        worst = 0.0
        for y in points[:20]:
            values = np.concatenate([gate * (points - y) for gate in gates])
            far = np.linalg.norm(values[:, None] - values[None], axis=2).max()
            worst = max(worst, far)
        assert 0.8 * LOSSES[name].change < worst <= LOSSES[name].change + 1e-9


def test_the_kernels_share_their_gate_and_zero_weights_need_no_comparison():
    halves = [Fraction(1, 2), Fraction(-3)]
    first, second = gradient_kernels("auc_hinge", ["a", "b"], halves, Fraction(1), "")
    assert first == "((1/2) * (a.a - b.a) + (-3) * (a.b - b.b) < 1) * (a.a - b.a)"
    assert second.endswith("* (a.b - b.b)") and second.split(" * (a.b")[0] in first + second
    zeros = [Fraction(0)] * 2
    assert gradient_kernels("auc_hinge", ["a", "b"], zeros, Fraction(1), "")[0] == "a.a - b.a"
