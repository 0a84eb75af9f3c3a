"""`umpc plan`: a study's error and cost, and those of every other protocol, beforehand."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from math import inf, sqrt
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from umpc.coordinator.studyfile import StudyFile
    from umpc.planning.alternatives import Alternative, Impossible, Targets
    from umpc.planning.reference_table import ReferenceTable
    from umpc.planning.seconds import Network
    from umpc.study.attempt import Attempt

FILE = click.Path(dir_okay=False, path_type=Path)
WIDTH = 150
"""The width of the table of protocols, where the output is not a terminal."""
ERRORS = ("noise_std", "sampling_std", "bins_bias", "mse")
Values = dict[str, float | None]
"""A study's predicted errors and costs, by name."""


@click.command()
@click.argument("file", type=FILE)
@click.option("--records", required=True, help="Each node's number of records, as 300,300,200.")
@click.option(
    "--delay",
    default=10.0,
    show_default=True,
    help="The delay between any two sites, one way, in milliseconds.",
)
@click.option(
    "--bandwidth",
    default=100.0,
    show_default=True,
    help="The speed of each site's line, each way, in megabits a second.",
)
@click.option(
    "--like", type=FILE, help="A CSV file like the sites' own, for errors that depend on data."
)
@click.option(
    "--delimiter", default=",", show_default=True, help="The separator of the columns of --like."
)
@click.option(
    "--protocols", "compare", is_flag=True, help="Also compare all protocols, and name the best."
)
@click.option(
    "--error",
    type=click.FloatRange(min=0, min_open=True),
    help="Target: the largest root mean squared error.",
)
@click.option(
    "--megabytes", type=click.FloatRange(min=0), help="Target: the most megabytes in all."
)
@click.option("--seconds", type=click.FloatRange(min=0), help="Target: the most seconds in all.")
@click.option(
    "--trust",
    type=click.Choice(["nobody", "helpers", "curator"]),
    help="Target: the most trust that sites give. The default is helpers without data.",
)
@click.option(
    "--format", "style", type=click.Choice(["table", "json"]), default="table", show_default=True
)
def plan(
    file: Path,
    records: str,
    delay: float,
    bandwidth: float,
    like: Path | None,
    delimiter: str,
    compare: bool,
    error: float | None,
    megabytes: float | None,
    seconds: float | None,
    trust: str | None,
    style: str,
) -> None:
    """Predict the error and the cost of the study in FILE, before any site is asked.

    Rounds and bytes are exact. Seconds come from counted delays, from the bytes, and from a trial
    of the study's own kernels on made-up records on this machine. The trial takes a few seconds.
    Every site is taken to have a machine like this one to itself. The command asks no site and
    needs no certificate.

    Errors are towards the statistic of all the sites' records. The noise is known. The errors from
    taking E, from bins and from randomised records depend on the data. They are computed over the
    file --like, a public or older table that stays on this machine, or over records that are
    uniform between their bounds.

    With --protocols, or with any target, every protocol is planned for the same statistic, each
    with its usual settings. The command names the best one that meets all targets: it has the least
    error or, with --error, the fewest bytes. "Sampling = noise" is u-mpc over the fewest sets whose
    sampling error is no larger than the noise. More sets gain little.

    \b
    umpc plan study.toml --records 303,294,200 --delay 20 --bandwidth 100
    umpc plan study.toml --records 303,294,200 --like last-year.csv --protocols
    umpc plan study.toml --records 303,294,200 --error 0.02 --megabytes 10 --trust nobody
    """
    from umpc.coordinator.studyfile import load_study_file
    from umpc.errors import StudyError
    from umpc.planning.alternatives import Targets
    from umpc.planning.prediction import attempt_over, reference_table_of
    from umpc.planning.seconds import Network

    if not (0 <= delay < inf and 0 < bandwidth < inf):
        raise StudyError(
            f"--delay is at least 0 and --bandwidth above 0, both numbers; got {delay} and "
            f"{bandwidth}"
        )
    entries = load_study_file(file)
    network = Network(delay / 1e3, bandwidth * 125_000)
    attempt = attempt_over(entries.study("coordinator"), records)
    table = reference_table_of(attempt, like, delimiter)
    values = _own(attempt, table, network)
    compare = compare or any(target is not None for target in (error, megabytes, seconds, trust))
    targets = Targets(error, megabytes, seconds, trust or "helpers")
    found = _compare(entries, records, table, network, error) if compare else []
    if style == "json":
        click.echo(json.dumps({**values, **(_as_json(found, targets) if compare else {})}))
        return
    over = like.name if like else "uniform records"
    study = attempt.study
    line = f"{delay:g} ms one way, {bandwidth:g} Mbit/s"
    title = f"study {study.name!r}, {study.protocol}: {line}"
    _show(title, values, over)
    if compare:
        _show_protocols(found, targets, over)


def _own(attempt: Attempt, like: ReferenceTable, network: Network) -> Values:
    """The predicted errors and costs of the study itself."""
    from umpc.errors import StudyError
    from umpc.planning.seconds import predict_memory, seconds_of
    from umpc.protocols.registry import protocol_of

    protocol = protocol_of(attempt.study)
    cost = protocol.cost(attempt)
    seconds = seconds_of(attempt, cost, like, network, {})
    errors: Values = dict.fromkeys(ERRORS)
    try:
        error = protocol.error(attempt, like)
        found = (error.noise, error.sampling, error.bins, error.mse)
        errors = dict(zip(ERRORS, found, strict=True))
    except StudyError as reason:
        click.echo(f"errors are not known: {reason.message}", err=True)
    return {
        "edges": attempt.sizes.edges,
        "sets": attempt.sizes.sets,
        **errors,
        "rounds": cost.rounds,
        "bytes_online": cost.bytes_online,
        "bytes_offline": cost.bytes_offline,
        "memory": predict_memory(attempt),
        "seconds_offline": seconds.offline,
        "seconds_online": seconds.online,
        "seconds_total": seconds.total,
    }


def _compare(
    entries: StudyFile, records: str, like: ReferenceTable, network: Network, error: float | None
) -> list[Alternative | Impossible]:
    from umpc.planning.alternatives import alternatives

    def tell(label: str) -> None:
        click.echo(f"planning {label}", err=True)

    return list(alternatives(entries, records, like, network, error, tell))


def _as_json(found: Sequence[Alternative | Impossible], targets: Targets) -> dict[str, Any]:
    from umpc.planning.alternatives import Alternative, recommended

    possible = [each for each in found if isinstance(each, Alternative)]
    best = recommended(possible, targets)
    return {
        "protocols": [each.to_dict() for each in possible],
        "impossible": {
            each.label: each.reason for each in found if not isinstance(each, Alternative)
        },
        "recommended": best.label if best else None,
    }


def _show(title: str, values: Values, over: str) -> None:
    table = Table(title=title, title_justify="left")
    table.add_column("what")
    table.add_column("predicted", justify="right")
    for name, value in values.items():
        depends_on_data = name in ERRORS and name != "noise_std"
        where = f" (over {over})" if depends_on_data else ""
        table.add_row(name.replace("_", " ") + where, _shown(name, value))
    Console(width=100).print(table)


def _shown(name: str, value: float | None) -> str:
    if value is None:
        return "not known"
    if name in ERRORS:
        return f"{value:.3g}"
    if name.startswith("seconds"):
        return f"{value:.2f} s"
    return f"{value / 2**20:.0f} MiB" if name == "memory" else f"{value:,}"


def _show_protocols(found: Sequence[Alternative | Impossible], targets: Targets, over: str) -> None:
    from umpc.planning.alternatives import Alternative, recommended

    possible = sorted(
        (each for each in found if isinstance(each, Alternative)), key=lambda each: each.error.mse
    )
    best = recommended(possible, targets)
    table = Table(
        title=f"the same statistic by every protocol, errors over {over}", title_justify="left"
    )
    for name in ("", "protocol"):
        table.add_column(name)
    for name in ("sets", "noise", "sampling", "bins", "error", "delta", "rounds", "MB", "seconds"):
        table.add_column(name, justify="right")
    table.add_column("to be trusted")
    for each in possible:
        error = each.error
        mark = "" if targets.met_by(each) else "no"
        if each is best:
            mark = "->"
        bound = "≤ " if error.sampling_is_bound else ""
        numbers = (
            f"{error.noise:.2g}",
            f"{bound}{error.sampling:.2g}",
            f"{error.bins:.2g}",
            f"{sqrt(error.mse):.2g}",
        )
        rest = (
            f"{each.delta:.1g}",
            f"{each.cost.rounds}",
            f"{each.megabytes:.3g}",
            f"{each.seconds.total:.2f}",
        )
        table.add_row(mark, each.label, f"{each.edges:,}", *numbers, *rest, each.assumed)
    Console(width=None if sys.stdout.isatty() else WIDTH).print(table)
    for other in found:
        if not isinstance(other, Alternative):
            click.echo(f"{other.label}: not possible: {other.reason}")
    if best:
        click.echo(
            f"recommended: {best.label}, {best.edges:,} sets; error {sqrt(best.error.mse):.2g}"
        )
    elif not possible:
        click.echo("recommended: none, for no protocol is possible")
    else:
        click.echo(
            "recommended: none, for no protocol meets all targets (no: misses one); relax one of "
            "them"
        )
