"""One study over 64 nodes on this machine, beside the same over 2: real processes, each with a certificate of its own.

With 1 record each a node meets a few others, with 100 each it meets nearly all. A round goes to all peers at once, so
the number of rounds must be that of 2 nodes; seconds grow, because all processes share the cores of one machine.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.harness import Site, made_up, site
from bench.table import Figure, show

NODES = 64
RECORDS = (1, 100)
"""Of each node."""
WATCH_SECONDS = 0.1
FACTS = {"noise": "distributed", "edges": "2n"}


def main() -> list[Figure]:
    few, row = study(2, 100)
    rows, figures = [row], []
    for records in RECORDS:
        report, row = study(NODES, records)
        rows.append(row)
        name = f"{NODES} nodes with {records} record{'s' * (records > 1)} each"
        shown, wanted = (
            f"{report['rounds']} in {report['seconds_total']:.1f} s",
            f"{few['rounds']}, as 2 nodes'",
        )
        figures.append(Figure(f"{name}: rounds", shown, wanted, report["rounds"] == few["rounds"]))
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
    show("Kendall, |E| = 2n; sockets, bytes, memory: the most of a node", columns, rows)
    return figures


def study(nodes: int, records: int) -> tuple[dict, tuple[str, ...]]:
    with site(made_up(nodes * records), nodes) as here:
        with watched(here) as sockets:
            report = here.study(**FACTS)
        memory = max(size for name, size in here.memory().items() if name != "dealer")
    seconds = [f"{report[f'seconds_{part}']:.2f} s" for part in ("total", "offline", "online")]
    most = max(sockets[name] for name in here.names)
    sent = max(report["bytes_online_by_node"])
    row = (
        f"{nodes} × {records}",
        *seconds,
        str(report["rounds"]),
        str(most),
        f"{sent:,}",
        f"{memory / 2**20:.0f} MiB",
    )
    return report, row


@contextmanager
def watched(here: Site) -> Iterator[dict[str, int]]:
    """How many connections each process had open at once, at most: connected sockets, and none of itself to itself."""
    most, over = dict.fromkeys(here.served, 0), threading.Event()
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
        except OSError:  # closed in between
            continue
    return found


if __name__ == "__main__":
    main()
