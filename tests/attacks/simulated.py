"""Simulated studies whose first node is a liar: the effect of its lie next to the honest result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from tests.attacks.parties import LyingNode
from tests.support.studies import Entropy
from umpc.protocols.u_mpc.node import UMpcNode
from umpc.protocols.u_mpc.protocol import UMpc
from umpc.simulation import simulate
from umpc.study.document import Study


def let_node_0_lie(patch: pytest.MonkeyPatch) -> None:
    """Let the first node of simulated studies be a liar, and no other."""

    def node(self: UMpc, own: Any, *rest: Any) -> UMpcNode:
        return (LyingNode if own.name == "node-0" else UMpcNode)(own, *rest)

    patch.setattr(UMpc, "node", node)


def estimates(
    study: Study, tables: Sequence[Mapping[str, np.ndarray]], label: str
) -> tuple[float, float]:
    """Return the simulated study's estimate, and the one that its first node's lie makes of it."""
    honest = simulate(study, tables, Entropy(label)).report
    with pytest.MonkeyPatch.context() as patch:
        let_node_0_lie(patch)
        lied = simulate(study, tables, Entropy(label)).report
    return honest.estimate, lied.estimate
