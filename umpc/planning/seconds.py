"""The predicted seconds and memory of a study, before any site is asked.

The prediction comes from the study's plan, its network, and a trial run here. Delays are counted
one way, for links of gRPC over TLS 1.3 that are opened anew:

| part | delays | what |
|---|---|---|
| a connection | 6 | TCP, TLS, HTTP/2's settings, each there and back |
| connect, propose, agree | 6 + 2 + 2 | from the coordinator to all nodes at once |
| prepare | 1 + 8 + 8 + r + 1 | begin; dealer, frame; peer, greeting; r rounds; prepared |
| evaluate, release | 1 + R + 1 + 2 | R rounds on data; ready; release, released |

r is the number of rounds in which transfers are set up and noise is drawn under shares. A
committee's coins take transfers unless they are dealt. Material comes in the meantime. The bytes
that pass the busiest line and the work of the processes are added to the delays. All sites are
assumed to be alike, and E to be spread evenly over them.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass

from umpc.crypto.prg import Stream
from umpc.dealer.session import DealerSession
from umpc.errors import LocalProtocolError
from umpc.mpc.attempt import SharedAttempt
from umpc.planning.reference_table import ReferenceTable
from umpc.protocols.base.one_message import uniform_columns
from umpc.protocols.base.protocol import Trial
from umpc.protocols.registry import protocol_of
from umpc.simulation import simulate
from umpc.study.attempt import Attempt
from umpc.study.cost import Cost
from umpc.study.document import Study
from umpc.ustat.clear import Columns

CONNECTION = 6
CALL = 2
TRIAL_EDGES = (1 << 10, 1 << 12)
"""Two sizes of the trial. Their difference is the cost of edges, without the fixed cost."""
TRIAL_RECORDS = 400
FIXED = (0.02, 0.05, 0.02)
"""Seconds of every study before, in and after prepare: handshakes, documents, the ledger's disk.

They were measured on one machine. `python -m bench network` compares them with another."""
LINK_SECONDS = 0.03
"""Seconds of both ends of a link to set up 128 transfers over curve points.

They were measured on one machine, too. `make bench` prints them."""
PROCESS_BYTES = 120 << 20
"""The memory of a process with its libraries and no study."""
WINDOWS_BYTES = 64 << 20
"""The most memory of material and messages that wait."""
LISTED_EDGE_BYTES = 80
"""The memory of an edge while E is drawn and sorted by owners.

E of all sets of records is never listed."""


@dataclass(frozen=True)
class Network:
    """The lines between processes.

    delay: one way, in seconds. bandwidth: bytes a second of each process's line, each way; 0 stands
    for no limit.
    """

    delay: float = 0.0
    bandwidth: float = 0.0


@dataclass(frozen=True)
class Machine:
    """Seconds of work for one edge.

    dealing: at the dealer. evaluating: at all its owners together.
    """

    dealing: float
    evaluating: float


@dataclass(frozen=True)
class Seconds:
    """The seconds of a run.

    offline: from the joint seed until all nodes are prepared. online: on data, until the last
    share. total: with the connections and the agreement.
    """

    offline: float
    online: float
    total: float


def measure_machine(study: Study) -> Machine:
    """The speed of this machine, from a trial of the study's own kernels on made-up records.

    The trial runs in this process and takes about a second.
    """
    before, after = (_trial(study, edges) for edges in TRIAL_EDGES)
    more = TRIAL_EDGES[1] - TRIAL_EDGES[0]
    dealing = max(0.0, after[0] - before[0]) / more
    everything = max(0.0, after[1] - before[1]) / more
    return Machine(dealing, max(0.0, everything - dealing))


def _trial(study: Study, edges: int) -> tuple[float, float]:
    """Processor seconds of the dealer, and of the whole study in memory."""
    nodes = study.nodes[: max(2, study.degree)]
    whole = protocol_of(study).trial_over_edges(study, edges)
    trial = whole.replaced(nodes=nodes)
    stream = Stream(bytes(32))
    # A statistic over single records has no more sets than records.
    records = edges if study.degree == 1 else TRIAL_RECORDS
    tables = [uniform_columns(trial, records, stream) for _ in nodes]
    started = time.process_time()
    run = simulate(trial, tables, os.urandom)
    everything = time.process_time() - started
    attempt = run.attempt
    if not isinstance(attempt, SharedAttempt) or not attempt.needs_dealer:
        return 0.0, everything
    started = time.process_time()
    dealer = DealerSession(attempt, os.urandom)
    for chunk in attempt.chunks():
        list(dealer.deal_one(chunk))
    return time.process_time() - started, everything


def predict_seconds(
    attempt: SharedAttempt,
    cost: Cost,
    machine: Machine,
    network: Network,
    processes_a_core: float = 0.0,
) -> Seconds:
    """The seconds of a run over shared edges.

    Args: processes_a_core: 0 where every process has a machine of its own; else the number of
    processes that share a core.
    """
    study = attempt.study
    nodes = len(attempt.members)
    edges = _shared_edges(attempt)
    dealing = machine.dealing * edges
    evaluating = machine.evaluating * edges
    links = [len(attempt.transfer_peers(node)) for node in range(nodes)]
    set_up = LINK_SECONDS / 2
    if processes_a_core:
        cores = (nodes + attempt.needs_dealer) / processes_a_core
        work_before = dealing / min(cores, 1 + nodes)
        work_on_data = evaluating / min(cores, nodes)
        set_up *= sum(links) / min(cores, nodes)
    else:
        work_before = dealing
        work_on_data = evaluating * study.degree / nodes
        set_up *= max(links, default=0)
    dealt = _most_before(attempt, cost)
    dealer = CONNECTION + CALL if attempt.needs_dealer else 0
    peers = 0.0
    if any(attempt.peers(node) for node in range(nodes)):
        peers = network.delay * (CONNECTION + CALL + rounds_before(attempt)) + set_up
    offline = FIXED[1] + network.delay * (2 + dealer)
    offline += max(peers, work_before + _on_line(dealt, network))
    online = FIXED[2] + network.delay * (attempt.rounds - 1 + 4)
    online += work_on_data + _on_line(cost.bytes_online / nodes, network)
    return _in_all(offline, online, network)


def rounds_before(attempt: SharedAttempt) -> int:
    """The number of rounds in which transfers are set up and noise is drawn under shares."""
    nodes = range(len(attempt.members))
    rounds = 3 * any(attempt.transfer_peers(node) for node in nodes)
    if attempt.noise_chunks:
        rounds = attempt.noise_plan.rounds
    if attempt.toss_plan:
        rounds += attempt.toss_plan.rounds
    return rounds


def _most_before(attempt: SharedAttempt, cost: Cost) -> float:
    """Bytes before the data on the busiest line: the dealer's, or a node's."""
    between = cost.bytes_offline - cost.bytes_dealt
    return max(cost.bytes_dealt, between / len(attempt.members))


def predict_trial_seconds(
    attempt: Attempt, cost: Cost, trial: Trial, columns: Columns, network: Network
) -> Seconds:
    """The seconds of a study whose nodes work alone, from a trial of it with some records.

    Args: columns: a table with as many records as the nodes have together.
    """
    study = attempt.study
    records = max(1, attempt.sizes.records)
    rows = [number * records // trial.records for number in range(trial.records)]
    some = {name: column[rows] for name, column in columns.items()}
    nodes = len(study.nodes)
    tables = [
        {name: column[place::nodes] for name, column in some.items()} for place in range(nodes)
    ]
    started = time.process_time()
    simulate(trial.study, tables, os.urandom)
    work = (time.process_time() - started) * trial.factor
    online = FIXED[2] + network.delay * CALL * (cost.rounds + 1) + work
    revealed = max(cost.revealed, default=0) * nodes
    online += _on_line(max(revealed, cost.bytes_online / nodes), network)
    offline = FIXED[1] + network.delay * CALL
    return _in_all(offline, online, network)


def seconds_of(
    attempt: Attempt,
    cost: Cost,
    table: ReferenceTable,
    network: Network,
    machines: dict[tuple[str, str, str], Machine],
) -> Seconds:
    """The seconds of a run. Args: machines: the results of earlier trials, by kind of study."""
    study = attempt.study
    trial = protocol_of(study).trial(study, max(1, attempt.sizes.records))
    if trial is not None:
        return predict_trial_seconds(attempt, cost, trial, table.columns, network)
    if not isinstance(attempt, SharedAttempt):
        raise LocalProtocolError("a study without a trial has edges that nodes share")
    key = (study.protocol, study.backend, study.noise)
    if key not in machines:
        machines[key] = measure_machine(study)
    return predict_seconds(attempt, cost, machines[key], network)


def predict_memory(attempt: Attempt) -> int:
    """The approximate memory of the largest process, in bytes."""
    sizes = attempt.sizes
    listed = 0 if sizes.edges == sizes.sets else LISTED_EDGE_BYTES * sizes.edges
    records = max((member.records for member in attempt.members), default=0)
    columns = 16 * len(attempt.study.fields) * records
    return PROCESS_BYTES + WINDOWS_BYTES + listed + columns


def _in_all(offline: float, online: float, network: Network) -> Seconds:
    before = FIXED[0] + network.delay * (CONNECTION + 2 * CALL)
    return Seconds(offline, online, before + offline + online)


def _shared_edges(attempt: SharedAttempt) -> int:
    return sum(cell.count for cell in attempt.hypergraph.shared_cells.values())


def _on_line(count: float, network: Network) -> float:
    return count / network.bandwidth if network.bandwidth else 0.0
