"""Shared by the tests of one-message studies: a study per protocol, and the exact values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tests.support.protocols import ASKS, ONE_MESSAGE, messages_of, usual
from tests.support.studies import AUC, KENDALL, generator, make_study
from umpc.protocols.base.seed_agreement import by_class
from umpc.protocols.registry import checked
from umpc.study.document import Study
from umpc.study.parts import FieldBins

NO_EDGES = {
    "edges": "all",
    "noise": "local",
    "backend": "none",
    "preprocessing": "none",
    "dealer": None,
}
SHAPES = {
    "bell-ldp": {"kernels": KENDALL},
    "bell-auc": {"kernels": AUC, "sampling": "two_sample", "levels": 2},
    "ghazi-ldp": {"kernels": KENDALL},
    "ghazi-rounds": {"kernels": KENDALL},
    "local-mean": {"kernels": "a.x", "degree": 1},
}
"""Protocol → the study that it runs. The fields x and y go from 0 to 3."""
ALONE = tuple(protocol for protocol in ONE_MESSAGE if protocol != ASKS)
"""The protocols whose message leads to no question."""


def local_study(protocol: str, nodes: int = 2, **changes) -> Study:
    """Return a checked study of a protocol.

    The changes are those of `make_study`. Fields without bins get the usual ones, which are one bin
    per value here.
    """
    shape = NO_EDGES | SHAPES[protocol] | {"protocol": protocol}
    return checked(usual(make_study(**(shape | {"nodes": nodes} | changes))))


def local_tables(
    study: Study, counts: Sequence[int], label: str = "local"
) -> list[dict[str, np.ndarray]]:
    """Return tables of correlated records; where there are classes, each occurs in each table."""
    rng, tables = generator(label), []
    for count in counts:
        x = rng.integers(0, 4, count)
        columns = {"x": x, "y": np.clip(x + rng.integers(-1, 2, count), 0, 3)}
        if study.two_sample:
            columns["label"] = (x + rng.integers(0, 4, count) < 3).astype(np.int64)
            columns["label"][:2] = (0, 1)[:count]
        tables.append(columns)
    return tables


def quantised(study: Study, tables: Sequence[Mapping[str, np.ndarray]]) -> float:
    """Return the value of the quantised records, which the estimate is close to."""
    together = {name: np.concatenate([table[name] for table in tables]) for name in tables[0]}
    return messages_of(study).quantised(*by_class(study, together))


def bins(**given: int | Sequence[str]) -> tuple[FieldBins, ...]:
    return tuple(
        FieldBins(f, v) if isinstance(v, int) else FieldBins(f, 0, tuple(v))
        for f, v in given.items()
    )
