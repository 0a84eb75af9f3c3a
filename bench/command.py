"""The time for which a user of `umpc study run` waits: a new process, the study, and its report.

`python -m bench.command [RUNS]` runs Kendall's tau over the bank table, with 2 nodes and a dealer
that are up. Each run is a command of its own. Seconds are of the wall's clock but for *processor*,
which is that of the command alone; *online* and *in all* are the report's.
"""

from __future__ import annotations

import resource
import sys
from statistics import median

from bench.harness import Site, bank_table, cores, site
from bench.table import show

NODES, WARM_UP, RUNS = 2, 2, 15
COLUMNS = ("seconds", "least", "median", "most")


def main(runs: int) -> None:
    table, source = bank_table()
    with site(table, NODES) as here:
        for _ in range(WARM_UP):
            here.study()
        found = [measured(here) for _ in range(runs)]
    rows = [
        (name, *(f"{pick([each[name] for each in found]):.2f}" for pick in (min, median, max)))
        for name in found[0]
    ]
    show(f"`umpc study run`, {source}, {runs} runs, {cores()} cores", COLUMNS, rows)


def measured(here: Site) -> dict[str, float]:
    """Run one command. Returns: its seconds by what they are."""
    before = _children()
    report = here.study()
    return {
        "start to end": report["wall"],
        "processor": _children() - before,
        "in all": report["seconds_total"],
        "online": report["seconds_online"],
    }


def _children() -> float:
    """Processor seconds of the commands that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else RUNS)
