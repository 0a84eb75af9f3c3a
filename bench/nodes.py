"""Studies over 64 nodes on this machine, each beside one of the same records over 2 nodes.

All nodes are real processes, and each has its own certificate. With 1 record each, a node shares
edges with a few others; with 100 each, with nearly all. A round goes to all peers at once, so the
number of rounds must equal that of 2 nodes. The seconds grow, because all processes share the
cores of one machine. Both studies of a pair sample as many edges, since few edges are compared by
keys and many by tables, which take a round more.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.harness import Site, made_up, site
from bench.table import show

NODES, FEW = 64, 2
RECORDS = (1, 100)
"""Records of each of the many nodes."""
WATCH_SECONDS = 0.1
FACTS = {"noise": "distributed", "edges": "2n"}


def main() -> None:
    rows = []
    for records in RECORDS:
        rows += [study(FEW, NODES // FEW * records), study(NODES, records)]
    columns = (
        "nodes × records",
        "in all",
        "offline",
        "online",
        "rounds",
        "sockets",
        "a node's bytes",
        "memory",
    )
    show("Kendall, |E| = 2n; sockets, bytes, memory: the largest of all nodes", columns, rows)


def study(nodes: int, records: int) -> tuple[str, ...]:
    """Run one study, and return its line of the table."""
    with site(made_up(nodes * records), nodes) as here:
        with watched(here) as sockets:
            report = here.study(**FACTS)
        memory = max(size for name, size in here.memory().items() if name != "dealer")
    seconds = [f"{report[f'seconds_{part}']:.2f} s" for part in ("total", "offline", "online")]
    most = max(sockets[name] for name in here.names)
    sent = max(report["bytes_online_by_node"])
    return (
        f"{nodes} × {records}",
        *seconds,
        str(report["rounds"]),
        str(most),
        f"{sent:,}",
        f"{memory / 2**20:.0f} MiB",
    )


@contextmanager
def watched(here: Site) -> Iterator[dict[str, int]]:
    """The largest number of connections that each process had open at once, by name.

    A connection is a connected socket; sockets that a process had before the study do not count.
    """
    most = dict.fromkeys(here.served, 0)
    over = threading.Event()
    before = {name: _sockets(each.process.pid) for name, each in here.served.items()}

    def watch() -> None:
        while not over.wait(WATCH_SECONDS):
            for name, each in here.served.items():
                most[name] = max(most[name], _sockets(each.process.pid) - before[name])

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield most
    finally:
        over.set()
        thread.join()


def _sockets(pid: int) -> int:
    found = 0
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        try:
            found += entry.readlink().name.startswith("socket:")
        except OSError:  # closed meanwhile
            continue
    return found


if __name__ == "__main__":
    main()
