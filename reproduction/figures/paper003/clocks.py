"""Seconds of a processor that a run takes: for one party, and for the server, on data.

Each party has one record, as in the paper. Times are of this machine and of this code, much of it
Python. A party's work takes a few microseconds, and the calls around it take a hundred times as
many, so only growth can be compared.

- A local protocol's party: `randomise` of one record. Its server: `aggregate` of n messages, error
  bars included. Bins, the kernel's matrix and its factors are public and computed beforehand.
- GhaziSM's server: unpacks and adds up one coordinate's heap of n·r numbers, times the number of
  coordinates, then the form. The shuffler is not counted.
- Umpc's party: masks its record for the parties with which it shares its four edges, and evaluates
  these edges. Its server adds n shares. The work before the data is separate: E, and zero shares
  agreed with all n − 1 others.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable

import numpy as np

from reproduction.figures.draws import bits_of, stream_of
from reproduction.figures.figure import Point
from reproduction.figures.paper003.data import Data, load
from reproduction.figures.paper003.protocols import Facts, edges_of, histogram_estimate, protocol_of
from reproduction.figures.paper003.traffic import study_of
from umpc.crypto.ring import RINGS, pack, unpack
from umpc.crypto.rounds import run_in_memory
from umpc.crypto.zero_shares import KeyAgreement, zero_shares
from umpc.dealer.material import MaterialDealer
from umpc.protocols.u_mpc.settings import noisy_sums
from umpc.simulation import simulate
from umpc.ustat.hypergraph import expand
from umpc_papers.ghazi_shuffle.mechanism import GhaziShuffle
from umpc_papers.ghazi_shuffle.split_mix import add_up

LEAST = 0.05
"""A piece of work is repeated for at least this many seconds."""
PARTIES = 16
"""Parties of the study that is timed. A party's work on data does not depend on their number."""
KEYS = 100
"""Number of keys that are agreed on to time one."""


def seconds_of(work: Callable[[], object], least: float = LEAST) -> float:
    """This process's seconds for one call. A first call is not counted."""
    work()
    started, calls = time.process_time(), 0
    while (passed := time.process_time() - started) < least or not calls:
        work()
        calls += 1
    return passed / calls


TIMED = ("bell-ldp", "ghazi-ldp", "ghazi-shuffle", "umpc")


def clock(point: Point, seed: bytes) -> dict[str, float]:
    """`node_seconds`, `server_seconds` and their total over all parties.

    Umpc also has `node_seconds_before`.
    """
    facts = point.facts
    data = load(facts["data"], facts["n"])
    if facts["protocol"] == "umpc":
        found = umpc_seconds(data, facts["epsilon"], seed)
    elif facts["protocol"] == "ghazi-shuffle":
        found = shuffle_seconds(data, facts, seed)
    else:
        found = local_seconds(data, facts, seed)
    total = found["server_seconds"] + data.records * found["node_seconds"]
    return found | {"total_seconds": total}


def _record(data: Data, number: int) -> dict[str, np.ndarray]:
    return {name: column[number : number + 1] for name, column in data.columns.items()}


def local_seconds(data: Data, facts: Facts, seed: bytes) -> dict[str, float]:
    protocol, n = protocol_of(facts), data.records
    bits = bits_of(seed, "answers")
    messages = [protocol.randomise(_record(data, number), bits) for number in range(n)]
    return {
        "node_seconds": seconds_of(lambda: protocol.randomise(_record(data, 0), bits)),
        "server_seconds": seconds_of(lambda: protocol.aggregate(messages, [1] * n)),
    }


def shuffle_seconds(data: Data, facts: Facts, seed: bytes) -> dict[str, float]:
    protocol: GhaziShuffle = protocol_of(facts)
    bits, count = bits_of(seed, "answers"), data.records * protocol.shares
    heap = pack(
        stream_of(seed, "heap").words(count) & np.uint64((1 << protocol.width) - 1), protocol.width
    )

    def coordinate() -> np.ndarray:
        return add_up(unpack(heap, count, protocol.width)[None], protocol.width)

    total = np.ones(protocol.dimension)
    server = protocol.dimension * seconds_of(coordinate) + seconds_of(
        lambda: histogram_estimate(protocol, total)
    )
    return {
        "node_seconds": seconds_of(lambda: protocol.randomise(_record(data, 0), bits)),
        "server_seconds": server,
    }


def umpc_seconds(data: Data, epsilon: str, seed: bytes) -> dict[str, float]:
    n = data.records
    shares = [bytes(4)] * n
    names = [f"node-{number}" for number in range(KEYS)]
    own, others = (
        KeyAgreement(bytes(range(32))),
        [KeyAgreement(os.urandom(32)).public_key for _ in names],
    )
    agreed = seconds_of(lambda: zero_shares(0, names, others, own, bytes(32), RINGS[0], 1)) / (
        KEYS - 1
    )
    drawn = seconds_of(lambda: expand(str(edges_of(data)), [1] * n, stream_of(seed, "edges").words))
    return {
        "node_seconds": _party_seconds(data.statistic, epsilon),
        "node_seconds_before": drawn + (n - 1) * agreed,
        "server_seconds": seconds_of(lambda: noisy_sums(shares, 1)),
    }


def _party_seconds(statistic: str, epsilon: str) -> float:
    """A party's mean seconds on data, with one record and four edges each; the least of three."""
    name = {
        "gini_mean_difference": "uniform",
        "kendall_tau": "bank",
        "duplicate_pair_ratio": "jobs",
    }[statistic]
    data = load(name, PARTIES)
    study = study_of(data, PARTIES, epsilon, noise="distributed")
    run = simulate(study, [_record(data, number) for number in range(PARTIES)], os.urandom)
    return min(_evaluate(run) for _ in range(3)) / PARTIES


def _evaluate(run) -> float:
    """Seconds of all parties together, for their fields and edges, with newly dealt material."""
    attempt = run.attempt
    dealer = MaterialDealer(attempt, os.urandom)
    dealt = [(chunk, dict(dealer.deal_one(chunk))) for chunk in attempt.chunks()]
    fresh = [
        session.cells.__class__(
            attempt, number, session.columns, dealer.seed_frame(number).payload, {}
        )
        for number, session in enumerate(run.nodes)
    ]
    tree_hash = attempt.tree_hash()
    started = time.process_time()
    for sender, cells in enumerate(fresh):
        for peer in attempt.peers(sender):
            fresh[peer].receive_fields(sender, cells.fields_for(peer))
    for chunk, frames in dealt:
        run_in_memory(
            [fresh[node].protocol(chunk, frames[node].payload, tree_hash) for node in chunk.parties]
        )
    return time.process_time() - started
