"""Shared by the tests of edges by triples: studies, and one chunk evaluated by all its owners."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tests.support.ideal_transfers import ideal_seats
from tests.support.mpc_studies import seed_of
from tests.support.studies import make_study
from tests.support.tossing import seats
from umpc.crypto.ring import RINGS, Ring
from umpc.crypto.rounds import MeshLine, run_mesh
from umpc.mpc.arrays import BitArray
from umpc.mpc.chunks import Pattern
from umpc.mpc.garbled.circuits import Circuit
from umpc.mpc.triples.cells import ChunkOwner, evaluate_bits
from umpc.mpc.triples.plan import TriplesPlan, triples_program
from umpc.protocols.registry import checked
from umpc.study.document import Study
from umpc.ustat.clear import Columns
from umpc.ustat.kernel import Kernel

BY_TRIPLES = {"backend": "triples", "preprocessing": "none", "dealer": None}


def triples_study(kernels: str | Sequence[str], nodes: int = 3, **changes) -> Study:
    return checked(make_study(kernels, nodes, **(BY_TRIPLES | changes)))


@dataclass
class TriplesChunk:
    """One chunk: its owners, their shares of the sums' bits edge by edge, and all messages."""

    plan: TriplesPlan
    owners: list[ChunkOwner]
    shares: list[np.ndarray]
    sent: list[MeshLine]

    @property
    def values(self) -> list[np.ndarray]:
        """Each sum's value in every edge, put together."""
        ring = self.plan.ring
        bits = sum(self.shares[1:], self.shares[0])
        rows = {wire: bits[row] for row, wire in enumerate(self.plan.outputs)}
        count = self.owners[0].count
        found = []
        for constant, terms in self.plan.circuit.sums:
            edges = range(count)
            found.append(
                [
                    ring.decode(
                        constant + sum(weight * int(rows[wire][edge]) for wire, weight in terms)
                    )
                    for edge in edges
                ]
            )
        return found


def plan_of(kernels: Kernel | Sequence[Kernel], pattern: Pattern, ring: Ring = RINGS[0]):
    listed = [kernels] if isinstance(kernels, Kernel) else kernels
    return triples_program(listed, ring, [pattern]).plans[pattern]


def input_bits(circuit: Circuit, records: Sequence[Columns]) -> BitArray:
    """The values of the input wires: (inputs, n). Args: records: row j of each is edge j."""
    count = max((len(column) for columns in records for column in columns.values()), default=0)
    bits = np.empty((len(circuit.inputs), count), dtype=np.uint8)
    for row, (record, field, bit) in zip(bits, circuit.inputs, strict=True):
        row[:] = records[record][field] >> bit & 1
    return bits


def owners_of(
    plan: TriplesPlan,
    records: Sequence[Mapping[str, np.ndarray]],
    label: str,
    *,
    real: bool = False,
) -> list[ChunkOwner]:
    """The owners of a chunk in which edge j is row j of every slot's table.

    Args: real: with channels of real transfers, whose messages hide something.
    """
    bits = input_bits(plan.circuit, records)
    slots = np.array([plan.pattern[bit.record] for bit in plan.circuit.inputs])
    return [
        ChunkOwner(
            plan,
            seat,
            bits * (slots == seat.number)[:, None].astype(np.uint8),
            seed_of(f"{label} {seat.number}"),
        )
        for seat in (seats if real else ideal_seats)(plan.parties, label)
    ]


def run_triples(
    plan: TriplesPlan,
    records: Sequence[Mapping[str, np.ndarray]],
    label: str,
    *,
    real: bool = False,
) -> TriplesChunk:
    owners = owners_of(plan, records, label, real=real)
    shares, sent = run_mesh([evaluate_bits(owner) for owner in owners])
    return TriplesChunk(plan, owners, shares, sent)
