"""Many nodes through a hub, against direct links: seconds, processor seconds, memory of the hub.

`python -m bench.hub --nodes 64 --records 100 --runs 3` prints a line for each run. All processes
are forked from one that has imported everything. On a busy machine only processor seconds tell.

`--busy 4` starts four processes that compute without end, and `--within 8` says of each run whether
it took at most 8 seconds in all: from the first connection to the report, as `bench nodes` has it.
"Process" is the start and the end of the
coordinator's own process. A run that fails ends the benchmark with its reason.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from bench.harness import made_up, peak_memory, site
from bench.table import show
from umpc.deployment.fork_server import fork_server
from umpc.deployment.processes import ended_with_us

FACTS = {"noise": "distributed", "edges": "2n"}
COLUMNS = (
    "way",
    "start",
    "in all",
    "process",
    "nodes",
    "dealer",
    "hub",
    "hub's memory",
    "in time",
)
BUSY = "while True: pass"


@contextmanager
def busy_processes(number: int) -> Iterator[None]:
    """Keep the processors busy with so many processes, until the block or this process ends."""
    processes: list[subprocess.Popen[bytes]] = []
    with ended_with_us(processes):
        for _ in range(number):
            processes.append(subprocess.Popen([sys.executable, "-c", BUSY]))
        yield


def measure(
    nodes: int,
    records: int,
    runs: int,
    within: float,
    *,
    hub: bool,
    backend: str,
) -> list[list[str]]:
    """Run studies over one deployment, and return a line for each."""
    rows = []
    begun = time.perf_counter()
    with (
        fork_server() as popen,
        site(made_up(nodes * records), nodes, hub=hub, popen=popen) as here,
    ):
        started = time.perf_counter() - begun
        for _ in range(runs):
            before = here.processor_seconds()
            report = here.study(**FACTS, backend=backend)
            spent = {name: now - before[name] for name, now in here.processor_seconds().items()}
            process = here.served["hub"].process.pid if hub else 0
            rows.append(
                [
                    "hub" if hub else "direct",
                    f"{started:.1f} s",
                    f"{report['seconds_total']:.1f} s",
                    f"{report['wall'] - report['seconds_total']:.1f} s",
                    f"{sum(spent[name] for name in here.names):.1f} s",
                    f"{spent['dealer']:.1f} s",
                    f"{spent['hub']:.1f} s" if hub else "",
                    f"{peak_memory(process) / 2**20:.0f} MiB" if hub else "",
                    "yes" if report["seconds_total"] <= within else "no",
                ]
            )
            print(*rows[-1], sep="  ", flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=64)
    parser.add_argument("--records", type=int, default=100)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--direct", action="store_true", help="Measure direct links too.")
    parser.add_argument("--backend", default="shared", choices=("shared", "grid"))
    parser.add_argument("--busy", type=int, default=0, help="Processes that compute without end.")
    parser.add_argument("--within", type=float, default=8, help="Seconds that a run may take.")
    given = parser.parse_args()
    rows = []
    with busy_processes(given.busy):
        for hub in (True, False) if given.direct else (True,):
            rows += measure(
                *(given.nodes, given.records, given.runs, given.within),
                hub=hub,
                backend=given.backend,
            )
    late = sum(row[-1] == "no" for row in rows)
    print(f"{len(rows) - late} of {len(rows)} runs took at most {given.within:g} s")
    show(f"{given.nodes} nodes with {given.records} records each", COLUMNS, rows)


if __name__ == "__main__":
    main()
