"""Studies without a dealer, one after the other: processor ms of each node, with kept roots.

Run `python -m bench.chained`. The first study sets up by curve points, the later ones by the root
that the one before left (`mpc/transfers/kept_roots.py`). `checked` studies prove their transfers.
Seconds are those of the node processes' processors, without the coordinator's.
"""

from __future__ import annotations

from pathlib import Path
from statistics import median
from typing import Any

from bench.bank import GARBLED
from bench.harness import Site, bank_table, site
from bench.table import show

LATER = 6
KINDS: dict[str, dict[str, Any]] = {
    "unchecked": {},
    "checked": {"transfers": "checked"},
}


def main() -> None:
    table, source = bank_table()
    rows = []
    for kind, changes in KINDS.items():
        with site(table, 2, dealer=False) as here:
            # The first study reads the table, compiles and takes curve points.
            _spent(here, **GARBLED, **changes)
            spent = [_spent(here, **GARBLED, **changes) for _ in range(LATER)]
        milliseconds = [median(each) for each in zip(*(ms for ms, _ in spent), strict=True)]
        report = spent[-1][1]
        sent = report["bytes_online"] + report["bytes_offline"]
        told = report["bytes_online_predicted"] + report["bytes_offline_predicted"]
        rows.append(
            (
                kind,
                *(f"{each:.0f}" for each in milliseconds),
                f"{1e3 * min(report['seconds_total'] for _, report in spent):.0f}",
                f"{sent:,}",
                f"{told - sent:+,}",
            )
        )
    columns = ("transfers", "garbler, ms", "evaluator, ms", "least total, ms", "bytes", "predicted")
    title = f"{source}: Kendall's tau over 4n pairs, garbled; medians of {LATER} studies"
    show(title, columns, rows)


def _spent(here: Site, **changes: Any) -> tuple[list[float], dict[str, Any]]:
    """Processor milliseconds of each node for one study, and its report."""
    before = [_milliseconds(here, name) for name in here.names]
    report = here.study(**changes)
    after = [_milliseconds(here, name) for name in here.names]
    return [late - early for early, late in zip(before, after, strict=True)], report


def _milliseconds(here: Site, name: str) -> float:
    """Processor milliseconds of a node's threads that live: the scheduler's, to a microsecond."""
    tasks = Path(f"/proc/{here.served[name].process.pid}/task")
    spent = (int((task / "schedstat").read_text().split()[0]) for task in tasks.iterdir())
    return sum(spent) / 1e6


if __name__ == "__main__":
    main()
