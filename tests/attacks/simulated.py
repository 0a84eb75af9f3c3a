"""Simulated studies whose first node is a liar: the effect of its lie next to the honest result."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from tests.attacks.parties import LYING_NODE
from tests.support.studies import Entropy
from umpc.simulation import simulate
from umpc.study.document import Study
from umpc.testing import lying


def first_node_lies() -> AbstractContextManager[None]:
    """Let the first node of simulated studies be a liar, and no other."""

    def of_the_first(lie: Callable[..., Any]) -> Callable[..., Any]:
        def step(honest: Any, node: Any, *given: Any) -> Any:
            return honest(node, *given) if node.index else lie(honest, node, *given)

        return step

    return lying("node", **{name: of_the_first(lie) for name, lie in LYING_NODE.items()})


def estimates(
    study: Study, tables: Sequence[Mapping[str, np.ndarray]], label: str
) -> tuple[float, float]:
    """Return the simulated study's estimate, and the one that its first node's lie makes of it."""
    honest = simulate(study, tables, Entropy(label)).report
    with first_node_lies():
        lied = simulate(study, tables, Entropy(label)).report
    return honest.estimate, lied.estimate
