"""Columns at different sites: a whole study over real processes on this machine, phase by phase.

`python -m bench.linked 10000` takes another number of rows, `python -m bench.linked 10000
lying_nodes` the other grade.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from bench.harness import cores, peak_memory, processor_seconds
from bench.people import MILLION
from bench.table import show
from umpc.api.study import run_now
from umpc.coordinator.client import run_study
from umpc.coordinator.people import link_rows, open_people
from umpc.coordinator.studyfile import load_study_file
from umpc.deployment.fork_server import fork_server
from umpc.deployment.processes import Deployment, Served, ended_with_us
from umpc.protocols.people.terms import messages_of
from umpc.study.settings import HONEST
from umpc.transport.identity import load_identity

SITES = {"north": "x", "south": "y"}
WIDTH = 64
"""Values of each column: together they have 2^12 cells."""
COLUMNS = ("", "rows", "seconds", "rows a second")


def study_file(folder: Path, served: dict[str, Served], rows: int, grade: str) -> Path:
    """Write the file of a study of both columns."""
    lines = [
        'name = "linked"\nstatistic = "kendall_tau"\ncolumns = ["x", "y"]\nepsilon = 1',
        f'identity = "coordinator"\nprotocol = "linked"\nadversary = "{grade}"',
        *(
            f'[[fields]]\nname = "{field}"\nlower = 0\nupper = {WIDTH - 1}\nwhole = true'
            for field in SITES.values()
        ),
        f'[dealer]\nname = "dealer"\naddress = "{served["dealer"].address}"',
        *(f'[[nodes]]\nname = "{site}"\naddress = "{served[site].address}"' for site in SITES),
        f'[linked]\nfirst = ["x"]\nrows = {rows}\ncloses = "2099-12-31T00:00:00Z"',
    ]
    path = folder / "study.toml"
    path.write_text("\n".join(lines) + "\n")
    return path


def write_tables(folder: Path, rows: int) -> None:
    """Write both tables, each in an order of its own."""
    rng = np.random.default_rng(rows)
    keys = rng.permutation(10 * rows)[:rows]
    x = rng.integers(0, WIDTH, rows)
    values = {"x": x, "y": np.clip(x + rng.integers(-20, 21, rows), 0, WIDTH - 1)}
    for site, field in SITES.items():
        order = rng.permutation(rows)
        lines = (
            f"p{key:09d},{value}"
            for key, value in zip(keys[order], values[field][order], strict=True)
        )
        (folder / f"{site}.csv").write_text("\n".join([f"key,{field}", *lines]) + "\n")


def main(rows: int = MILLION, grade: str = HONEST) -> float:
    """Print all phases. Returns: seconds of the whole study."""
    found: list[tuple[str, ...]] = []

    @contextmanager
    def timed(name: str) -> Iterator[None]:
        started = time.perf_counter()
        yield
        seconds = time.perf_counter() - started
        found.append((name, f"{rows:,}", f"{seconds:.2f}", f"{rows / seconds:,.0f}"))

    with tempfile.TemporaryDirectory(prefix="umpc-bench-") as name, fork_server() as popen:
        folder = Path(name)
        write_tables(folder, rows)
        deployment = Deployment(folder, popen=popen)
        with ended_with_us(deployment.processes):
            deployment.start_dealer(people=True)
            for site in SITES:
                more = f'[linked]\nfolder = "{site}-linked"\nkey = "key"\n'
                deployment.start_node(site, folder / f"{site}.csv", "1000", more=more, delta="1e-3")
            served = deployment.wait_until_ready()
            study = load_study_file(study_file(folder, served, rows, grade)).study("coordinator")
            identity = load_identity(folder / "coordinator", "coordinator")
            with timed("all of it"):
                with timed("keys dealt to both"):
                    run_now(open_people(study, lambda: (), identity))
                with timed("tables read, lists signed, added up"):
                    counted = run_now(link_rows(study, identity))
                with timed("the grid of both sites"):
                    report = run_now(run_study(counted, identity))
            used = {
                each: (peak_memory(here.process.pid), processor_seconds(here.process.pid))
                for each, here in served.items()
            }
    assert report.records == rows
    cells = messages_of(study).cells
    show(f"Linked rows in {cells:,} cells, {grade}, {cores()} cores", COLUMNS, found)
    for each, (size, seconds) in used.items():
        print(f"{each}: {size / 2**20:.0f} MiB, {seconds:.1f} s of a processor")
    return float(found[-1][2])


if __name__ == "__main__":
    main(*(int(each) if each.isdigit() else each for each in sys.argv[1:]))
