"""Shared by the tests of a trusted curator: a study for each mechanism, and tables for it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tests.support.studies import KENDALL, make_study, random_tables
from umpc.protocols.registry import checked
from umpc.study.document import Study
from umpc_papers.central.settings import MECHANISMS, SUBSAMPLED

SHAPE = {"protocol": "central", "backend": "none", "preprocessing": "none", "dealer": None}
COUNTS = (11, 9)
__all__ = ["COUNTS", "MECHANISMS", "central_study", "central_tables"]


def central_study(noise: str = "laplace", nodes: int = 2, **changes) -> Study:
    """Return a study over the fields x and y, from 0 to 3.

    The changes are those of `make_study`.
    """
    shape = SHAPE | {
        "noise": noise,
        "edges": "2n" if noise in SUBSAMPLED else "all",
        "nodes": nodes,
        "kernels": KENDALL,
    }
    return checked(make_study(**(shape | changes)))


def central_tables(
    counts: Sequence[int] = COUNTS, label: str = "central"
) -> list[dict[str, np.ndarray]]:
    return random_tables(counts, label)
