"""How many people two sites share, over real processes: the number, its interval, and seconds.

`python -m bench.overlap` compares two made-up registries of 10^5 people, 3,000 of them in both, 20
times. `--people 10000 --runs 20` takes less.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from bench.harness import BUDGET, RULES, Site
from bench.table import show
from umpc.deployment.processes import Deployment, ended_with_us

NAMES = ("north", "south")
EPSILON = "0.5"
SECONDS = 3600
"""The most that a step may take on a busy machine."""


def main(people: int, shared: int, runs: int) -> None:
    """Print a row for each run, and how often the interval held the true number."""
    rows, inside = [], 0
    with tempfile.TemporaryDirectory(prefix="umpc-bench-") as name:
        deployment = Deployment(Path(name))
        with ended_with_us(deployment.processes):
            for place, site in enumerate(NAMES):
                table, first = Path(name) / f"{site}.csv", place * (people - shared)
                who = (f"{first + each:08d}" for each in range(people))
                table.write_text("person\n" + "\n".join(who) + "\n")
                deployment.start_node(site, table, BUDGET, more=f'{RULES}person = "person"\n')
            here = Site(Path(name), deployment.wait_until_ready(), NAMES, ())
            used = 0.0
            for run in range(1, runs + 1):
                report = compared(here)
                holds = report["low"] <= shared <= report["high"]
                inside += holds
                before, used = used, sum(here.processor_seconds().values())
                interval = f"{report['low']:,.0f} to {report['high']:,.0f}"
                seconds = f"{report['wall']:.1f}", f"{used - before:.1f}"
                rows.append((f"{run}", f"{report['estimate']:,.0f}", interval, *seconds))
                print(*rows[-1], flush=True)
    title = f"Two registries of {people:,} people, {shared:,} in both, epsilon {EPSILON}"
    show(title, ("run", "number", "95 % interval", "seconds", "of processors"), rows)
    print(f"{report['bytes_online']:,} bytes; {inside} of {runs} intervals hold {shared:,}")


def compared(here: Site) -> dict[str, object]:
    """The report of one comparison, with the seconds from the command to its end."""
    none = {"statistic": None, "columns": None, "edges": None}
    own = {"protocol": "overlap", "person": "person", "epsilon": EPSILON}
    return here.study(**none, **own, seconds_per_step=SECONDS)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m bench.overlap")
    parser.add_argument("--people", type=int, default=100_000)
    parser.add_argument("--shared", type=int, default=3_000)
    parser.add_argument("--runs", type=int, default=20)
    main(**vars(parser.parse_args()))
