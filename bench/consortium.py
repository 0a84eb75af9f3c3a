"""Ten, a hundred and a thousand sites, and a million people: what a study takes as they grow.

`python -m bench.consortium` prints connections, bytes, seconds and memory of three consortia, by
the grid and by sampled pairs. Bytes are the plan's own. Seconds are of the model that stands below
the table, made of this machine's measured pieces and of a line of 20 ms and 100 Mbit/s.

`python -m bench.consortium real 10 100` runs so many sites as processes on this machine, and prints
the same beside the prediction. `python -m bench.consortium people` prints a study of 10^6 people.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from bench.harness import Site, cores, made_up, site
from bench.jobs import JobFailed
from bench.nodes import watched
from bench.people import DEALT, MILLION, SMALL, WIDE, dealing, expanded
from bench.simulated_study import LINE, Simulated, megabytes, members_of, messages_of, study_of
from bench.table import show
from bench.work import Work, measure
from umpc.cli.table import DemoTable
from umpc.deployment.fork_server import fork_server
from umpc.deployment.processes import Deployment
from umpc.mpc.fss.point import key_bytes
from umpc.people.messages import BOX_BYTES, ROW_BYTES, SEALED_BYTES
from umpc.planning.prediction import attempt_over
from umpc.planning.seconds import CALL, CONNECTION, FIXED, LOOK, predict_memory
from umpc.protocols.grid.settings import GridSettings
from umpc.protocols.registry import protocol_of
from umpc.study.attempt import check_members, check_signatures, members_statement, sign_member
from umpc.study.document import Study
from umpc.study.parts import FieldText
from umpc.transport.authority import Authority
from umpc.transport.identity import credentials_of, load_identity

SITES = (10, 100, 1_000)
OF_GRID, OF_PAIRS = 1_000, 100
"""Records of a site."""
WIDTH = 128
"""Values of each of the two columns of the grid, so it has 2^14 cells."""
SIGNERS = 60
ANSWERED = 3
"""Processes that check all members one after the other: coordinator, nodes, dealer."""
FETCHED = 104 + SEALED_BYTES
RECEIPT = 32 + 64
HEAD = (
    "sites × records",
    "links",
    "agreeing",
    "on data",
    "coordinator",
    "to dealer",
    "checks",
    "in all",
    "memory",
)
RAN = (
    "sites × records",
    "in all",
    "links",
    "bytes on data",
    "as planned",
    "a site's memory",
    "planned",
    "dealer",
    "coordinator",
)


def main(arguments: Sequence[str]) -> None:
    if arguments[:1] == ["people"]:
        people()
    elif arguments[:1] == ["real"]:
        for sites in map(int, arguments[1:]):
            show("Real processes on this machine", RAN, [real(sites, by_grid=True)])
            show("Real processes on this machine", RAN, [real(sites, by_grid=False)])
    else:
        predicted()


def grid_study(sites: int) -> Study:
    fields = tuple(FieldText(name, "0", str(WIDTH - 1), whole=True) for name in ("age", "balance"))
    study = study_of(sites)
    settings = GridSettings(dealer=study.dealer, noise="distributed")
    return study.replaced(name="grid", fields=fields, settings=settings)


# --- the model ------------------------------------------------------------------------------------


def predicted() -> None:
    work, check = measure(study_of), seconds_of_a_check()
    show("This machine: microseconds of a processor", ("work", "µs"), work.rows())
    print(f"a member's certificate and its three signatures, checked: {1e6 * check:.0f} µs")
    show(f"By the grid, {WIDTH * WIDTH:,} cells", HEAD, [of_grid(n, work, check) for n in SITES])
    show("By pairs, |E| = 2n", HEAD, [of_pairs(n, work, check) for n in SITES])
    print(
        "links: connections of a site, to coordinator and dealer too; these have one of each site. "
        "agreeing, on data,\nmemory: of one site. coordinator, to dealer: bytes of all sites.\n"
        f"in all = fixed ({sum(FIXED):.2f} s) + delays × {1000 * LINE.delay:.0f} ms + bytes of the "
        f"busiest line / {LINE.bandwidth * 8 / 1e6:.0f} Mbit/s\n"
        f"         + connections × {1e3 * work.connection:.1f} ms at coordinator and dealer "
        f"+ {ANSWERED} × checks + work on data\n"
        "checks = sites × the check of a member, at each process; coordinator, nodes and dealer "
        "follow each other.\n"
        "Each process has a processor of its own. A slowest site, a lost line and heartbeats are "
        "left out."
    )


def of_grid(sites: int, work: Work, check: float) -> tuple[str, ...]:
    """A row: each site sends a vector of cells up, and gets the total down."""
    study = grid_study(sites)
    attempt = attempt_over(study, ",".join([str(OF_GRID)] * sites))
    cost = protocol_of(study).cost(attempt)
    told, dealt = _messages(messages_of(study, members_of(study, OF_GRID)))
    on_data = cost.bytes_online / sites
    vectors = cost.bytes_online / LINE.bandwidth  # up, then down, over the coordinator's line
    delays = LOOK + 2 * CONNECTION + 4 * CALL + CALL * (cost.rounds + 1)
    seconds = sum(FIXED) + delays * LINE.delay + vectors
    seconds += sites * (told + dealt) / LINE.bandwidth + 2 * sites * work.connection
    return _row(
        sites,
        OF_GRID,
        2,
        told,
        on_data,
        sites * (told + on_data),
        sites * dealt,
        sites * check,
        seconds + ANSWERED * sites * check,
        predict_memory(attempt, cost),
    )


def of_pairs(sites: int, work: Work, check: float) -> tuple[str, ...]:
    """A row: links between the sites, one for each two with an edge."""
    model = Simulated(study_of(sites), OF_PAIRS)
    told, dealt = _messages(model.messages)
    seconds = model.seconds(work, LINE)
    attempt = attempt_over(model.study, ",".join([str(OF_PAIRS)] * sites))
    return _row(
        sites,
        OF_PAIRS,
        int(model.links.max()) + 2,
        told,
        float(model.sent.mean()),
        sites * told + sites * model.program.ring.bytes,
        sites * dealt,
        sites * check,
        seconds.agreed + seconds.offline + seconds.online + ANSWERED * sites * check,
        predict_memory(attempt, protocol_of(model.study).cost(attempt)),
    )


def _messages(sizes: dict[str, int]) -> tuple[int, int]:
    """Bytes to a site before data, and bytes of a site to the dealer."""
    return sum(sizes.values()) - sizes["deal"], sizes["deal"]


def _row(
    sites: int,
    records: int,
    connections: int,
    told: float,
    on_data: float,
    coordinator: float,
    to_dealer: float,
    checks: float,
    seconds: float,
    memory: int,
) -> tuple[str, ...]:
    return (
        f"{sites:,} × {records:,}",
        f"{connections:,}",
        f"{told / 1e3:,.1f} kB",
        f"{on_data / 1e3:,.1f} kB",
        megabytes(int(coordinator)),
        megabytes(int(to_dealer)),
        f"{checks:.2f} s",
        f"{seconds:.1f} s",
        f"{memory / 2**20:.0f} MiB",
    )


def seconds_of_a_check() -> float:
    """Processor seconds to check one member: its certificate, and three signatures of it."""
    study = study_of(SIGNERS)
    with tempfile.TemporaryDirectory(prefix="umpc-bench-") as name:
        authority, own = Authority.create(Path(name) / "authority"), []
        for node in study.nodes:
            authority.issue(node.name, "node", Path(name) / node.name)
            own.append(credentials_of(load_identity(Path(name) / node.name, "node")))
        signers = list(zip(members_of(study, 1), own, strict=True))
        members = [sign_member(study.hash, member, each) for member, each in signers]
        statement = members_statement(study, members)
        signatures = [each.sign(statement) for each in own]
        started = time.process_time()
        keys = check_members(study, members, own[0].verify, None, "prepare")
        for _ in range(2):
            check_signatures("them", statement, members, keys, signatures, None, "prepare")
        return (time.process_time() - started) / SIGNERS


# --- real processes -------------------------------------------------------------------------------


def real(sites: int, *, by_grid: bool) -> tuple[str, ...]:
    """Run one study, and return its line of the table."""
    records = OF_GRID if by_grid else OF_PAIRS
    table = made_up(sites * records)
    if by_grid:
        rows = [(str(i * 7919 % WIDTH), str(i * 104_729 % WIDTH)) for i in range(sites * records)]
        table = DemoTable(("age", "balance"), rows)
    changes = {"backend": "grid", "edges": "all"} if by_grid else {"edges": "2n"}
    with fork_server() as start, site(table, sites, popen=start) as here:
        file = here.study_file(noise="distributed", seconds_per_step=3600, **changes)
        with watched(here) as sockets:
            report, coordinator = _run(file)
        memory = here.memory()
        largest = max(memory[name] for name in here.names)
        planned = _planned(here, records, by_grid=by_grid)
    return (
        f"{sites} × {records:,}, {'grid' if by_grid else 'pairs'}",
        f"{report['seconds_total']:.1f} s",
        str(max(sockets[name] for name in here.names)),
        f"{report['bytes_online']:,}",
        "yes" if report["bytes_online"] == report["bytes_online_predicted"] else "no",
        f"{largest / 2**20:.0f} MiB",
        f"{planned / 2**20:.0f} MiB",
        f"{memory['dealer'] / 2**20:.0f} MiB",
        f"{coordinator / 2**20:.0f} MiB",
    )


def _run(file: Path) -> tuple[dict, int]:
    """A study's report, and the coordinator's peak memory. Raises: JobFailed."""
    words = [*Deployment.command, "study", "run", str(file), "--format", "json"]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as process:
        report = json.load(process.stdout)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise JobFailed(report["message"])
    return report, used.ru_maxrss << 10


def _planned(here: Site, records: int, *, by_grid: bool) -> int:
    sites = len(here.names)
    study = grid_study(sites) if by_grid else study_of(sites)
    attempt = attempt_over(study, ",".join([str(records)] * sites))
    return predict_memory(attempt, protocol_of(study).cost(attempt))


# --- people ---------------------------------------------------------------------------------------


def people() -> None:
    """A study of 10^6 people: bytes from the formats, seconds from measured pieces."""
    dealt = dealing() * MILLION / DEALT
    rows = []
    for cells in (SMALL, WIDE):
        count, seconds, _ = expanded(cells, cores())
        keys = MILLION * key_bytes(cells)
        rows.append(
            (
                f"{cells:,}",
                f"{FETCHED + 2 * (BOX_BYTES + RECEIPT)} B",
                megabytes(keys),
                megabytes(MILLION * (BOX_BYTES + RECEIPT)),
                megabytes(MILLION * ROW_BYTES),
                f"{dealt:.0f} s",
                f"{seconds * MILLION / count:.1f} s",
            )
        )
    columns = (
        "cells",
        "a person, both ways",
        "keys to an aggregator",
        "boxes, receipts",
        "a list",
        "dealing",
        "adding up",
    )
    show("10^6 people with one value each", columns, rows)


if __name__ == "__main__":
    main(sys.argv[1:])
