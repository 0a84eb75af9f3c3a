"""Clipping: every node moves its own records into a ball before it uses them.

A coordinate has a public centre c and a public scale s. A record's length is the Euclidean norm of
((x_i − c_i)/s_i). A longer record than C is moved straight towards the centre, until its length is
C, and each value is then rounded towards the centre to a step of its field. Neither depends on
other records, so replacing one record still changes one record.

Rounding towards the centre never makes a record longer. The centre is a multiple of the field's
resolution, so every value has a step between itself and the centre, or is the centre.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from umpc.errors import StudyError
from umpc.ustat.schema import FieldSchema

ALLOWED = 1 + Fraction(1, 1 << 26)
"""No clipped record is longer than C by more than this factor, which sensitivities count in."""
ROUNDING = 1e-9
"""Records that are longer than C by less stay, because lengths are computed in floats."""


@dataclass(frozen=True)
class Coordinate:
    """A field with its centre and scale, in steps of its resolution.

    Args: centre: a whole number of steps. scale: > 0.
    """

    name: str
    centre: int
    scale: Fraction


def coordinate_of(
    field: FieldSchema, centre: Fraction | None, scale: Fraction | None
) -> Coordinate:
    """The coordinate of a field.

    Args: centre, scale: in the field's unit; None takes the middle of the bounds, and half their
        distance.

    Raises: StudyError where the centre is out of bounds or between two steps, or the scale is not
        above 0.
    """
    if field.categories:
        raise StudyError(
            f"field {field.name!r} has categories, and a coordinate of a vector is a number; "
            f"leave it out of the coordinates"
        )
    low, high = field.lower_units, field.upper_units
    middle = (low + high) // 2 if centre is None else centre / field.resolution
    if Fraction(middle).denominator != 1 or not low <= middle <= high:
        raise StudyError(
            f"field {field.name!r}: the centre must be a multiple of the resolution "
            f"{field.resolution} between {field.lower} and {field.upper}, got {centre}"
        )
    width = Fraction(max(high - int(middle), int(middle) - low))
    steps = width if scale is None else scale / field.resolution
    if steps <= 0:
        raise StudyError(f"field {field.name!r}: the scale must be above 0, got {scale}")
    return Coordinate(field.name, int(middle), steps)


def clip_columns(
    columns: Mapping[str, NDArray[np.int64]], coordinates: tuple[Coordinate, ...], most: Fraction
) -> dict[str, NDArray[np.int64]]:
    """The columns with every record inside the ball of radius `most`.

    Args: columns: field → (records,) int64, in steps of the resolution.
    """
    if not coordinates:
        return dict(columns)
    away = np.stack([columns[each.name] - each.centre for each in coordinates])
    scales = np.array([[float(each.scale)] for each in coordinates])
    lengths = np.sqrt(((away / scales) ** 2).sum(axis=0))
    limit = float(most)
    is_outside = lengths > limit * (1 + ROUNDING)
    factors = np.where(is_outside, limit / np.maximum(lengths, limit), 1.0)
    moved = np.trunc(away * factors).astype(np.int64)
    found = dict(columns)
    for row, each in zip(moved, coordinates, strict=True):
        found[each.name] = row + each.centre
    return found
