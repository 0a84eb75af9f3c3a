"""Studies with backend = "grid", and their parties, step by step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tests.support.protocols import begin_all, coordinator_of, make_node, run_own_steps
from tests.support.studies import KENDALL, LOUD, Columns, Entropy, make_study
from umpc.mpc.chunks import Chunk
from umpc.protocols.grid.node import GridNode
from umpc.protocols.registry import protocol_of
from umpc.study import messages as m
from umpc.study.cost import Measured
from umpc.study.document import Study
from umpc.study.messages import Frame
from umpc.study.report import Report
from umpc.study.settings import LYING_NODES

COUNTS = (5, 0, 4)
"""The records of each node; one has none."""


def grid_study(kernels: str | Sequence[str] = KENDALL, nodes: int = 3, **changes: Any) -> Study:
    """A study by the grid; without a grid's noise settings, every node adds its own noise.

    Where nodes may lie, by default all of them verify.
    """
    facts = {"protocol": "grid", "backend": "grid", "noise": "distributed"}
    if changes.get("adversary") == LYING_NODES:
        facts["max_colluding"] = nodes - 1
    facts |= changes
    return make_study(kernels, nodes, **facts)


def lying(study: Study) -> Study:
    """The study in the grade in which nodes may lie; all of them verify."""
    return study.replaced(adversary=LYING_NODES, max_colluding=len(study.nodes) - 1)


def silent(study: Study) -> Study:
    """The study with hardly any noise."""
    return study.replaced(epsilon=LOUD, noise="distributed", delta="", max_colluding=0)


class GridRun:
    """The parties of one attempt, which a test takes as many steps as it wants.

    Args: tables: of every node. entropy: of everybody.
    """

    def __init__(self, study: Study, tables: Sequence[Columns], entropy: Any = None):
        self.study = study
        self.entropy = entropy or Entropy("grid run")
        self.coordinator = coordinator_of(study)
        self.nodes: list[GridNode] = [
            make_node(node.name, study, table, len(next(iter(table.values()))), self.entropy)
            for node, table in zip(study.nodes, tables, strict=True)
        ]

    def prepare(self) -> GridRun:
        """Everything before the data, with the dealer's material."""
        accepted = [m.Accepted(self.study.hash, node.accept()) for node in self.nodes]
        agree = self.coordinator.agree(accepted)
        begin_all(self.coordinator, self.nodes, agree.members)
        self.attempt = self.coordinator.attempt
        self.dealing = protocol_of(self.study).dealing(self.attempt, self.entropy)
        for place, node in enumerate(self.nodes):
            node.receive_seed(self.dealing.seed_frame(place).payload)
        for chunk in self.attempt.chunks():
            self.material = dict(self.dealing.deal_one(chunk))
            for place in range(len(self.nodes)):
                self.give(place, self.material[place].payload, chunk)
        return self

    def give(self, place: int, payload: bytes, chunk: Chunk | None = None) -> None:
        """One node's part of a chunk, by default of the numbers, which come last."""
        chunk = chunk or list(self.attempt.chunks())[-1]
        protocol = self.nodes[place].protocol(chunk, payload, self.attempt.tree_hash())
        try:
            next(protocol)
        except StopIteration as stop:
            self.nodes[place].add(chunk, stop.value)

    def count(self) -> GridRun:
        """Every node counts its own records."""
        for node in self.nodes:
            run_own_steps(node)
        return self

    def send(self) -> GridRun:
        """Every node's masked histogram to the coordinator."""
        self.masked: list[list[Frame]] = [list(node.aggregation.masked()) for node in self.nodes]
        for place, frames in enumerate(self.masked):
            for frame in frames:
                self.coordinator.aggregation.add(place, frame)
        return self

    def tell(self) -> GridRun:
        """The total to every node."""
        self.total = list(self.coordinator.aggregation.total())
        for node in self.nodes:
            for frame in self.total:
                node.aggregation.take(frame)
        return self

    def confirm(self) -> GridRun:
        """Everybody's signatures to everybody."""
        signatures = [node.aggregation.sign() for node in self.nodes]
        self.coordinator.aggregation.check_signed(signatures)
        for node in self.nodes:
            node.aggregation.confirm(signatures)
        return self

    def finish(self) -> Report:
        """The release of all nodes, and the report."""
        self.released = [node.release() for node in self.nodes]
        return self.coordinator.finish(self.released, Measured())

    def up_to_release(self) -> GridRun:
        return self.prepare().count().send().tell().confirm()


def cells_of(frames: Sequence[Frame], bits: int) -> np.ndarray:
    """The elements of a vector's frames."""
    payload = b"".join(frame.payload for frame in frames)
    return np.frombuffer(payload, dtype=f"<u{bits // 8}")
