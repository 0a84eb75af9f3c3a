"""A study of pairs with a dealer, without the nodes: what each process would send and compute.

E is really drawn, and bytes, links and work follow from it. `simulated.py` prints them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np

from bench.work import Work
from umpc.crypto.prg import SEED_BYTES, Stream, derive
from umpc.crypto.signing import SIGNATURE_BYTES
from umpc.mpc.attempt import SharedAttempt
from umpc.mpc.masked.cells import fields_frames
from umpc.mpc.masked.compiler import FEW_EDGES, compile_program
from umpc.mpc.masked.material import dealt_bytes
from umpc.node.links import DIALS_AT_ONCE as DIALS
from umpc.planning.seconds import CALL, CONNECTION, FIXED, Network
from umpc.proto import codec
from umpc.protocols.u_mpc.protocol import UMpc
from umpc.protocols.u_mpc.settings import UMpcSettings
from umpc.study import messages as m
from umpc.study.attempt import commit
from umpc.study.document import Study
from umpc.study.messages import frame_bytes
from umpc.study.parts import FieldText, Participant
from umpc.study.sizes import Member
from umpc.ustat.sampling import balanced

CERTIFICATE_BYTES = 466
"""The certificate of a node with a short name, in DER."""
LINE = Network(0.02, 12_500_000)
FIELDS = (FieldText("age", "19", "87", "1"), FieldText("balance", "-3313", "71188", "1"))


def study_of(nodes: int) -> Study:
    return Study(
        name="simulated",
        statistic="kendall_tau",
        kernels=("sign(a.age - b.age) * sign(a.balance - b.balance)",),
        fields=FIELDS,
        epsilon="1",
        max_colluding=nodes - 1,
        coordinator="coordinator",
        settings=UMpcSettings(
            edges="2n",
            noise="distributed",
            dealer=Participant("dealer", "dealer.example.org:7100"),
        ),
        nodes=tuple(Participant(f"node-{i}", f"node-{i}.example.org:7100") for i in range(nodes)),
    )


def members_of(study: Study, records: int) -> list[Member]:
    """Members with so many records each, and with certificates of the usual size."""
    return [
        Member(
            n.name,
            records,
            commit(study.hash, n.name, bytes(SEED_BYTES)),
            bytes(32),
            certificate=bytes(CERTIFICATE_BYTES),
            signature=bytes(SIGNATURE_BYTES),
        )
        for n in study.nodes
    ]


@dataclass(frozen=True)
class Seconds:
    """The seconds of a study in which each process has a processor and a line of its own."""

    agreed: float
    offline: float
    online: float


class Simulated:
    """One attempt at a study of pairs, with `records` records a node. seed: a run's joint seed."""

    def __init__(self, study: Study, records: int, seed: bytes | None = None):
        self.study, self.records, self.nodes = study, records, len(study.nodes)
        members, openings = members_of(study, records), [bytes(SEED_BYTES)] * self.nodes
        self.attempt: SharedAttempt = UMpc().attempt(study, members, openings)
        ring = self.attempt._sums_ring
        few = self.attempt.sizes.edges <= FEW_EDGES
        self.program = compile_program(study.parsed_kernels, ring, {(0, 1)}, few=few)
        (self.plan,) = self.program.plans.values()
        self.seed = seed or self.attempt.seed
        self._draw()

    def _draw(self) -> None:
        """Draw E, and compute each cell's owners, edges, and number of records of each owner."""
        count = self.attempt.sizes.edges
        pairs = balanced(
            self.nodes * self.records, count, Stream(derive(self.seed, "edges")).words, 2
        )
        owners = pairs // self.records
        crossing = owners[:, 0] != owners[:, 1]
        owners, pairs = owners[crossing], pairs[crossing]
        codes, place, self.edges = np.unique(
            owners[:, 0] * self.nodes + owners[:, 1], return_inverse=True, return_counts=True
        )
        self.owners = np.stack(np.divmod(codes, self.nodes), axis=1)
        found = [
            np.unique(place * np.int64(self.nodes * self.records) + pairs[:, side])
            for side in (0, 1)
        ]
        self.met = np.stack(
            [
                np.bincount(each // (self.nodes * self.records), minlength=len(codes))
                for each in found
            ],
            axis=1,
        )
        self.links = np.bincount(self.owners.ravel(), minlength=self.nodes)

    @cached_property
    def sent(self) -> np.ndarray:
        """(nodes,) int64: bytes that each node sends online, its share included."""
        sent = np.full(self.nodes, self.program.ring.bytes)
        for party in (0, 1):
            at = zip(
                *self.owners.T.tolist(),
                self.edges.tolist(),
                self.met[:, party].tolist(),
                strict=True,
            )
            sizes = [
                self._sent(u.bit_length(), v.bit_length(), edges, met) for u, v, edges, met in at
            ]
            np.add.at(sent, self.owners[:, party], sizes)
        return sent

    @cache  # noqa: B019
    def _sent(self, u_bits: int, v_bits: int, edges: int, met: int) -> int:
        """Bytes that one side sends over one link: masked fields, then the openings of its cell."""
        link = (1 << u_bits) - 1, (1 << v_bits) - 1
        total = sum(
            frame_bytes("masked_fields", link, number, count, self.program.wire_bits, size)
            for number, count, size in fields_frames(self.program, met)
        )
        for number, count in self._chunks(edges):
            for round in range(1, self.plan.rounds + 1):
                shape = self.plan.shape(round, 0, count)
                total += frame_bytes(
                    "open", link, number, count, shape.width, len(shape.payload), round
                )
        return total

    @cached_property
    def dealt(self) -> np.ndarray:
        """(nodes,) int64: bytes that the dealer sends to each node."""
        dealt = np.full(self.nodes, frame_bytes("node_seed", (), 0, 1, 8 * SEED_BYTES, SEED_BYTES))
        for party in (0, 1):
            at = zip(*self.owners.T.tolist(), self.edges.tolist(), strict=True)
            sizes = [
                self._dealt(u.bit_length(), v.bit_length(), edges, party) for u, v, edges in at
            ]
            np.add.at(dealt, self.owners[:, party], sizes)
        return dealt

    @cache  # noqa: B019
    def _dealt(self, u_bits: int, v_bits: int, edges: int, party: int) -> int:
        link, width = ((1 << u_bits) - 1, (1 << v_bits) - 1), self.plan.dealt_bits(party)
        sizes = (
            (number, count, dealt_bytes(self.plan, party, count))
            for number, count in self._chunks(edges)
        )
        return sum(
            frame_bytes("material", link, number, count, width, size)
            for number, count, size in sizes
        )

    def _chunks(self, edges: int) -> list[tuple[int, int]]:
        """The number and the edges of each of a cell's chunks."""
        size = self.plan.chunk_edges
        return [
            (number, min(size, edges - start)) for number, start in enumerate(range(0, edges, size))
        ]

    @cached_property
    def messages(self) -> dict[str, int]:
        """Bytes of the messages that grow with the number of nodes.

        Each goes to every node, or comes from every node.
        """
        return messages_of(self.study, self.attempt.members)

    # --- work and time ---

    def node_work(self, work: Work) -> np.ndarray:
        """(2, nodes) float64: each node's processor seconds before the data, and on data.

        The seconds that every study takes, whatever its size, are left out.
        """
        cells, links = len(self.edges), self.links
        chunks = np.bincount(
            self.owners.ravel(), np.repeat(-(-self.edges // self.plan.chunk_edges), 2), self.nodes
        )
        own = np.bincount(self.owners.ravel(), np.repeat(self.edges, 2), self.nodes)
        before = self.attempt.sizes.edges * work.drawn + cells * work.cell + self.nodes * work.key
        before = before + links * (work.connection + 2 * work.message) + chunks * work.message
        on_data = links * (2 * work.fields + 2 * work.message)
        on_data += (
            chunks * (work.evaluated + 2 * self.plan.rounds * work.message)
            + own / 2 * work.evaluated_edge
        )
        return np.stack([before, on_data])

    def dealer_work(self, work: Work) -> float:
        cells = len(self.edges)
        drawn = self.attempt.sizes.edges * work.drawn + cells * work.cell / 2
        chunks = int((-(-self.edges // self.plan.chunk_edges)).sum())
        each = self.nodes * (work.connection + 2 * work.message)
        return (
            drawn
            + each
            + chunks * (work.dealt + 2 * work.message)
            + int(self.edges.sum()) * work.dealt_edge
        )

    def seconds(self, work: Work, line: Network) -> Seconds:
        """The study's seconds. Delays are counted as in `umpc.planning.seconds`.

        The nodes add messages, handshakes and links.
        """
        to_all = {step: self.nodes * size / line.bandwidth for step, size in self.messages.items()}
        agreed = FIXED[0] + line.delay * (CONNECTION + 2 * CALL) + self.nodes * work.connection
        agreed += to_all["propose"] + to_all["agree"]
        before, on_data = self.node_work(work)
        derived = (
            self.attempt.sizes.edges * work.drawn
            + len(self.edges) * work.cell
            + self.nodes * work.key
        )
        dealing = max(self.dealer_work(work), self.dealt.sum() / line.bandwidth)
        linking = line.delay * (CONNECTION * -(-int(self.links.max()) // DIALS) + CALL) + float(
            (before - derived).max()
        )
        offline = FIXED[1] + line.delay * (2 + CONNECTION + CALL) + to_all["begin"] + derived
        offline += to_all["deal"] + max(dealing, linking)
        # small cells share their rounds, however many there are
        online = FIXED[2] + line.delay * (1 + self.plan.rounds + 4) + float(on_data.max())
        return Seconds(agreed, offline, online + float(self.sent.max()) / line.bandwidth)

    def row(self, work: Work) -> tuple[str, ...]:
        seconds = self.seconds(work, LINE)
        coordinator = sum(self.messages[step] for step in ("propose", "agree", "begin", "evaluate"))
        return (
            f"{self.nodes:,} × {self.records}",
            f"{len(self.edges):,}",
            f"{self.links.mean():.0f}, {self.links.max()}",
            f"{self.sent.mean():,.0f}",
            megabytes(int(self.dealt.sum())),
            megabytes(self.nodes * coordinator),
            megabytes(self.nodes * self.messages["deal"]),
            f"{seconds.agreed + seconds.offline:.0f} s",
            f"{seconds.online:.1f} s",
        )


def messages_of(study: Study, members: Sequence[Member]) -> dict[str, int]:
    """Bytes of the messages with an entry for each node: to each node, and `deal` of each."""
    openings = (bytes(SEED_BYTES),) * len(members)
    signatures = (bytes(SIGNATURE_BYTES),) * len(members)
    request = codec.deal_request(study.encode(), members, openings, signatures)
    sent = {
        "propose": m.Propose(study.encode()),
        "agree": m.Agree(tuple(members)),
        "begin": m.Begin(openings, signatures),
        "evaluate": m.Evaluate(signatures),
    }
    sizes = {step: codec.encode_coordinator(message).ByteSize() for step, message in sent.items()}
    return sizes | {"deal": request.ByteSize()}


def megabytes(size: int) -> str:
    """A size in words."""
    return f"{size / 1e6:,.1f} MB"
