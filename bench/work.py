"""The processor seconds of each kind of work in a study with many nodes, on this machine."""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from itertools import groupby
from pathlib import Path

from bench.table import show
from umpc.crypto.prg import Stream
from umpc.crypto.ring import RINGS
from umpc.crypto.zero_shares import KeyAgreement, zero_shares
from umpc.dealer.material import MaterialDealer, dealt
from umpc.edges_in_memory import NodeBatch, as_batch, run_wave
from umpc.mpc.chunks import Chunk, in_batches
from umpc.planning.prediction import attempt_over
from umpc.proto import codec
from umpc.proto.v1 import umpc_pb2 as pb
from umpc.simulation import simulate
from umpc.study.document import Study
from umpc.study.messages import Frame, frame_of
from umpc.transport.authority import Authority
from umpc.transport.connections import bind, connect, make_server
from umpc.transport.identity import load_identity
from umpc.transport.tls import grpc, rpc
from umpc.ustat.hypergraph import expand

KEYS = 400
EDGES = (100_000, 400_000)
LINKS, MESSAGES = 40, 2_000
FEW = (12, 20, 2000)
"""A study in memory: its nodes, and the records of each for small cells and for larger ones."""
MANY = 200
"""Number of nodes among which E has small cells."""


@dataclass(frozen=True)
class Work:
    """Processor seconds of one piece of each kind of work.

    key: to agree on a key with another node.
    drawn: to draw an edge of E.
    cell: to sort a cell out of E, with its chunk in the common order.
    connection, message: one side of a connection, and of a small message.
    dealt, evaluated: a chunk of few edges, at the dealer and at each owner.
    dealt_edge, evaluated_edge: one more edge of a chunk.
    fields: to send masked records to a peer, or to take them from it.
    """

    key: float
    drawn: float
    cell: float
    connection: float
    message: float
    dealt: float
    evaluated: float
    dealt_edge: float
    evaluated_edge: float
    fields: float

    def rows(self) -> list[tuple[str, str]]:
        return [
            (field.name.replace("_", " "), f"{1e6 * getattr(self, field.name):.2f}")
            for field in fields(self)
        ]


def measure(study_of: Callable[[int], Study]) -> Work:
    key = KeyAgreement(bytes(range(32)))
    keys = [KeyAgreement(os.urandom(32)).public_key for _ in range(KEYS)]
    names = [str(number) for number in range(KEYS)]
    agreed = _seconds(lambda: zero_shares(0, names, keys, key, bytes(32), RINGS[0], 1)) / KEYS
    small, large = (
        _seconds(lambda n=n: expand("2n", [n // 8] * 4, Stream(bytes(32)).words)) for n in EDGES
    )
    drawn = (large - small) / (EDGES[1] - EDGES[0])
    connection, message = asyncio.run(_transport())
    return Work(
        agreed, drawn, _cell(study_of(MANY), drawn), connection, message, *_chunks(study_of)
    )


def _seconds(work: Callable[[], object]) -> float:
    """Processor seconds of a piece of work, the least of three."""
    taken = []
    for _ in range(3):
        started = time.process_time()
        work()
        taken.append(time.process_time() - started)
    return min(taken)


def _cell(study: Study, drawn: float) -> float:
    """Seconds for each of many small cells: to sort E into cells, and to list its chunks."""
    seconds = []
    for _ in range(3):
        attempt = attempt_over(study, ",".join(["20"] * len(study.nodes)))
        started = time.process_time()
        attempt.chunks_ahead(1 << 30)
        for _ in range(2):  # once before the rounds, once to check that all are evaluated
            list(attempt.chunks_of(0))
        seconds.append(time.process_time() - started)
    return (min(seconds) - attempt.sizes.edges * drawn) / len(attempt.hypergraph.shared_cells)


def _chunks(study_of: Callable[[int], Study]) -> tuple[float, ...]:
    """The last five numbers of `Work`, in its order, from two studies of different size."""
    nodes, *sizes = FEW
    found = [_rounds(study_of(nodes), records) for records in sizes]
    (dealt, evaluated, fields, edges, _), (more_dealt, more_evaluated, _, more_edges, _) = found
    dealt_edge, evaluated_edge = (
        (b - a) / (more_edges - edges)
        for a, b in ((dealt, more_dealt), (evaluated, more_evaluated))
    )
    return (
        dealt - edges * dealt_edge,
        evaluated - edges * evaluated_edge,
        dealt_edge,
        evaluated_edge,
        fields,
    )


def _rounds(
    study: Study, records: int, *, together: bool = True
) -> tuple[float, float, float, float, int]:
    """Processor seconds of the rounds of a study in memory.

    Args: together: small chunks in batches, as nodes and dealer do it; else each chunk alone.

    Returns: seconds of a chunk at the dealer, of a chunk at an owner, and of a link's fields at one
        side; edges of a chunk; number of chunks.
    """
    stream = Stream(bytes(32))
    tables = [
        {field.name: (stream.words(records) >> 1).astype("int64") % 100 for field in study.schema}
        for _ in study.nodes
    ]
    run = simulate(study, tables, os.urandom)
    attempt, nodes = run.attempt, run.nodes
    dealer = MaterialDealer(attempt, os.urandom)
    chunks = [replace(chunk, wave=chunk.wave * together) for chunk in attempt.chunks()]
    started = time.process_time()
    material: dict[Chunk, dict[int, Frame]] = {}
    for batch in in_batches(chunks, attempt.plan):
        material.update(zip(batch, map(dict, dealt(dealer, batch)), strict=True))
    at_dealer = time.process_time() - started
    fresh = [
        session.cells.__class__(attempt, i, session.columns, dealer.seed_frame(i).payload, {})
        for i, session in enumerate(nodes)
    ]
    started, links = time.process_time(), 0
    for sender, cells in enumerate(fresh):
        for peer in attempt.peers(sender):
            fresh[peer].receive_fields(sender, cells.fields_for(peer))
            links += 1
    at_links = time.process_time() - started
    started = time.process_time()
    tree_hash = attempt.tree_hash()
    for wave, of_wave in groupby(chunks, lambda chunk: chunk.wave):
        # a wave is one unit of the rounds; the other chunks have their rounds one by one
        for unit in [list(of_wave)] if wave else ([chunk] for chunk in of_wave):
            _, sent = run_wave(list(_begun(attempt, fresh, unit, material, tree_hash)))
            for line in sent:
                frame = frame_of(line.message, line.chunk.place, line.chunk.number)
                codec.decode_frame(codec.encode_frame(frame))
    at_owners = time.process_time() - started
    edges = sum(chunk.count for chunk in chunks)
    return (
        *(taken / len(chunks) for taken in (at_dealer, at_owners / 2)),
        at_links / links,
        edges / len(chunks),
        len(chunks),
    )


def _begun(attempt, cells, chunks, material, tree_hash) -> Iterator[NodeBatch]:
    """All nodes' batches of these chunks, not yet begun. Args: cells: each node's."""
    own: dict[int, list[Chunk]] = {}
    for chunk in chunks:
        for node in chunk.parties:
            own.setdefault(node, []).append(chunk)
    for node, its_chunks in own.items():
        for batch in in_batches(its_chunks, attempt.plan, node):
            payloads = [material[chunk][node].payload for chunk in batch]
            if len(batch) == 1:
                rounds = as_batch(cells[node].protocol(batch[0], payloads[0], tree_hash))
            else:
                rounds = cells[node].batch(batch, payloads).protocol(tree_hash)
            yield NodeBatch(node, batch, rounds)


class _Echo(rpc.NodeServicer):
    async def Peer(self, requests, context) -> None:
        while (message := await context.read()) is not grpc.aio.EOF:
            await context.write(message)


async def _transport() -> tuple[float, float]:
    """One side's seconds for a connection with its stream, and for a small message."""
    with tempfile.TemporaryDirectory(prefix="umpc-work-") as name:
        authority = Authority.create(Path(name) / "authority")
        for each in ("server", "client"):
            authority.issue(each, "node", Path(name) / each)
        identities = [load_identity(Path(name) / each, "node") for each in ("server", "client")]
    server = make_server(identities[0], {"/umpc.v1.Node/Peer": {"node"}})
    rpc.add_NodeServicer_to_server(_Echo(), server)
    address = await bind(server, identities[0], "127.0.0.1:0")
    await server.start()
    message = pb.PeerMessage(
        frame=pb.Frame(step=4, round=1, owners=[1, 2], count=6, width=4, payload=b"123")
    )

    async def link():
        channel = await connect(identities[1], "server", "node", address, 5)
        call = rpc.NodeStub(channel).Peer()
        await call.write(message)
        await call.read()
        return channel, call

    await link()
    started = time.process_time()
    links = [await link() for _ in range(LINKS)]
    connections = time.process_time() - started
    started = time.process_time()
    for number in range(MESSAGES):
        _, call = links[number % LINKS]
        await call.write(message)
        await call.read()
    messages = time.process_time() - started
    for channel, call in links:
        await call.done_writing()
        await call.read()
        await channel.close()
    await server.stop(0)
    return connections / LINKS / 2, messages / MESSAGES / 4


def main() -> None:
    """Print the gain of computing the small cells of 64 nodes together.

    It compares chunk by chunk, chunks in batches, and one cell of all edges.
    """
    from bench.simulated_study import study_of

    rows = []
    for nodes, records, together in ((64, 100, False), (64, 100, True), (2, 6_300, True)):
        dealt, evaluated, _, edges, chunks = _rounds(study_of(nodes), records, together=together)
        shown = (f"{chunks * dealt:.3f} s", f"{2 * chunks * evaluated:.3f} s")
        label = f"{nodes} × {records:,}" + (", each chunk alone" if not together else "")
        rows.append((label, f"{chunks:,}", f"{chunks * edges:,.0f}", *shown))
    columns = ("nodes × records", "chunks", "edges", "dealing", "evaluating, all nodes")
    show("The same number of edges in many cells and in one; seconds of a processor", columns, rows)


if __name__ == "__main__":
    main()
