"""`umpc plan`: what a study will take over a given line, before any site is asked."""

from __future__ import annotations

import json
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

FILE = click.Path(dir_okay=False, path_type=Path)


@click.command()
@click.argument("file", type=FILE)
@click.option("--records", required=True, help="Each node's number of records, as 300,300,200.")
@click.option("--delay", default=10.0, show_default=True, help="Between any two sites, one way, in milliseconds.")
@click.option(
    "--bandwidth", default=100.0, show_default=True, help="Of each site's line, each way, in megabits a second."
)
@click.option("--format", "style", type=click.Choice(["table", "json"]), default="table", show_default=True)
def plan(file: Path, records: str, delay: float, bandwidth: float, style: str) -> None:
    """Say what the study in FILE will take: rounds, bytes, memory, and seconds over a line.

    Rounds and bytes are exact. Seconds come from counted delays, from the bytes, and from a trial of the study's own
    kernels on made-up records on this machine, which takes a few seconds; every site is taken to have a machine like
    this one to itself. No site is asked, no certificate is needed. Of a one-message protocol it says rounds, bytes and
    the estimate's error from randomisation, which depends on the data: that of uniform records. Of a trusted curator
    (protocol = "central") the error from noise is exact.

    \b
    umpc plan study.toml --records 303,294,200 --delay 20 --bandwidth 100
    """
    from umpc.cli.prediction import attempt_over, local_prediction
    from umpc.coordinator.studyfile import load_study_file
    from umpc.errors import StudyError
    from umpc.mpc.cost import predict
    from umpc.planning import Network, measure_machine, predict_memory, predict_seconds

    if delay < 0 or bandwidth <= 0:
        raise StudyError(f"--delay is at least 0 and --bandwidth above 0, got {delay} and {bandwidth}")
    study = load_study_file(file).study("coordinator")
    attempt = attempt_over(study, records)
    if study.one_message:
        cost, deviation = local_prediction(attempt)
        values = {"sets": attempt.sizes.sets, "rounds": cost.rounds, "bytes_online": cost.bytes_online}
        std = "noise_std" if study.central else "noise_std_if_records_were_uniform"
        values |= {"bytes_offline": 0, std: deviation}
        _show(f"study {study.name!r}, {study.protocol}", values, style)
        return
    cost = predict(attempt)
    seconds = predict_seconds(attempt, cost, measure_machine(study), Network(delay / 1e3, bandwidth * 125_000))
    values = {
        "edges": attempt.sizes.edges,
        "sets": attempt.sizes.sets,
        "rounds": cost.rounds,
        "bytes_online": cost.bytes_online,
        "bytes_offline": cost.bytes_offline,
        "memory": predict_memory(attempt),
        "seconds_offline": seconds.offline,
        "seconds_online": seconds.online,
        "seconds_total": seconds.total,
    }
    _show(f"study {study.name!r}: {delay:g} ms one way, {bandwidth:g} Mbit/s", values, style)


def _show(title: str, values: dict, style: str) -> None:
    if style == "json":
        click.echo(json.dumps(values))
        return
    table = Table(title=title, title_justify="left")
    table.add_column("what")
    table.add_column("predicted", justify="right")
    for name, value in values.items():
        table.add_row(name.replace("_", " "), _shown(name, value))
    Console(width=80).print(table)


def _shown(name: str, value: float) -> str:
    if name.startswith("noise"):
        return f"{value:.3g}"
    if name.startswith("seconds"):
        return f"{value:.2f} s"
    return f"{value / 2**20:.0f} MiB" if name == "memory" else f"{value:,}"
