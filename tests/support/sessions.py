"""Sessions of all nodes of a small study, which a test takes as many steps as it wants."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from tests.support.garbled import without_points
from tests.support.protocols import make_node, run_own_steps
from tests.support.studies import Entropy, make_study, random_tables
from umpc.crypto.rounds import run_in_memory, run_mesh
from umpc.dealer.material import MaterialDealer
from umpc.mpc.chunks import Chunk


class Run:
    """One run of a study. The changes are those of `make_study`."""

    def __init__(self, counts: Sequence[int] = (3, 4), label: str = "run", **changes):
        self.study = make_study(nodes=len(counts), **changes)
        self.tables = random_tables(counts, label, classes=self.study.two_sample)
        self.nodes = [
            make_node(node.name, self.study, table, count, Entropy(f"{label} {i}"))
            for i, (node, table, count) in enumerate(
                zip(self.study.nodes, self.tables, counts, strict=True)
            )
        ]
        self.members = [node.accept() for node in self.nodes]

    def agree(self) -> Run:
        self.openings = [node.agree(self.members) for node in self.nodes]
        return self

    def begin(self) -> Run:
        self.attempts = [node.begin(self.openings) for node in self.nodes]
        self.attempt = self.attempts[0]
        self.dealer = MaterialDealer(self.attempt, Entropy("dealer")) if self.study.dealer else None
        return self

    def seed(self) -> Run:
        for index, node in enumerate(self.nodes):
            node.receive_seed(self.dealer.seed_frame(index).payload)
        return self

    def set_up(self) -> Run:
        """The transfers of every two nodes that take some."""
        with without_points():
            for one, two in combinations(range(len(self.nodes)), 2):
                ends = [self.nodes[one].set_up(two), self.nodes[two].set_up(one)]
                if None not in ends:
                    run_in_memory(ends)
        return self

    def toss(self) -> Run:
        parties = [party for node in self.nodes if (party := node.toss()) is not None]
        if parties:
            run_mesh(parties)
        return self

    def send_fields(self, sender: int, receiver: int) -> None:
        self.nodes[receiver].receive_fields(sender, self.nodes[sender].fields_for(receiver))

    def fields(self) -> Run:
        for sender, node in enumerate(self.nodes):
            for receiver in node.peers:
                self.send_fields(sender, receiver)
        return self

    def material(self, chunk: Chunk, node: int) -> bytes:
        return dict(self.dealer.deal_one(chunk))[node].payload

    def protocols(self, chunk: Chunk) -> list:
        """Return the chunk's protocols, in party order."""
        tree_hash = self.attempt.tree_hash()
        return [
            self.nodes[node].protocol(chunk, self.material(chunk, node), tree_hash)
            for node in chunk.parties
        ]

    def finish(self, chunk: Chunk) -> None:
        results, _ = run_in_memory(self.protocols(chunk))
        for node, result in zip(chunk.parties, results, strict=True):
            self.nodes[node].add(chunk, result)

    def evaluate(self) -> Run:
        for chunk in self.attempt.chunks():
            self.finish(chunk)
        for node in self.nodes:
            run_own_steps(node)
        return self


def first_chunk(run: Run, parties: int = 2) -> Chunk:
    """Return the first chunk of that many owners."""
    return next(chunk for chunk in run.attempt.chunks() if len(chunk.parties) == parties)
