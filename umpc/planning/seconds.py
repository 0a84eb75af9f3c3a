"""What a study will take, before anybody is asked: seconds and memory, from its plan, its line and a trial run here.

Delays are counted one way, for links of gRPC over TLS 1.3 that are opened anew:

| part | delays | what |
|---|---|---|
| a connection | 6 | TCP, TLS, HTTP/2's settings, each there and back |
| connect, propose, agree | 6 + 2 + 2 | from the coordinator to all nodes at once |
| prepare | 1 + 8 + 8 + r + 1 | begin; the dealer and its first frame; a peer and its greeting; r rounds; prepared |
| evaluate, release | 1 + R + 1 + 2 | R rounds on data; ready; release, released |

r: rounds in which transfers are set up, and noise is drawn under shares; material comes in the meantime. To the delays
come the bytes that pass the busiest line, and the work of the processes. Sites are taken to be alike, and E to be
spread evenly over them.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from math import comb

import msgspec

from umpc.crypto.prg import Stream
from umpc.dealer.session import DealerSession
from umpc.mpc.attempt import Attempt
from umpc.mpc.cost import Cost
from umpc.protocols.central.settings import SUBSAMPLED
from umpc.protocols.ghazi_shuffle.split_mix import LEAST_USERS
from umpc.protocols.local.messages import one_message_of, uniform_columns
from umpc.simulation import simulate
from umpc.study.document import Study
from umpc.ustat.clear import Columns

CONNECTION, CALL = 6, 2
TRIAL_EDGES = (1 << 12, 1 << 14)
"""Two sizes of the trial: their difference is the cost of an edge, without what every study takes."""
TRIAL_RECORDS = 400
TRIAL_MESSAGES = 1000
"""Records of a trial of a one-message protocol."""
TRIAL_SETS = 1 << 20
"""Sets of records of a trial of a trusted curator; of as few records as any of its mechanisms takes there are fewer."""
FIXED = (0.02, 0.05, 0.02)
"""Seconds of every study, before, in and after prepare: handshakes, documents, the ledger on its disk. Of one machine;
`python -m bench network` prints what they are worth on another."""
LINK_SECONDS = 0.1
"""Of both ends, to set up transfers: 128 of them over curve points, as `make bench` prints. Of one machine, too."""
PROCESS_BYTES = 120 << 20
"""A process with its libraries and no study."""
WINDOWS_BYTES = 64 << 20
"""Material and messages that wait, at most."""
LISTED_EDGE_BYTES = 80
"""Of an edge while E is drawn and sorted by owners; all sets of records are never listed."""


@dataclass(frozen=True)
class Network:
    """delay: one way, in seconds. bandwidth: bytes a second of each process's line, each way; 0: no limit."""

    delay: float = 0.0
    bandwidth: float = 0.0


@dataclass(frozen=True)
class Machine:
    """Seconds of an edge's work: dealing, for the dealer; evaluating, of all its owners together."""

    dealing: float
    evaluating: float


@dataclass(frozen=True)
class Seconds:
    """offline: from the joint seed until all nodes are prepared. online: on data, until the last share."""

    offline: float
    online: float
    total: float


def measure_machine(study: Study) -> Machine:
    """A trial of the study's own kernels on made-up records, in this process: about a second."""
    small, large = (_trial(study, edges) for edges in TRIAL_EDGES)
    more = TRIAL_EDGES[1] - TRIAL_EDGES[0]
    dealing, everything = (
        max(0.0, after - before) / more for before, after in zip(small, large, strict=True)
    )
    return Machine(dealing, max(0.0, everything - dealing))


def _trial(study: Study, edges: int) -> tuple[float, float]:
    """Seconds of the processor: of the dealer, and of the whole study in memory."""
    nodes = study.nodes[: max(2, study.degree)]
    facts = {
        "edges": str(edges),
        "epsilon": "1000000000",
        "delta": "",
        "max_colluding": 0,
        "noise": "distributed",
    }
    if study.noise_of_pairs:
        facts = {"edges": str(edges), "delta": "", "max_colluding": 0}
    trial = msgspec.structs.replace(study, nodes=nodes, **facts)
    stream = Stream(bytes(32))
    records = (
        edges if study.degree == 1 else TRIAL_RECORDS
    )  # of single records there are no more sets than these
    tables = [uniform_columns(trial, records, stream) for _ in nodes]
    started = time.process_time()
    run = simulate(trial, tables, os.urandom)
    everything = time.process_time() - started
    if not run.attempt.needs_dealer:
        return 0.0, everything
    started = time.process_time()
    dealer = DealerSession(run.attempt, os.urandom)
    for chunk in run.attempt.chunks():
        list(dealer.deal_one(chunk))
    return time.process_time() - started, everything


def predict_seconds(
    attempt: Attempt, cost: Cost, machine: Machine, network: Network, processes_a_core: float = 0.0
) -> Seconds:
    """How long a run takes.

    Args: processes_a_core: 0 where every process has a machine of its own, else how many share a core.
    """
    study, nodes, edges = attempt.study, len(attempt.members), _shared_edges(attempt)
    dealing, evaluating = machine.dealing * edges, machine.evaluating * edges
    links = [len(attempt.peers(node)) for node in range(nodes)]
    set_up = LINK_SECONDS / 2 * (study.backend == "garbled")
    if processes_a_core:
        cores = (nodes + attempt.needs_dealer) / processes_a_core
        work_before, work_on_data = dealing / min(cores, 1 + nodes), evaluating / min(cores, nodes)
        set_up *= sum(links) / min(cores, nodes)
    else:
        work_before, work_on_data = dealing, evaluating * study.degree / nodes
        set_up *= max(links)
    dealt = cost.bytes_offline if attempt.needs_dealer else cost.bytes_offline / nodes
    rounds_before = (
        attempt.noise_plan.rounds if attempt.noise_chunks else 3 * (not attempt.needs_dealer)
    )
    rounds_before += attempt.toss_plan.rounds if attempt.toss_plan else 0
    dealer = CONNECTION + CALL if attempt.needs_dealer else 0
    peers = network.delay * (CONNECTION + CALL + rounds_before) + set_up if any(links) else 0.0
    offline = (
        FIXED[1] + network.delay * (2 + dealer) + max(peers, work_before + _on_line(dealt, network))
    )
    online = FIXED[2] + network.delay * (attempt.rounds - 1 + 4)
    online += work_on_data + _on_line(cost.bytes_online / nodes, network)
    return Seconds(
        offline, online, FIXED[0] + network.delay * (CONNECTION + 2 * CALL) + offline + online
    )


def predict_local_seconds(
    attempt: Attempt, cost: Cost, columns: Columns, network: Network
) -> Seconds:
    """How long a one-message study takes, from a trial of it with some of these records."""
    study, records = attempt.study, max(1, attempt.sizes.records)
    tried = _records_to_try(study, records)
    trial = _with_few_sets(study, records, tried)
    rows = [number * records // tried for number in range(tried)]
    some = {name: column[rows] for name, column in columns.items()}
    parts = range(len(study.nodes))
    tables = [
        {name: column[place :: len(parts)] for name, column in some.items()} for place in parts
    ]
    started = time.process_time()
    simulate(trial, tables, os.urandom)
    work = time.process_time() - started
    work *= max(records / tried, _sets(study, records) / _sets(trial, tried))
    online = FIXED[2] + network.delay * CALL * (cost.rounds + 1) + work
    online += _on_line(max(cost.revealed, default=0) * len(parts), network)
    offline = FIXED[1] + network.delay * CALL
    return Seconds(
        offline, online, FIXED[0] + network.delay * (CONNECTION + 2 * CALL) + offline + online
    )


def _records_to_try(study: Study, records: int) -> int:
    """Few, but as many as the study takes: of a shuffled one every node must have some."""
    most = min(records, max(TRIAL_MESSAGES, study.shuffled * LEAST_USERS * len(study.nodes)))
    while study.noise not in SUBSAMPLED and _sets(study, most) > TRIAL_SETS:
        most -= most // 8
    return most


def _with_few_sets(study: Study, records: int, tried: int) -> Study:
    """Of independent sets, as many fewer as there are fewer records."""
    if study.noise not in SUBSAMPLED:
        return study
    few = min(
        TRIAL_SETS, comb(tried, study.degree), max(1, _sets(study, records) * tried // records)
    )
    return msgspec.structs.replace(study, edges=str(few))


def _sets(study: Study, records: int) -> int:
    """Of records, that a trusted curator looks at; elsewhere the coordinator looks at none."""
    return one_message_of(study).choice(records).sets(records) if study.central else 1


def predict_memory(attempt: Attempt) -> int:
    """Bytes of the largest process, about."""
    listed = (
        0 if attempt.sizes.edges == attempt.sizes.sets else LISTED_EDGE_BYTES * attempt.sizes.edges
    )
    columns = (
        16
        * len(attempt.study.fields)
        * max((member.records for member in attempt.members), default=0)
    )
    return PROCESS_BYTES + WINDOWS_BYTES + listed + columns


def _shared_edges(attempt: Attempt) -> int:
    return sum(cell.count for cell in attempt.hypergraph.shared_cells.values())


def _on_line(count: float, network: Network) -> float:
    return count / network.bandwidth if network.bandwidth else 0.0
