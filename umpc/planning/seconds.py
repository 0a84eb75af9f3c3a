"""The predicted seconds and memory of a study, before any site is asked.

The prediction comes from the study's plan, its network, and a trial run here. Delays are counted
one way, for links of gRPC over TLS 1.3:

| part | delays | what |
|---|---|---|
| a connection | 6 | TCP, TLS, HTTP/2's settings, each there and back |
| connect, propose, agree | 4 + 6 + 2 + 2 | a look at the certificate; to all nodes at once |
| prepare | 1 + 8 + 8 + r + 1 | begin; dealer, frame; peer, greeting; r rounds; prepared |
| evaluate, release | 1 + R + 1 + 2 | R rounds on data; ready; release, released |

r is the number of rounds in which transfers are set up and noise is drawn under shares. A
committee's coins take transfers unless they are dealt. Material comes in the meantime. The bytes
that pass the busiest line and the work of the processes are added to the delays. All sites are
assumed to be alike, and E to be spread evenly over them.

In a study after an earlier one, few nodes have the next channels of transfers already
(docs/protocol.md).

*Narrowing.* A trial over narrower fields, for studies whose messages have a number for each value
of them.

A grid's nodes send a number for every cell, and work in proportion to the cells. A trial of a few
cells tells the time of many. The bytes of a message say how many times more there are.

This machine's seconds for an edge, from chunks of the study's own kernels on made-up records.

Only chunks are timed. The links of a small study are set up once, and then chunks of growing size
are dealt and evaluated until one takes long enough to tell.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import comb

import numpy as np

from umpc.crypto.prg import Stream
from umpc.edges_in_memory import EdgesInMemory
from umpc.errors import LocalProtocolError, UmpcError
from umpc.mpc.attempt import SharedAttempt
from umpc.mpc.backends import tosses_apart
from umpc.mpc.chunks import Chunk, pattern_of
from umpc.mpc.transfers.channels import MOST_PEERS
from umpc.planning.prediction import attempt_over
from umpc.planning.reference_table import ReferenceTable
from umpc.protocols.base.one_message import uniform_columns
from umpc.protocols.base.protocol import Trial
from umpc.protocols.registry import checked, protocol_of
from umpc.simulation import ready_for_edges, simulate
from umpc.study.attempt import Attempt
from umpc.study.cost import Cost
from umpc.study.document import Study
from umpc.study.parts import FieldText
from umpc.ustat.cell_rows import Owners
from umpc.ustat.clear import Columns

CONNECTION = 6
LOOK = 4
CALL = 2
FIXED = (0.02, 0.05, 0.02)
"""Seconds of every study before, in and after prepare: handshakes, documents, the ledger's disk.

They were measured on one machine. `python -m bench network` compares them with another."""
LINK_SECONDS = 0.03
"""Seconds of both ends of a link to set up 128 transfers over curve points.

They were measured on one machine, too. `python -m bench oblivious` prints them."""
PROCESS_BYTES = 150 << 20
"""The memory of a process with its libraries and no study."""
MATERIAL_BYTES, WINDOWS_BYTES = 160 << 20, 32 << 20
"""The most memory of material that waits or is being used, and of messages on their way."""
VECTORS = 2.5
"""The vectors of cells that a node of a grid holds at the same time: its own, a mask, a total.

`python -m bench.planned` measures all of these."""
LISTED_EDGE_BYTES = 25
"""The memory of an edge while E is drawn and sorted by owners; `python -m bench scaling` prints it.

E of all sets of records is never listed."""


Machines = dict[tuple[str, str, str], "Machine"]
"""Protocol, backend and noise of trials that were made → their machine."""


@dataclass(frozen=True)
class Network:
    """The lines between processes.

    delay: one way, in seconds. bandwidth: bytes a second of each process's line, each way; 0 stands
    for no limit.
    """

    delay: float = 0.0
    bandwidth: float = 0.0


@dataclass(frozen=True)
class Seconds:
    """The seconds of a run.

    offline: from the joint seed until all nodes are prepared. online: on data, until the last
    share. total: with the connections and the agreement. following: as total, where the servers
    have run such a study before.
    """

    offline: float
    online: float
    total: float
    following: float

    def with_work(self, before: float, on_data: float) -> Seconds:
        """These seconds with more work, before the data and on it."""
        more = before + on_data
        return Seconds(
            self.offline + before, self.online + on_data, self.total + more, self.following + more
        )


def predict_seconds(
    attempt: SharedAttempt,
    cost: Cost,
    machine: Machine,
    network: Network,
) -> Seconds:
    """The seconds of a run over shared edges, where every process has a machine of its own."""
    study = attempt.study
    nodes = len(attempt.members)
    edges = _shared_edges(attempt)
    work_on_data = machine.evaluating * edges * study.degree / nodes
    links = [len(attempt.transfer_peers(node)) for node in range(nodes)]
    set_up = LINK_SECONDS / 2 * max(links, default=0)
    most_before = max(cost.bytes_dealt, (cost.bytes_offline - cost.bytes_dealt) / nodes)
    material = machine.dealing * edges + _on_line(most_before, network)
    meets = any(attempt.peers(node) for node in range(nodes))
    by_transfers = study.dealer is not None and tosses_apart(study)
    makes_channels = study.backend == "garbled" or by_transfers
    keeps_channels = makes_channels and max(links, default=0) <= MOST_PEERS

    def prepared(kept: bool) -> float:
        """Seconds until all nodes are prepared. Args: kept: the channels of an earlier study."""
        opened = CONNECTION + CALL
        peers = network.delay * (opened + rounds_before(attempt, kept=kept and keeps_channels))
        peers += 0 if kept and keeps_channels else set_up
        dealer = network.delay * opened if attempt.needs_dealer else 0
        return FIXED[1] + 2 * network.delay + dealer + max(peers if meets else 0, material)

    online = FIXED[2] + network.delay * (attempt.rounds - 1 + 4)
    online += work_on_data + _on_line(cost.bytes_online / nodes, network)
    return _in_all(prepared(kept=False), online, network, prepared(kept=True))


def rounds_before(attempt: SharedAttempt, *, kept: bool = False) -> int:
    """The number of rounds in which transfers are set up and noise is drawn under shares.

    Args: kept: channels of transfers are there.
    """
    nodes = range(len(attempt.members))
    rounds = 3 * (not kept and any(attempt.transfer_peers(node) for node in nodes))
    if attempt.noise_chunks:
        rounds = attempt.noise_plan.rounds
    if attempt.toss_plan:
        rounds += attempt.toss_plan.rounds
    return rounds


def predict_trial_seconds(
    attempt: Attempt, cost: Cost, trial: Trial, columns: Columns, network: Network
) -> Seconds:
    """The seconds of a study whose nodes evaluate no edges together, from a trial of it.

    Args: columns: a table with as many records as the nodes have together.
    """
    work = _work_of_trial(attempt, cost, trial, columns)
    if isinstance(attempt, SharedAttempt):
        return predict_seconds(attempt, cost, Machine(0.0, 0.0), network).with_work(0.0, work)
    nodes = len(attempt.study.nodes)
    online = FIXED[2] + network.delay * CALL * (cost.rounds + 1) + work
    revealed = max(cost.revealed, default=0) * nodes
    online += _on_line(max(revealed, cost.bytes_online / nodes), network)
    offline = FIXED[1] + network.delay * CALL
    return _in_all(offline, online, network)


def _work_of_trial(attempt: Attempt, cost: Cost, trial: Trial, columns: Columns) -> float:
    """Processor seconds of a study, from a trial with some records.

    Where messages grow with the fields' bounds, two trials over narrower fields tell of the rest.
    The coins of a committee are left out of these: their cost does not grow. The bytes of both and
    of the whole one are those over few records: the trial's factor tells of more.
    """
    records = max(1, attempt.sizes.records)
    rows = [number * records // trial.records for number in range(trial.records)]
    some = {name: column[rows] for name, column in columns.items()}
    whole = cost.most_sent
    if whole > TRIAL_BYTES[1]:
        whole = most_sent_over_few(trial.study) or whole
    study, sent = narrowed(trial.study, whole, TRIAL_BYTES[1])
    if study == trial.study:
        return _trial(study, some) * trial.factor
    quiet = protocol_of(study).trial_over_edges
    least, fewer = narrowed(study, sent, TRIAL_BYTES[0])
    _trial(quiet(least), some)  # what is made once is made here
    before = _trial(quiet(least), some)
    slope = max(0.0, _trial(quiet(study), some) - before) / max(1, sent - fewer)
    return (before + slope * (whole - fewer)) * trial.factor


def _trial(study: Study, some: Columns) -> float:
    """Processor seconds of a whole study in memory, over a table that its nodes share."""
    nodes = len(study.nodes)
    tables = [
        {name: column[place::nodes] for name, column in clipped(study, some).items()}
        for place in range(nodes)
    ]
    started = time.process_time()
    simulate(study, tables, os.urandom)
    return time.process_time() - started


def seconds_of(
    attempt: Attempt,
    cost: Cost,
    table: ReferenceTable,
    network: Network,
    machines: Machines,
) -> Seconds:
    """The seconds of a run.

    Args:
        machines: the results of earlier trials, by kind of study; a trial of another kind is added.
    """
    study = attempt.study
    work = protocol_of(study).table_work(attempt)
    if work is not None and isinstance(attempt, SharedAttempt):
        before, on_data = work
        # all nodes' tables pass the coordinator's line; one node's part of the bytes is counted
        on_data += _on_line(cost.bytes_online * (1 - 1 / len(study.nodes)), network)
        bare = predict_seconds(attempt, cost, Machine(0.0, 0.0), network)
        return bare.with_work(before, on_data)
    trial = protocol_of(study).trial(study, max(1, attempt.sizes.records))
    if trial is not None:
        return predict_trial_seconds(attempt, cost, trial, table.columns, network)
    if not isinstance(attempt, SharedAttempt):
        raise LocalProtocolError("a study without a trial has edges that nodes share")
    key = (study.protocol, study.backend, study.noise)
    if key not in machines:
        machines[key] = measure_machine(study)
    return predict_seconds(attempt, cost, machines[key], network)


def predict_memory(attempt: Attempt, cost: Cost) -> int:
    """The approximate memory of the largest process, in bytes. Args: cost: of this attempt."""
    sizes = attempt.sizes
    material = cost.bytes_dealt / max(1, len(attempt.members))
    waiting = min(MATERIAL_BYTES, material) + min(WINDOWS_BYTES, cost.most_sent)
    if isinstance(attempt, SharedAttempt) and not attempt.hypergraph.cells:
        # no edge is evaluated by its owners: the nodes send a vector, and get its total
        waiting = VECTORS * cost.most_sent / 2
    listed = 0 if sizes.edges == sizes.sets else LISTED_EDGE_BYTES * sizes.edges
    records = max((member.records for member in attempt.members), default=0)
    columns = 16 * len(attempt.study.fields) * records
    return PROCESS_BYTES + int(waiting) + listed + columns


def _in_all(
    offline: float, online: float, network: Network, following: float | None = None
) -> Seconds:
    """All seconds of a study. Args: following: its offline seconds after another study."""
    before = FIXED[0] + network.delay * (LOOK + CONNECTION + 2 * CALL)
    later = offline if following is None else following
    return Seconds(offline, online, before + offline + online, before + later + online)


def _shared_edges(attempt: SharedAttempt) -> int:
    return sum(cell.count for cell in attempt.hypergraph.shared_cells.values())


def _on_line(count: float, network: Network) -> float:
    return count / network.bandwidth if network.bandwidth else 0.0


# --- narrowing ------------------------------------------------------------------------------------

TRIAL_BYTES = (1 << 15, 1 << 21)
"""The most bytes that a node of two trials sends, where narrower fields make them fewer."""
FEWEST_VALUES = 16
"""A field keeps so many values."""
NARROWINGS = 4
"""How often a field is narrowed, at most."""


def narrowed(study: Study, sent: int, most: int) -> tuple[Study, int]:
    """The study over narrower fields, and the bytes that a node of it sends.

    Where they are few, or do not depend on the fields' bounds, it is the study itself.

    Args: sent: the bytes that a node of the study sends. most: so many are few.
    """
    narrow, now = study, sent
    for _ in range(NARROWINGS):
        if now <= most:
            break
        trial = narrow.replaced(fields=_narrower(narrow.fields, now / most))
        found = most_sent_over_few(trial)
        if found is None or found >= now:
            break
        narrow, now = trial, found
    return narrow, now


def clipped(study: Study, columns: Columns) -> Mapping[str, np.ndarray]:
    """Columns whose values are at most the upper bounds of the study's fields."""
    return {
        name: np.minimum(column, study.schema[name].upper_units) for name, column in columns.items()
    }


def most_sent_over_few(study: Study) -> int | None:
    """Bytes of the node that sends most, over few records; None where such a study cannot be."""
    try:
        attempt = attempt_over(
            checked(study), ",".join(["4+4" if study.two_sample else "8"] * len(study.nodes))
        )
        return protocol_of(study).cost(attempt).most_sent
    except UmpcError:
        return None


def _narrower(fields: Sequence[FieldText], times: float) -> tuple[FieldText, ...]:
    """The fields, of which the one with the most values has so many times fewer."""
    schemas = [field.schema() for field in fields]
    widths = [0 if field.categories else field.upper_units - field.lower_units for field in schemas]
    widest = widths.index(max(widths))
    width = min(widths[widest], max(FEWEST_VALUES, int(widths[widest] / times)))
    field, schema = fields[widest], schemas[widest]
    upper = schema.lower + width * schema.resolution
    changed = FieldText(field.name, field.lower, str(upper), field.resolution, whole=field.whole)
    return (*fields[:widest], changed, *fields[widest + 1 :])


# --- the machine's speed --------------------------------------------------------------------------


TRIAL_RECORDS = 400
"""The most records of a node in a trial."""
OWN_SETS = 1 << 17
"""The most sets of a node's own records in a trial, which it evaluates before all others."""
FEWEST_EDGES = 16
"""The edges of the first chunk that is timed."""
LONG_ENOUGH = 0.03
"""By so many seconds a chunk takes longer than the first one before both tell of an edge."""
GROWTH = 8


Shares = tuple[int, ...]


@dataclass(frozen=True)
class Machine:
    """Seconds of work for one edge.

    dealing: at the dealer. evaluating: at all its owners together.
    """

    dealing: float
    evaluating: float


def measure_machine(study: Study) -> Machine:
    """The speed of this machine, from a trial of the study's own kernels on made-up records.

    The trial runs in this process and takes a fraction of a second.
    """
    if study.degree == 1:
        return Machine(0.0, 0.0)
    edges = _ready(study)
    if edges is None:
        return Machine(0.0, 0.0)
    largest, counts = _shapes_of_cells(edges)
    whole = sum(counts.values())
    dealing = evaluating = 0.0
    for shares, owners in largest.items():
        dealt, evaluated = _seconds_of_an_edge(edges, owners)
        dealing += dealt * counts[shares] / whole
        evaluating += evaluated * counts[shares] / whole
    return Machine(dealing, evaluating)


def _ready(study: Study) -> EdgesInMemory | None:
    """A small study of the same kernels, up to its first edge."""
    nodes = study.nodes[: max(2, study.degree)]
    trial = protocol_of(study).trial_over_edges(study).replaced(nodes=nodes)
    stream, records = Stream(bytes(32)), TRIAL_RECORDS
    while comb(records, study.degree) > OWN_SETS:
        records -= records // 8
    tables = [uniform_columns(trial, records, stream) for _ in nodes]
    return ready_for_edges(trial, tables, os.urandom)


def _shapes_of_cells(edges: EdgesInMemory) -> tuple[dict[Shares, Owners], Counter[Shares]]:
    """For each number of records that owners have in an edge: its largest cell, and its edges."""
    largest: dict[Shares, Owners] = {}
    counts: Counter[Shares] = Counter()
    cells = edges.attempt.hypergraph.shared_cells
    for owners in sorted(cells, key=lambda owners: cells[owners].count):
        shares = tuple(sorted(Counter(owners).values()))
        largest[shares] = owners
        counts[shares] += cells[owners].count
    return largest, counts


def _seconds_of_an_edge(edges: EdgesInMemory, owners: Owners) -> tuple[float, float]:
    """Processor seconds to deal an edge of a cell, and to evaluate it at all its owners.

    The first chunk and the last one tell the cost of an edge and that of a chunk. No edge is
    evaluated twice.
    """
    cell = edges.attempt.hypergraph.cells[owners]
    most = min(edges.attempt.program.plans[pattern_of(owners)].chunk_edges, cell.count)
    chunk = Chunk(owners, 0, 0, min(FEWEST_EDGES, most))
    first = _seconds_of(edges, chunk)
    found = [(chunk.count, *first)]
    size = chunk.count * GROWTH
    if sum(first) < LONG_ENOUGH:
        size = chunk.count
        found = []  # what is made once may have taken most of it
    while (count := min(size, most, cell.count - chunk.stop)) > 0:
        chunk = Chunk(owners, chunk.number + 1, chunk.stop, chunk.stop + count)
        found.append((count, *_seconds_of(edges, chunk)))
        if count == most or sum(found[-1][1:]) - sum(found[0][1:]) >= LONG_ENOUGH:
            break
        size *= GROWTH
    found = found or [(chunk.count, *first)]
    return _of_an_edge(found, 1, most), _of_an_edge(found, 2, most)


def _seconds_of(edges: EdgesInMemory, chunk: Chunk) -> tuple[float, float]:
    """Processor seconds to deal a chunk, and to evaluate it."""
    started = time.process_time()
    dealt = edges.deal(chunk)
    then = time.process_time()
    edges.evaluate(chunk, dealt)
    return then - started, time.process_time() - then


def _of_an_edge(found: list[tuple[int, float, float]], column: int, most: int) -> float:
    """Seconds of an edge in a chunk of `most` edges, from (edges, seconds …) of some chunks."""
    first, last = min(found), max(found)
    if last[0] == first[0]:
        return last[column] / last[0]
    slope = max(0.0, last[column] - first[column]) / (last[0] - first[0])
    return slope + max(0.0, first[column] - slope * first[0]) / most
