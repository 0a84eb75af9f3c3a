"""The backends of a node's part in its cells (`cells.py`), and what an attempt costs.

The statements of a backend's plans about a chunk are public: `attempt.plan(chunk)` has `everybody`,
`chunk_edges`, `rounds`, and `shape(round, party, count)`, a message of a round with zero bytes in
place of its content. A node's secrets are in its `Cells`.

| step | `shared` backend | `garbled` backend | `triples` backend |
|---|---|---|---|
| `set_up`, once per link | transfers between members | transfers | transfers |
| `toss`, once: a committee's noise | coins by transfers, or chunks | coins | coins |
| `fields_for`, `receive_fields`: round 1 | masked records | labels or choices | nothing |
| `protocol`, the further rounds of a chunk | masked openings | garbled edges | triples, gates |

*Cost.* The cost of an attempt, from its plan and the sizes of its cells: rounds, bytes online and
dealt.

Tests hold measured traffic equal to these numbers, byte for byte.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import permutations, product
from typing import TYPE_CHECKING, TypeAlias

from umpc.crypto.prg import SEED_BYTES
from umpc.crypto.rounds import Message
from umpc.mpc.attempt import SharedAttempt
from umpc.mpc.cells import Cells
from umpc.mpc.chunks import AFTER, AHEAD, Chunk, ChunkPlan
from umpc.mpc.masked.material import dealt_bytes
from umpc.study.cost import Cost, sent_by_round
from umpc.study.document import Study
from umpc.study.messages import frame_bytes
from umpc.ustat.cell_rows import Owners

if TYPE_CHECKING:
    from umpc.mpc.masked.cells import CommitteeTransfers


def backend_of(study: Study) -> type[Cells]:
    """The class of the cells of a study's backend.

    Any other backend has no edges of several owners. Its nodes toss coins as those of `shared` do.
    """
    # loaded where a study needs them: a coordinator needs none
    if study.backend == "garbled":
        from umpc.mpc.garbled.cells import GarbledCells

        return GarbledCells
    if study.backend == "triples":
        from umpc.mpc.triples.cells import TriplesCells

        return TriplesCells
    from umpc.mpc.masked.cells import SharedCells

    return SharedCells


def tosses_apart(study: Study) -> bool:
    """Whether a study's coins have transfers of their own, which need no seed of the cells."""
    return study.backend not in ("garbled", "triples")


def transfers_of(
    study: Study, attempt: SharedAttempt, node: int, coin_seed: bytes
) -> CommitteeTransfers | None:
    """A node's transfers for coins where they are apart from its cells; None where it has none.

    The other backends toss coins over the channels of their edges.
    """
    if not tosses_apart(study) or not attempt.tosses(node):
        return None
    from umpc.mpc.masked.cells import CommitteeTransfers

    return CommitteeTransfers(attempt, node, coin_seed)


# --- cost -----------------------------------------------------------------------------------------

SentBytes: TypeAlias = Counter[tuple[str, int]]
"""A node's bytes by (step, round)."""


def predict(attempt: SharedAttempt, *, prepared: bool = False) -> Cost:
    """The cost of an attempt: online between nodes and to the coordinator, and offline.

    A coordinator's forecast and its report both ask, so the attempt keeps it.

    Args: prepared: whether `umpc study prepare` did all that needs no data.
    """
    if prepared not in attempt.costs:
        attempt.costs[prepared] = _predict(attempt, prepared)
    return attempt.costs[prepared]


def _predict(attempt: SharedAttempt, prepared: bool) -> Cost:
    in_parts = prepared and attempt.makes_ahead
    nodes = range(len(attempt.members))
    sent: list[SentBytes] = [Counter() for _ in nodes]
    # set-ups and tosses depend on no data: they count as offline
    between = _links(attempt, sent) + _tosses(attempt)
    dealt = 0
    needs_dealer = attempt.needs_dealer
    if needs_dealer:
        dealt += len(nodes) * frame_bytes("node_seed", (), 0, 1, 8 * SEED_BYTES, SEED_BYTES)
    known = _ChunkCosts()
    for chunk, times in attempt.chunk_groups():
        if in_parts and not chunk.noise:
            # triples of this chunk are made before the run
            ahead = replace(chunk, part=AHEAD)
            between += times * known.of(attempt.plan(ahead), ahead).said_in_all
            chunk = replace(chunk, part=AFTER)
        cost = known.of(attempt.plan(chunk), chunk)
        if chunk.noise:
            between += times * cost.said_in_all
        else:
            for node, said in zip(chunk.parties, cost.said, strict=True):
                for place, size in said.items():
                    sent[node][place] += times * size
        if needs_dealer:
            dealt += times * cost.material
    share = attempt.ring.bytes * attempt.sums
    # one ring element a sum, for each value that a node releases
    revealed = tuple(attempt.released_values(node) * share for node in nodes)
    online = tuple(map(sent_by_round, sent))
    rounds = attempt.rounds_if_prepared if prepared else attempt.rounds
    return Cost(rounds, online, revealed, between + dealt, bytes_dealt=dealt)


@dataclass(frozen=True)
class _ChunkCost:
    """The bytes of one chunk. said: each party's in the rounds. material: of all parties."""

    said: tuple[SentBytes, ...]
    material: int

    @cached_property
    def said_in_all(self) -> int:
        return sum(said.total() for said in self.said)


class _ChunkCosts:
    """The costs of chunks. Those with one plan, as many edges and as long a place have one cost.

    Many nodes that all meet have thousands of small cells, of a few different numbers of edges.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[int, int, int], tuple[ChunkPlan, _ChunkCost]] = {}
        """The plan is kept, so that no other one gets its id."""

    def of(self, plan: ChunkPlan, chunk: Chunk) -> _ChunkCost:
        """The cost of a chunk. Args: plan: the chunk's, which may be made for it alone."""
        # a frame's length grows with the numbers in it
        place = frame_bytes("open", chunk.place, chunk.number, 0, 0, 0)
        key = (id(plan), chunk.count, place)
        if key not in self._known:
            said = tuple(_said(plan, chunk, party) for party in plan.everybody)
            material = sum(_material(plan, chunk, party) for party in plan.everybody)
            self._known[key] = plan, _ChunkCost(said, material)
        return self._known[key][1]


def _said(plan: ChunkPlan, chunk: Chunk, party: int) -> SentBytes:
    """A party's bytes in the rounds of a chunk."""
    said: SentBytes = Counter()
    # each message goes to every other party
    others = (other for other in plan.everybody if other != party)
    for other, number in product(others, range(1, plan.rounds + 1)):
        shape = plan.shape_to(number, party, other, chunk.count)
        said[shape.step, shape.round] += _bytes(shape, chunk.place, chunk.number)
    return said


def _material(plan: ChunkPlan, chunk: Chunk, party: int) -> int:
    """Bytes of a party's material for a chunk."""
    size = dealt_bytes(plan, party, chunk.count)
    width = plan.dealt_bits(party)
    return frame_bytes("material", chunk.place, chunk.number, chunk.count, width, size)


def _links(attempt: SharedAttempt, sent: list[SentBytes]) -> int:
    """Every node's bytes to each of its peers: to set up (returned), and in round 1 (added)."""
    backend = backend_of(attempt.study)
    set_up = 0
    for node, own in enumerate(sent):
        for peer in attempt.peers(node):
            link = (min(node, peer), max(node, peer))
            shapes = backend.set_up_shapes(attempt, node, peer)
            set_up += sum(_bytes(shape, link, 0) for shape in shapes)
            for number, shape in enumerate(backend.field_shapes(attempt, node, peer)):
                own[shape.step, shape.round] += _bytes(shape, link, number)
    return set_up


def _tosses(attempt: SharedAttempt) -> int:
    """Bytes of a committee's coins from transfers."""
    if attempt.toss_plan is None:
        return 0
    pairs = permutations(range(attempt.toss_plan.members), 2)
    shapes = (enumerate(attempt.toss_plan.shapes(*pair)) for pair in pairs)
    return sum(_bytes(shape, (), number) for rounds in shapes for number, shape in rounds)


def _bytes(shape: Message, owners: Owners, number: int) -> int:
    """Bytes of a message as a frame; a message of width 0 is not sent."""
    if not shape.width:
        return 0
    return frame_bytes(
        shape.step, owners, number, shape.count, shape.width, len(shape.payload), shape.round
    )
