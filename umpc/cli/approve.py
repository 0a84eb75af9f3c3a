"""`umpc approve`: a site's administrator sees which studies wait at the node, and decides while it runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Iterator

    from umpc.node.approvals import Approvals, Entry
    from umpc.study.document import Study
    from umpc.study.parts import FieldText

CONFIG = click.option(
    "--config",
    type=click.Path(dir_okay=False, path_type=Path),
    required=True,
    help="The node's TOML file.",
)
HASH = click.argument("prefix", metavar="HASH")
DIGITS = 16
"""Of a hash in a list."""


@click.group()
def approve() -> None:
    """Decide on the studies that wait at a node with approval = true under [policy].

    HASH is the beginning of a study's hash, as long as no other study's begins so. The coordinator asks again after
    the decision. A decision may be changed until the study has been released; from then on the node gives its stored
    answer again, whatever is decided. A run that has begun is not stopped.

    \b
    umpc approve list --config node.toml
    umpc approve show --config node.toml 3f2a
    umpc approve accept --config node.toml 3f2a
    umpc approve reject --config node.toml 3f2a --reason "not without the ethics board"
    """


@approve.command("list")
@CONFIG
def list_studies(config: Path) -> None:
    """List all studies that were asked for, with what was decided."""
    from umpc.node.approvals import PENDING

    entries = sorted(_approvals(config).entries(), key=lambda entry: entry.state != PENDING)
    if not entries:
        click.echo("no study was asked for that needs approval")
        return
    head = ("state", "hash", "when", "coordinator", "statistic", "epsilon", "name")
    rows = [
        head,
        *(
            (e.state, e.hash[:DIGITS], _when(e), e.coordinator, e.statistic, e.epsilon, e.name)
            for e in entries
        ),
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        click.echo(
            "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()
        )


@approve.command()
@CONFIG
@HASH
def show(config: Path, prefix: str) -> None:
    """Show what a study computes, of what, for whom, and at what price."""
    from umpc.study.document import decode_study

    entry = _approvals(config).find(prefix)
    for name, text in _description(entry, decode_study(entry.document)):
        click.echo(f"{name:<14}{_plain(text)}")


@approve.command()
@CONFIG
@HASH
def accept(config: Path, prefix: str) -> None:
    """Allow a study; its coordinator has to ask again."""
    from umpc.node.approvals import ACCEPTED

    _say(_approvals(config).decide(prefix, ACCEPTED))


@approve.command()
@CONFIG
@HASH
@click.option(
    "--reason", required=True, help="Told to the coordinator whenever it asks again; one line."
)
def reject(config: Path, prefix: str, reason: str) -> None:
    """Refuse a study for good, or until it is accepted after all."""
    from umpc.node.approvals import MAX_REASON, REJECTED

    if not reason.strip() or not reason.isprintable() or len(reason) > MAX_REASON:
        raise click.BadParameter(
            f"one line of 1 to {MAX_REASON} characters was expected", param_hint="--reason"
        )
    _say(_approvals(config).decide(prefix, REJECTED, reason))


def _raw_records(study: Study) -> Iterator[tuple[str, str]]:
    """What nobody should overlook."""
    if study.central:
        shown = ", ".join(study.parsed_kernels[0].fields)
        yield (
            "WARNING",
            f"RAW RECORDS: shows {shown} of all records to {study.coordinator!r}, as a trusted curator",
        )


def _delta(study: Study) -> Iterator[tuple[str, str]]:
    """What the study asks for, or what shuffling costs; what finite bits add follows from numbers of records."""
    from umpc.protocols.ghazi_shuffle.mixing import delta_of_mixing

    if study.shuffled:
        yield "delta", f"{float(delta_of_mixing(study.exact_epsilon)):.3g}"
    elif study.delta:
        yield "delta", str(study.exact_delta)


def _approvals(config: Path) -> Approvals:
    from umpc.node.approvals import Approvals, approvals_beside
    from umpc.node.config import load_node_config

    return Approvals(approvals_beside(load_node_config(config).ledger))


def _say(entry: Entry) -> None:
    click.echo(
        f"{entry.state}: {entry.name!r} of {entry.coordinator}, epsilon {entry.epsilon}, hash {entry.hash}"
    )


def _when(entry: Entry) -> str:
    return entry.decided or entry.asked


def _description(entry: Entry, study: Study) -> Iterator[tuple[str, str]]:
    """The study in lines, from the document alone; what only its coordinator says is in quotes."""
    from umpc.protocols.local.settings import described

    yield "study", f"{study.name!r}, hash {entry.hash}"
    yield from _raw_records(study)
    decided = f", {entry.state} {entry.decided}" if entry.decided else ", not decided on"
    yield (
        "asked",
        f"{entry.asked} by {study.coordinator}{decided}{f': {entry.reason}' if entry.reason else ''}",
    )
    yield "statistic", _statistic(study)
    yield (
        "",
        f"{study.estimator} of {len(study.kernels)} sum(s) over sets of {study.degree} record(s)",
    )
    for kernel, epsilon in zip(study.parsed_kernels, study.epsilons, strict=True):
        yield "kernel", kernel.text
        yield "  hash", kernel.hash
        yield (
            "  range",
            f"[{kernel.interval.low}, {kernel.interval.high}], in steps of {kernel.unit}",
        )
        yield (
            "  Δf",
            f"{kernel.interval.width} per edge when one record is replaced; gets epsilon {epsilon}",
        )
    for field in study.fields:
        yield "field", _field(field)
    yield "epsilon", str(study.exact_epsilon)
    yield from _delta(study)
    withstands = f"withstands {study.max_colluding} of {len(study.nodes)} nodes that collude"
    withstands = "of each record, whoever colludes" if study.noise == "local" else withstands
    yield (
        "noise",
        f"{study.noise}, {'added by the trusted coordinator' if study.central else withstands}",
    )
    if cells := described(study):
        yield "bins", cells
    tells = "; every node tells how many records have either label" if study.two_sample else ""
    yield "edges", f"{study.edges}, {study.sampling}{tells}"
    yield "protocol", study.protocol
    yield "backend", study.backend
    yield "coordinator", study.coordinator
    yield "dealer", study.dealer.name if study.dealer else "none"
    if study.shufflers:
        names = " and ".join(shuffler.name for shuffler in study.shufflers)
        yield (
            "shufflers",
            f"{names}; neither may collude with {study.coordinator} or with the other",
        )
    yield "nodes", ", ".join(node.name for node in study.nodes)


def _statistic(study: Study) -> str:
    """What the study calls itself, beside what it is."""
    from umpc.node.policy import computes
    from umpc.ustat.statistics import LIBRARY

    same = [name for name, statistic in LIBRARY.items() if computes(study, statistic)]
    known = (
        f"the library's {' or '.join(same)}"
        if same
        else "not one of the library with default parameters"
    )
    return f"{study.statistic!r}, which is {known}"


def _field(field: FieldText) -> str:
    label = ", a public label" if field.public else ""
    if field.categories:
        return f"{field.name!r}: {', '.join(map(repr, field.categories))}{label}"
    return f"{field.name!r}: {field.lower} to {field.upper}, in steps of {field.resolution}{label}"


def _plain(text: str) -> str:
    """Text from outside, fit for a terminal."""
    return "".join(character if character.isprintable() else "?" for character in text)
