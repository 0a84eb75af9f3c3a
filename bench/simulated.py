"""Studies over 256 and 1,024 nodes without the nodes, from the plan's own cost functions.

E is really drawn, and bytes and links follow from it. Seconds follow from the measured cost of each
kind of work on this machine, and from a line of 20 ms and 100 Mbit/s.

`python -m bench.simulated` first runs 4, 16 and 64 nodes as real processes. Bytes and links must be
equal, and processor time is compared. `python -m bench.simulated figures` prints the
figures alone. The studies take pairs, and have a dealer.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from bench.harness import made_up, site
from bench.simulated_study import Simulated, megabytes, study_of
from bench.table import show
from bench.work import Work, measure

NODES = (256, 1_024)
RECORDS = (1, 10, 100)
"""Records of each node."""
REAL = (4, 16, 64)
REAL_RECORDS = 100
COLUMNS = (
    "nodes × records",
    "cells",
    "links",
    "sent by a node",
    "dealt",
    "coordinator",
    "to dealer",
    "offline",
    "online",
)


def main() -> None:
    if sys.argv[1:2] == ["bytes"]:
        columns = (
            "nodes",
            "cells",
            "sent by a node",
            "by all",
            "dealt",
            "to a node",
            "to the dealer, by a node",
        )
        rows = byte_rows([int(nodes) for nodes in sys.argv[2:]])
        show("Kendall, |E| = 2n, one record a node: bytes", columns, rows)
        return
    work = measure(study_of)
    show("This machine: microseconds of a processor", ("work", "µs"), work.rows())
    if sys.argv[1:] != ["figures"]:
        validate(work)
    rows = [Simulated(study_of(nodes), records).row(work) for nodes in NODES for records in RECORDS]
    show(
        "Kendall, |E| = 2n; each process with a processor and a line of 20 ms, 100 Mbit/s",
        COLUMNS,
        rows,
    )
    largest = {nodes: Simulated(study_of(nodes), 1).messages for nodes in NODES}
    rows = [
        (f"{nodes:,} nodes", *(f"{size:,}" for size in sizes.values()))
        for nodes, sizes in largest.items()
    ]
    show("Bytes of one message", ("", *largest[NODES[0]]), rows)


def byte_rows(nodes: Sequence[int]) -> list[tuple[str, ...]]:
    """The bytes of studies with one record a node."""
    rows = []
    for count in nodes:
        model = Simulated(study_of(count), 1)
        told = sum(model.messages[step] for step in ("propose", "agree", "begin", "evaluate"))
        rows.append(
            (
                f"{count:,}",
                f"{len(model.edges):,}",
                f"{model.sent.mean():,.0f}",
                megabytes(int(model.sent.sum())),
                megabytes(int(model.dealt.sum())),
                megabytes(told),
                megabytes(model.messages["deal"]),
            )
        )
    return rows


def validate(work: Work) -> None:
    """Compare real processes with the model: bytes exactly, and processor time.

    The processor time of 2 nodes with one pair is subtracted.
    """
    rows, base = [], None
    for nodes, records in ((2, 1), *((nodes, REAL_RECORDS) for nodes in REAL)):
        with site(made_up(nodes * records), nodes) as here:
            before = here.processor_seconds()
            report = here.study(noise="distributed")
            taken = {name: after - before[name] for name, after in here.processor_seconds().items()}
        dealer = taken.pop("dealer")
        if base is None:
            base = sum(taken.values()) / nodes, dealer
            continue
        model = Simulated(study_of(nodes), records, bytes.fromhex(report["joint_seed"]))
        is_exact = model.sent.tolist() == report["bytes_online_by_node"]
        is_exact &= int(model.dealt.sum()) == report["bytes_offline"]
        measured = sum(taken.values()), dealer
        predicted = (
            nodes * base[0] + float(model.node_work(work).sum()),
            base[1] + model.dealer_work(work),
        )
        sizes = f"{report['bytes_online']:,}", f"{model.sent.sum():,}"
        seconds = (f"{a:.2f} s, {b:.2f} s" for a, b in zip(measured, predicted, strict=True))
        error = f"{sum(predicted) / sum(measured) - 1:+.0%}"
        equal = "equal" if is_exact else "differ"
        links = f"{model.links.mean():.1f}"
        rows.append((f"{nodes} × {records}", *sizes, equal, links, *seconds, error))
    columns = (
        "nodes × records",
        "bytes online",
        "model",
        "all bytes",
        "links",
        "nodes: measured, model",
        "dealer: measured, model",
        "off by",
    )
    show("Real processes beside the simulation", columns, rows)


if __name__ == "__main__":
    main()
