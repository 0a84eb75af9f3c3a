"""Studies over hundreds of members with one record each, hosted by two processes.

`python -m bench.members 64 128 256` prints, for each number of members, the processor seconds of
every process from the study's start to its end, its memory, and whether bytes equal the prediction
and the model of `bench.simulated_study`.
`--hub` lets all of them dial a hub. `--hosts 4` chooses the number of host processes. `--busy 4`
starts as many processes that compute without end, once all members wait. `--keep FOLDER` takes the
logs of a study that failed.

Wall time depends on what else the machine does, so compare processor seconds.
"""

from __future__ import annotations

import argparse
import contextlib
import resource
import shutil
import tempfile
import time
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

from bench.harness import BUDGET, RULES, Site, made_up, peak_memory, processor_seconds
from bench.hub import busy_processes
from bench.jobs import JobFailed
from bench.simulated_study import Simulated, study_of
from bench.table import show
from umpc.deployment.fork_server import fork_server
from umpc.deployment.processes import Deployment, Served, ended_with_us

COLUMNS = (
    "members",
    "start, wall",
    "study, wall",
    "hosts",
    "dealer",
    "coordinator",
    "hub",
    "memory of a host",
    "sent by all",
    "bytes as predicted",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("members", type=int, nargs="+")
    parser.add_argument("--hosts", type=int, default=2)
    parser.add_argument("--hub", action="store_true")
    parser.add_argument("--busy", type=int, default=0)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--protocol", choices=("pairs", "local-mean"), default="pairs")
    given = parser.parse_args()
    rows = [study(members, given) for members in given.members]
    show(f"{given.hosts} host processes, one record a member, {given.protocol}", COLUMNS, rows)


def study(members: int, given: argparse.Namespace) -> tuple[str, ...]:
    """Run one study, and return its line of the table. Args: given: the command's options."""
    hosts, protocol = given.hosts, given.protocol
    table = made_up(members)
    with (
        tempfile.TemporaryDirectory(prefix="umpc-members-") as name,
        fork_server() as start,
    ):
        folder = Path(name)
        deployment = Deployment(folder, popen=start)
        with ended_with_us(deployment.processes):
            begun = time.perf_counter()
            hub_served = deployment.start_hub() if given.hub else None
            if protocol == "pairs":
                deployment.start_dealer()
            paths = table.split(folder, members)
            for host in range(hosts):
                own = {path.stem: path for path in paths[host::hosts]}
                half = str(Fraction(1, 2))
                deployment.start_many(f"host-{host + 1}", own, BUDGET, RULES, half)
            served = deployment.wait_until_ready()
            ready = time.perf_counter() - begun
            here = Site(folder, served, [path.stem for path in paths], table.fields())
            with busy_processes(given.busy), _logs_kept(folder, given.keep):
                return _measured(here, _unlike(served, hub_served), protocol, ready)


@contextlib.contextmanager
def _logs_kept(folder: Path, to: Path | None) -> Iterator[None]:
    """Copy all logs of a study that fails. Args: to: the folder for them; None for none."""
    try:
        yield
    except JobFailed:
        if to is not None:
            to.mkdir(parents=True, exist_ok=True)
            for log in folder.glob("*.log"):
                shutil.copy(log, to)
        raise


def _unlike(served: dict[str, Served], hub: Served | None) -> dict[str, Served]:
    """Return each process once: a host under the name of its log."""
    found = {each.log.stem: each for each in served.values()}
    return found if hub is None else found | {"hub": hub}


def _measured(
    here: Site, processes: dict[str, Served], protocol: str, ready: float
) -> tuple[str, ...]:
    def used() -> dict[str, float]:
        return {name: processor_seconds(each.process.pid) for name, each in processes.items()}

    changes: dict[str, Any] = {"seconds_per_step": 3600}
    if protocol == "pairs":
        changes["noise"] = "distributed"
    else:
        changes |= {
            "protocol": protocol,
            "statistic": "mean",
            "columns": ["age"],
            "edges": None,
            "fields": [],
        }
    before, children = used(), resource.getrusage(resource.RUSAGE_CHILDREN)
    begun = time.perf_counter()
    report = here.study(**changes)
    wall = time.perf_counter() - begun
    after, ended = used(), resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = {name: after[name] - before[name] for name in before}
    own = ended.ru_utime + ended.ru_stime - children.ru_utime - children.ru_stime
    hosts = [name for name in spent if name.startswith("host-")]
    memory = max(peak_memory(processes[name].process.pid) for name in hosts)
    is_exact = report["bytes_online_by_node"] == report["bytes_online_by_node_predicted"]
    if protocol == "pairs":
        asked = study_of(len(here.names)).replaced(fields=tuple(here.fields))
        model = Simulated(asked, 1, bytes.fromhex(report["joint_seed"]))
        is_exact &= model.sent.tolist() == report["bytes_online_by_node"]
        is_exact &= int(model.dealt.sum()) == report["bytes_offline"]
    return (
        f"{len(here.names):,}",
        f"{ready:.1f} s",
        f"{wall:.1f} s",
        f"{sum(spent[name] for name in hosts):.1f} s",
        f"{spent.get('dealer', 0):.1f} s",
        f"{own:.1f} s",
        f"{spent.get('hub', 0):.1f} s",
        f"{memory / 2**20:.0f} MiB",
        f"{report['bytes_online']:,}",
        "yes" if is_exact else "no",
    )


if __name__ == "__main__":
    main()
