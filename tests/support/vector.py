"""Studies of `vector`, their tables, and their sums by numpy alone."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from tests.support.studies import Columns, by_class, generator
from umpc.protocols.registry import checked
from umpc.protocols.vector.losses import AUC_HINGE, LOSSES, clip_columns
from umpc.protocols.vector.settings import VectorSettings, clip_of, coordinates_of, kernels_of
from umpc.study.document import Study
from umpc.study.parts import FieldText, Participant
from umpc.ustat.estimators import VECTOR
from umpc.ustat.hypergraph import Hypergraph

NODES = 3


def vector_study(
    of: str = AUC_HINGE, weights: Sequence[str] = ("1/3", "-2"), check: bool = True, **changes
) -> Study:
    """A step over a and b with a label y.

    Args: of: the loss. changes: of the study or of its settings.
    """
    label = FieldText.of_categories("y", ("yes", "no"), public=of == AUC_HINGE)
    defaults = {"loss": of, "coordinates": ("a", "b"), "weights": tuple(weights)}
    defaults |= {"delta": "1e-6", "edges": "40", "dealer": Participant("dealer", "dealer:1")}
    study = Study(
        name="step",
        statistic=of,
        kernels=(),
        fields=(FieldText("a", "0", "20", "1"), FieldText("b", "-4", "4", "0.5"), label),
        epsilon="3",
        max_colluding=NODES - 1,
        coordinator="coordinator",
        nodes=tuple(Participant(f"node-{number}", "node:1") for number in range(NODES)),
        settings=VectorSettings(**defaults),
        estimator=VECTOR,
        sampling=LOSSES[of].sampling,
    ).replaced(**changes)
    if "kernels" not in changes:
        study = study.replaced(kernels=kernels_of(study))
    return checked(study) if check else study


def plain_study(kernels: Sequence[str], **changes) -> Study:
    """A vector of any kernels over a and b."""
    fields = (FieldText("a", "0", "20", "1"), FieldText("b", "-4", "4", "0.5"))
    text = " ".join(kernels)
    used = tuple(field for field in fields if f".{field.name}" in text)
    facts = {"loss": "", "coordinates": (), "weights": (), "sampling": "balanced"}
    return vector_study(kernels=tuple(kernels), **({"fields": used} | facts | changes))


def vector_tables(label: str, records: int = 12) -> list[Columns]:
    """Random records of every node, in steps of the fields."""
    rng = generator(label)
    return [
        {
            "a": rng.integers(0, 21, records),
            "b": rng.integers(-8, 9, records),
            "y": np.arange(records) % 3 // 2,
        }
        for _ in range(NODES)
    ]


def sums_by_numpy(study: Study, tables: Sequence[Columns], graph: Hypergraph) -> np.ndarray:
    """Σ g·(x − y) over E in the fields' units, of clipped records, from the papers' formulas."""
    coordinates, most = coordinates_of(study), clip_of(study)
    clipped = by_class(study, [clip_columns(table, coordinates, most) for table in tables])
    settings = study.settings_as(VectorSettings)
    weights = np.array([float(Fraction(text)) for text in settings.weights])
    total = np.zeros(2)
    for owners, cell in graph.cells.items():
        index = cell.edges(0, cell.count)
        rows = list(zip(owners, index, strict=True))
        x, y = (
            np.stack([clipped[node]["a"][row], clipped[node]["b"][row] / 2], 1)
            for node, row in rows
        )
        d = np.round((x - y) @ weights, 9)
        near = np.abs(d) < 1 if settings.loss != AUC_HINGE else d < 1
        if settings.loss == AUC_HINGE:
            gate = near.astype(float)
        else:
            first, second = (clipped[node]["y"][row] for node, row in rows)
            gate = np.sign(d) * np.where(first == second, 1.0, -near.astype(float))
        total += (gate[:, None] * (x - y)).sum(axis=0)
    return total
