"""`umpc plan`: the predicted error and cost of a study, by its own and by every other protocol."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from math import comb, inf, sqrt
from pathlib import Path

import click
from rich.markup import escape
from rich.table import Table

from umpc.cli.shared import FILE, FORMAT, TWO_CLASSES, console
from umpc.coordinator.studyfile import load_study_file
from umpc.errors import StudyError
from umpc.planning import alternatives as others
from umpc.planning.alternatives import Alternative, Impossible, Targets
from umpc.planning.reference_table import ConstantAnswer
from umpc.planning.seconds import Network
from umpc.planning.study_plan import ERRORS, HALF, OF_CONSTANT, plan_study
from umpc.protocols.registry import protocol_of
from umpc.study.attempt import Attempt
from umpc.text_file import printable

WIDTH = 150
"""The width of the table of protocols, where the output is no terminal."""
OF_DATA = ("sampling_std", "bins_bias", "mse", HALF, OF_CONSTANT)
"""Errors that depend on the sites' data."""


@click.command()
@click.argument("file", type=FILE)
@click.option(
    "--records",
    required=True,
    help="Each node's number of records, as 300,300,200. A study of two classes, such as auc, "
    + TWO_CLASSES,
)
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
    "--delimiter", default=",", show_default=True, help="The separator of --like's columns."
)
@click.option(
    "--missing",
    multiple=True,
    help="A word of --like's table that stands for no value, such as ?. Repeat it for more words.",
)
@click.option(
    "--protocols", "compare", is_flag=True, help="Also plan all protocols, and name the best one."
)
@click.option(
    "--tune",
    is_flag=True,
    help="Also find the number of bins, levels or pairings with the least error over the table.",
)
@click.option(
    "--error",
    type=click.FloatRange(min=0, min_open=True),
    help="Target: the largest root mean squared error.",
)
@click.option(
    "--trust",
    type=click.Choice(["nobody", "helpers", "curator"]),
    help="Target: the most that sites may have to trust. The default is helpers without data, such "
    "as a dealer.",
)
@click.option(
    "--shared",
    type=click.IntRange(min=0),
    help="How many people have records at two of the sites, as `umpc overlap` tells: also say what "
    "that means.",
)
@FORMAT
def plan(
    file: Path,
    records: str,
    delay: float,
    bandwidth: float,
    like: Path | None,
    delimiter: str,
    missing: tuple[str, ...],
    compare: bool,
    tune: bool,
    error: float | None,
    trust: str | None,
    shared: int | None,
    style: str,
) -> None:
    """Predict the errors, rounds, bytes, memory and seconds of the study in FILE.

    No site is asked, and no certificate is needed. Rounds and bytes are exact. Seconds come from
    counted delays, from the bytes, and from a trial of the study's own kernels on made-up records.
    The trial runs on this machine and takes a few seconds. Each site is assumed to have such a
    machine to itself.

    Errors are distances from the statistic of all the sites' records. The noise is known. The
    errors from sampling, from bins and from randomised records depend on the data. They are
    computed over the file --like, a public or older table that stays on this machine, or over
    records that are uniform between their bounds.

    With --protocols, or with any target, every protocol is planned for the same statistic, with its
    usual settings. The best one that meets all targets is named: the one with the least error or,
    if --error is given, the one with the fewest bytes. "Sampling = noise" is u-mpc over the fewest
    sets for which the sampling error is no larger than the noise. More sets gain little.

    With --tune, settings that trade one error for another get the values with the least error over
    --like: [bins], levels, or a number of pairings. That table must be public or older than the
    sites' data.

    \b
    umpc plan study.toml --records 303,294,200 --delay 20 --bandwidth 100
    umpc plan study.toml --records 303,294,200 --like last-year.csv --protocols
    umpc plan study.toml --records 303,294,200 --like last-year.csv --tune
    umpc plan auc.toml --records 180+120,150+150
    umpc plan study.toml --records 303,294,200 --error 0.02 --trust nobody
    """

    network = _network(delay, bandwidth)
    entries = load_study_file(file)
    made = plan_study(entries, records, network, like, delimiter, missing, _warn)
    study, values, label, other = made.study, made.values, made.label, made.beside
    about = _about_shared(shared, made.attempt)
    compare = compare or error is not None or trust is not None
    constant = made.table.constant
    least = constant.error if constant else None
    targets = others.Targets(error, trust or "helpers", least)
    planned: list[Alternative | Impossible] = []
    if compare:
        asked = (entries, records, made.table, network, error, _tell, made.machines)
        planned = list(others.alternatives(*asked))
    possible = [each for each in planned if isinstance(each, others.Alternative)]
    impossible = [each for each in planned if isinstance(each, others.Impossible)]
    best = others.recommended(possible, targets)
    tuned = others.tune(made.attempt, made.table) if tune else None
    if style == "json":
        shown = made.to_dict()
        if compare:
            shown["protocols"] = [each.to_dict() for each in possible]
            shown["impossible"] = {each.label: each.reason for each in impossible}
            shown["recommended"] = best.label if best else None
        if tuned:
            shown["tuned"] = tuned.to_dict()
        shown |= about
        click.echo(json.dumps(shown))
        return
    over = like.name if like else "uniform records"
    line = f"{delay:g} ms one way, {bandwidth:g} Mbit/s"
    title = f"study {study.name!r}, {study.protocol}: {line}"
    _show(title, values, over, label, other)
    for name, text in protocol_of(study).compare_noise(made.attempt):
        click.echo(f"{name}: {text}")
    if tuned:
        click.echo(f"tuned over {over}: {tuned.in_words()}")
        for name, text in tuned.notes:
            click.echo(f"{name}: {text}")
    _say(about.get("shared", ()))
    if entries.chosen:
        click.echo(f"chosen: {entries.chosen}")
    if made.impossible:
        click.echo(f"{label}: not possible: {made.impossible}")
    if compare:
        _show_protocols(possible, targets, best, over, constant)
        for each in impossible:
            click.echo(f"{each.label}: not possible: {each.reason}")
        better = [each for each in possible if targets.beats_constant(each)]
        click.echo(f"recommended: {_recommendation(best, possible, better, constant)}")


def _network(delay: float, bandwidth: float) -> Network:

    if not (0 <= delay < inf and 0 < bandwidth < inf):
        raise StudyError(
            f"--delay is at least 0 and --bandwidth above 0, both numbers; got {delay} and "
            f"{bandwidth}"
        )
    return Network(delay / 1e3, bandwidth * 125_000)


def _say(lines: Sequence[str]) -> None:
    for line in lines:
        click.echo(line)


def _about_shared(shared: int | None, attempt: Attempt) -> dict[str, list[str]]:
    """The effect of people who are at two sites of a study, under "shared", for a plan's JSON.

    The bound: of all sets of records, 1 − C(n − m, k)/C(n, k) have a second record of somebody. The
    others are the sets of n − m people, so both means differ by at most that part of the range.

    Args: shared: how many people; None for a plan that says nothing of them.
    Raises: StudyError where no two sites can share so many.
    """
    if shared is None:
        return {}
    study, records = attempt.study, attempt.sizes.records
    if 2 * shared > records:
        raise StudyError(
            f"--shared is at most half of the {records:,} records, because each of these people "
            f"has two; got {shared:,}"
        )
    people, epsilon = records - shared, float(study.exact_epsilon)
    part = 1 - comb(people, study.degree) / comb(records, study.degree)
    lines = [
        f"n counts {shared:,} people twice: its {records:,} records are of {people:,} people",
        f"the promise to somebody at both sites is 2 epsilon = {2 * epsilon:g}; to everybody else "
        f"epsilon = {epsilon:g}",
        f"counting twice moves a mean by at most {100 * part:.2g} % of its kernel's range, and "
        "hardly where these people are like the others; the report's interval does not cover that",
    ]
    return {"shared": lines}


def _tell(label: str) -> None:
    click.echo(f"planning {label}", err=True)


def _warn(text: str) -> None:
    click.echo(f"warning: {text}", err=True)


def _show(
    title: str,
    values: Mapping[str, float | None],
    over: str,
    label: str,
    beside: Mapping[str, float | None] | None,
) -> None:
    """Print the study's own plan.

    Args:
        over: the table that errors of data are computed over.
        label, beside: the same statistic by another way, if there is one.
    """

    table = Table(title=escape(printable(title)), title_justify="left")
    table.add_column("what", overflow="fold")
    table.add_column("predicted", justify="right", overflow="fold")
    if beside:
        table.add_column(label, justify="right", overflow="fold")
    for name, value in values.items():
        row = name.replace("_", " ")
        if name == OF_CONSTANT and value is None:
            row += " (known with --like)"
        elif name in OF_DATA and (name != HALF or value is not None):
            row += escape(f" (over {over})")
        other = [_shown(name, beside[name]) if name in beside else ""] if beside else []
        table.add_row(row, _shown(name, value), *other)
    console(100).print(table)


def _shown(name: str, value: float | None) -> str:

    if value is None:
        return "not known"
    if name in (*ERRORS, HALF, OF_CONSTANT) or name.startswith("noise_std"):
        return f"{value:.3g}"
    if name.startswith("seconds"):
        return f"{value:.2f} s"
    return f"{value / 2**20:.0f} MiB" if name == "memory" else f"{value:,}"


def _show_protocols(
    possible: Sequence[Alternative],
    targets: Targets,
    best: Alternative | None,
    over: str,
    constant: ConstantAnswer | None,
) -> None:
    """Print all alternatives, the best error first, and the recommended one.

    Args: constant: the best answer without any record, which has a row of its own.
    """
    table = Table(
        title=escape(f"the same statistic by every protocol, errors over {over}"),
        title_justify="left",
    )
    for name in ("", "protocol"):
        table.add_column(name, overflow="fold")
    for name in ("sets", "noise", "sampling", "bins", "error", "delta", "rounds", "MB", "seconds"):
        table.add_column(name, justify="right", overflow="fold")
    table.add_column("to be trusted", overflow="fold")
    ordered = sorted(possible, key=lambda each: each.error.mse)
    better = [each for each in ordered if targets.beats_constant(each)]
    for place, each in enumerate(ordered):
        if constant and place == len(better):
            _add_constant(table, constant)
        mark = "" if targets.met_by(each) else "no"
        table.add_row("->" if each is best else mark, *_cells(each))
    if constant and len(better) == len(ordered):
        _add_constant(table, constant)
    console(WIDTH).print(table)


def _add_constant(table: Table, constant: ConstantAnswer) -> None:
    """A row for the best answer without any record, among those with an error."""
    label = f"the constant {constant.value:.4g}"
    table.add_row("", label, "", "", "", "", f"{constant.error:.2g}", "", "", "", "", "nobody")


def _cells(planned: Alternative) -> tuple[str, ...]:
    """The cells of an alternative's row, after the mark."""
    error = planned.error
    return (
        planned.label,
        f"{planned.edges:,}",
        *(f"{each:.2g}" for each in (error.noise, error.sampling, error.bins, sqrt(error.mse))),
        f"{planned.delta:.1g}",
        f"{planned.cost.rounds}",
        f"{planned.megabytes:.3g}",
        f"{planned.seconds.total:.2f}",
        planned.assumed,
    )


def _recommendation(
    best: Alternative | None,
    possible: Sequence[Alternative],
    better: Sequence[Alternative],
    constant: ConstantAnswer | None,
) -> str:
    """The last line. Args: better: those with a smaller error than the constant."""
    if best:
        found = f"{best.label}, {best.edges:,} sets; error {sqrt(best.error.mse):.2g}"
        beside = f"; the constant {constant.value:.4g} has {constant.error:.2g}" if constant else ""
        return found + beside
    if not possible:
        return "none, for no protocol is possible"
    if constant and not better:
        return (
            f"none, for no setting here beats answering with a constant: {constant.value:.4g} has "
            f"error {constant.error:.2g}"
        )
    of_which = "no protocol that beats the constant" if constant else "no protocol"
    return f"none, for {of_which} meets all targets (no: misses one); relax one of them"
