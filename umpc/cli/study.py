"""`umpc study`: the coordinator, as a command."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from umpc.study.document import Study
    from umpc.transport.authority import Identity

FILE = click.Path(dir_okay=False, path_type=Path)
HTML = click.option(
    "--html",
    "page",
    type=FILE,
    help="Also write the report as one HTML file that needs no network.",
)
FORMAT = click.option(
    "--format", "style", type=click.Choice(["table", "json"]), default="table", show_default=True
)


@click.group()
def study() -> None:
    """Run a study, prepare it ahead, or check it without running it.

    \b
    Example of study.toml:
      name = "kendall-2026"               # a new name is a new study, with new noise and a new charge
      statistic = "kendall_tau"           # see `umpc kernels`; or kernel = "kernels.py:mine"
      columns = ["age", "balance"]        # the statistic's fields, as columns of every site's table
      epsilon = 1
      edges = "2n"                        # "2n", "all", a number of pairs, or "1p": all records paired once
      identity = "coordinator"            # folder with ca.pem, cert.pem and key.pem
      # max_colluding = 1                 # default: all nodes but one
      # noise = "in_mpc"                  # or "distributed", the default beyond 16 nodes
      # backend = "garbled"               # pairs between their two nodes alone; these two lines go together,
      # preprocessing = "none"            # and then there is no [dealer]; for statistics over one or two records
      # protocol = "bell-ldp"             # or "ghazi-ldp", "ghazi-rounds", "bell-auc": every record is randomised
      # [bins]                            # at its node, one message of every node, no [dealer], no edges; then
      # age = 4                           # bins of equal width (default: 4), or cut points that are known before:
      # balance = [0, 500, 1500]          # not read off the data; of bell-auc: levels = 4, for 2^4 bins of the score
      # protocol = "ghazi-shuffle"        # noisy counts of cells, also with [bins]; takes two [[shufflers]], each with
      #                                   # name and address as nodes have them, who collude with nobody
      # protocol = "gopa"                 # a mean, under noise that nodes share and that cancels, no [dealer]; with a
      # delta = "1e-9"                    # delta, and better with max_colluding = 1 than with all but one
      # protocol = "central"              # a baseline: this coordinator is shown all records, which every node must
      # noise = "hajek"                   # allow, and adds the noise: "laplace" (default), "coinpress_all", ...
      # split = ["1/2", "1/4", "1/4"]     # each sum's part of epsilon; default: equal
      # [parameters]                      # of the statistic, if it has any
      # estimator = "ratio"               # of a kernel of several sums; default: "mean"
      # sampling = "two_sample"           # of a kernel over two classes; then one field is a public label
      [[fields]]
      name = "age"
      lower = 0
      upper = 127
      [[fields]]
      name = "balance"
      lower = -10000
      upper = 110000
      resolution = 1
      [dealer]
      name = "dealer"
      address = "dealer.example.org:7100"
      [[nodes]]
      name = "north"
      address = "north.example.org:7100"
      [[nodes]]
      name = "south"
      address = "south.example.org:7100"
    """


@study.command()
@click.argument("file", type=FILE)
@FORMAT
@HTML
def run(file: Path, style: str, page: Path | None) -> None:
    """Run the study in FILE and print its report.

    The same study asked again gets the same stored result and costs nothing; a new name makes it a new study.
    """
    from umpc.cli.page import save_page
    from umpc.cli.show import ProgressShow, print_report
    from umpc.coordinator.client import run_study
    from umpc.coordinator.studyfile import load_study_file
    from umpc.transport.authority import load_identity

    logging.getLogger("asyncio").setLevel(logging.CRITICAL)
    entries = load_study_file(file)
    identity = load_identity(entries.identity, "coordinator")
    with ProgressShow() as tell:
        report = asyncio.run(run_study(entries.study(identity.name), identity, tell))
    print_report(report, style)
    if page:
        save_page(report, page)


@study.command()
@click.argument("file", type=FILE)
@FORMAT
def prepare(file: Path, style: str) -> None:
    """Do all of the study in FILE that needs no data, so that its run takes moments.

    The nodes agree on the edges, fetch all material from the dealer and draw the noise; this waits at each node, once,
    in memory and in an encrypted file without a name. `umpc study run` of the same FILE then uses it, without the
    dealer. Epsilon is reserved while it waits, by default for 24 hours, and charged by the run alone. Each site's
    records are those of now; its rules are asked again at the run. Prepared again, the earlier preparation is dropped;
    where one node no longer has it, because it was started again, the run does everything itself.

    \b
    umpc study prepare study.toml && umpc study run study.toml
    """
    from umpc.cli.show import ProgressShow, print_preparation
    from umpc.coordinator.client import prepare_study
    from umpc.coordinator.studyfile import load_study_file
    from umpc.transport.authority import load_identity

    logging.getLogger("asyncio").setLevel(logging.CRITICAL)
    entries = load_study_file(file)
    identity = load_identity(entries.identity, "coordinator")
    wanted = entries.study(identity.name)
    with ProgressShow() as tell:
        preparation = asyncio.run(prepare_study(wanted, identity, tell))
    print_preparation(wanted, preparation, style)


@study.command()
@click.argument("file", type=FILE)
@click.option(
    "--records",
    help="Each node's number of records, as 300,300,200: then also say what a run will cost.",
)
@click.option(
    "--contact",
    is_flag=True,
    help="Also call all nodes, and dealer or shufflers if there are any, and say who answers.",
)
def check(file: Path, records: str | None, contact: bool) -> None:
    """Say what the study in FILE computes, before any node is asked to take part.

    Shows the kernel, its range and sensitivity, the study's hash, and who takes part; with --records also the noise,
    rounds and bytes of a run over so many records.

    \b
    umpc study check study.toml --records 303,294,200 --contact
    """
    from umpc.coordinator.studyfile import load_study_file
    from umpc.transport.authority import load_identity

    entries = load_study_file(file)
    identity = load_identity(entries.identity, "coordinator")
    checked = entries.study(identity.name)
    for label, text in _description(checked):
        _echo(label, text)
    if records is not None:
        _predict(checked, records)
    if contact:
        _contact(checked, identity)


def _echo(label: str, text: str) -> None:
    """One line: a label, and the text in a column of its own."""
    click.echo(f"{label:<12} {text}")


def _description(study: Study) -> Iterator[tuple[str, str]]:
    """Lines that follow from the study alone."""
    from umpc.protocols.registry import protocol_of

    protocol = protocol_of(study)
    yield "study", f"{study.name}, hash {study.hash.hex()}"
    yield "statistic", f"{study.statistic}: {study.estimator} of {len(study.kernels)} sum(s)"
    for kernel, epsilon in zip(study.parsed_kernels, study.epsilons, strict=True):
        interval = kernel.interval
        yield "kernel", kernel.text
        yield "  hash", kernel.hash
        yield "  range", f"[{interval.low}, {interval.high}], in steps of {kernel.unit}"
        change = f"{interval.width} per edge when one record is replaced"
        yield "  changes by", f"{change}; gets epsilon {epsilon}"
    yield "epsilon", study.epsilon
    yield "noise", f"{study.noise}, {protocol.noise_withstands(study)}"
    yield "edges", f"{study.edges}, {study.sampling}"
    yield "protocol", study.protocol
    yield from protocol.describe(study)
    dealer = f"dealer {study.dealer.name}" if study.dealer else "no dealer"
    yield "nodes", f"{', '.join(node.name for node in study.nodes)}; {dealer}"


def _predict(study: Study, records: str) -> None:
    """Print what a run over these numbers of records costs, with an E drawn for the purpose."""
    from umpc.planning.prediction import attempt_over
    from umpc.protocols.registry import protocol_of

    for label, text in protocol_of(study).describe_run(attempt_over(study, records)):
        _echo(label, text)


def _contact(study: Study, identity: Identity) -> None:
    """Print who answers. Raises: the first reason why somebody does not."""
    from umpc.coordinator.client import greet
    from umpc.errors import UmpcError

    answers = asyncio.run(greet(study, identity))
    for name, answer in answers:
        click.echo(f"{name:<12} {answer}")
    for _, answer in answers:
        if isinstance(answer, UmpcError):
            raise answer
