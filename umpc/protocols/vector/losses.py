"""Pairwise losses of a linear model: their gradients as kernels over one E.

The model is the score s(x) = Σ w_j·x_j, with public weights. A pair (x, y) has the gradient
g(x, y)·(x − y), where the *gate* g is a function of the scores' difference d = s(x) − s(y) and of
the labels. All coordinates share the gate, so an edge has one comparison, whatever the dimension.

| loss | pairs | ℓ(x, y) | gate g | g lies in |
|---|---|---|---|---|
| `auc_hinge` | x of the first class, y of the other | max(0, m − d) | −[d < m] | [−1, 0] |
| `contrastive` | all | same class: abs(d); else max(0, m − abs(d)) | below | [−1, 1] |

For `contrastive` the gate is sign(d) in a pair of one class, and −sign(d)·[abs(d) < m] otherwise.

*Sensitivity.* Every record x lies in a ball of radius C around the public centre (`losses.py`),
in the norm of the public scales. Replace x in one edge with y. Then g·(x − y) moves

- within the hull of 0 and the ball x − y, if g has one sign. The distance of two of its points is
  at most 2C: that is the ball's diameter, and no x − y is longer.
- between two vectors of length at most 2C otherwise, so by at most 4C.

The kernels here are without the minus sign of `auc_hinge`, which the descent puts back.

*Clipping.* Clipping: every node moves its own records into a ball before it uses them.

A coordinate has a public centre c and a public scale s. A record's length is the Euclidean norm of
((x_i − c_i)/s_i). A longer record than C is moved straight towards the centre, until its length is
C, and each value is then rounded towards the centre to a step of its field. Neither depends on
other records, so replacing one record still changes one record.

Rounding towards the centre never makes a record longer. The centre is a multiple of the field's
resolution, so every value has a step between itself and the centre, or is the centre.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from umpc.errors import StudyError
from umpc.ustat import expression as ex
from umpc.ustat.schema import FieldSchema
from umpc.ustat.text import to_text

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
    # norm of the scales, in floats
    lengths = np.sqrt(((away / scales) ** 2).sum(axis=0))
    limit = float(most)
    is_outside = lengths > limit * (1 + ROUNDING)
    # shrink to the sphere; rounding is towards the centre
    factors = np.where(is_outside, limit / np.maximum(lengths, limit), 1.0)
    # truncation never lengthens a coordinate
    moved = np.trunc(away * factors).astype(np.int64)
    found = dict(columns)
    for row, each in zip(moved, coordinates, strict=True):
        found[each.name] = row + each.centre
    return found


# --- losses ---------------------------------------------------------------------------------------

AUC_HINGE = "auc_hinge"
CONTRASTIVE = "contrastive"


@dataclass(frozen=True)
class Loss:
    """A pairwise loss.

    Args:
        sampling: of the pairs that it takes.
        direction: the gradient is this times the kernels' means.
        change: by how many C one record moves one edge's vector, in the norm of the scales.
        least_gate: the least value of the gate that the kernels have; the largest is 1.
    """

    name: str
    sampling: str
    direction: int
    change: int
    least_gate: int


LOSSES = {
    loss.name: loss
    for loss in (
        Loss(AUC_HINGE, "two_sample", -1, 2, 0),
        Loss(CONTRASTIVE, "balanced", 1, 4, -1),
    )
}


def gradient_kernels(
    loss: str,
    coordinates: Sequence[str],
    weights: Sequence[Fraction],
    margin: Fraction,
    label: str,
) -> tuple[str, ...]:
    """The kernels g·(x_i − y_i), one for each coordinate, as canonical texts.

    Args:
        weights: w_j, for values of the fields as they are.
        margin: m > 0.
        label: the field that `contrastive` compares; `auc_hinge` needs none.
    """
    score = _score(coordinates, weights)
    gate = _hinge_gate(score, margin) if loss == AUC_HINGE else _contrast(score, margin, label)
    found = []
    for name in coordinates:
        difference = ex.Subtract(ex.Field(0, name), ex.Field(1, name))
        found.append(to_text(difference if gate is None else ex.Multiply(gate, difference)))
    return tuple(found)


def _score(coordinates: Sequence[str], weights: Sequence[Fraction]) -> ex.Expression | None:
    """d, as a balanced sum, which keeps the text's nesting low; None where all weights are 0."""
    terms: list[ex.Expression] = []
    for name, weight in zip(coordinates, weights, strict=True):
        if weight:
            difference = ex.Subtract(ex.Field(0, name), ex.Field(1, name))
            terms.append(ex.Multiply(ex.Constant(weight), difference))
    while len(terms) > 1:
        pairs = [terms[place : place + 2] for place in range(0, len(terms), 2)]
        terms = [ex.Add(*pair) if len(pair) == 2 else pair[0] for pair in pairs]
    return terms[0] if terms else None


def _hinge_gate(score: ex.Expression | None, margin: Fraction) -> ex.Expression | None:
    """[d < m], or None where it is always 1."""
    return None if score is None else ex.Less(score, ex.Constant(margin))


def _contrast(score: ex.Expression | None, margin: Fraction, label: str) -> ex.Expression:
    """sign(d)·(same − different·[|d| < m])."""
    same = ex.Equal(ex.Field(0, label), ex.Field(1, label))
    value = ex.Constant(Fraction(0)) if score is None else score
    near = ex.And(ex.Less(value, ex.Constant(margin)), ex.Less(ex.Constant(-margin), value))
    apart = ex.Subtract(ex.Constant(Fraction(0)), near)
    one = ex.Constant(Fraction(1))
    return ex.Multiply(ex.Sign(value), ex.Select(same, one, apart))
