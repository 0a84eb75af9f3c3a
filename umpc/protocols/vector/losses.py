"""Pairwise losses of a linear model: their gradients as kernels over one E.

The model is the score s(x) = Σ w_j·x_j, with public weights. A pair (x, y) has the gradient
g(x, y)·(x − y), where the *gate* g is a function of the scores' difference d = s(x) − s(y) and of
the labels. All coordinates share the gate, so an edge has one comparison, whatever the dimension.

| loss | pairs | ℓ(x, y) | gate g | g lies in |
|---|---|---|---|---|
| `auc_hinge` | x of the first class, y of the other | max(0, m − d) | −[d < m] | [−1, 0] |
| `contrastive` | all | same class: abs(d); else max(0, m − abs(d)) | below | [−1, 1] |

For `contrastive` the gate is sign(d) in a pair of one class, and −sign(d)·[abs(d) < m] otherwise.

*Sensitivity.* Every record x lies in a ball of radius C around the public centre (`clipping.py`),
in the norm of the public scales. Replace x in one edge with y. Then g·(x − y) moves

- within the hull of 0 and the ball x − y, if g has one sign. The distance of two of its points is
  at most 2C: that is the ball's diameter, and no x − y is longer.
- between two vectors of length at most 2C otherwise, so by at most 4C.

The kernels here are without the minus sign of `auc_hinge`, which the descent puts back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from umpc.ustat import expression as ex
from umpc.ustat.text import to_text

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
