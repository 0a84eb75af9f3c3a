"""`umpc study`: the coordinator, as a command."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from umpc.cli.shared import (
    FILE,
    FORMAT,
    HTML,
    TWO_CLASSES,
    print_preparation,
    print_report,
)
from umpc.cli.study_new import new
from umpc.errors import ApprovalPending, ConfigError, UmpcError
from umpc.text_file import check_writable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from umpc.api.study import ProposedStudy
    from umpc.coordinator.client import Contact
    from umpc.study.document import Study
    from umpc.study.report import Report

QUIET = click.option(
    "--quiet", is_flag=True, help="Print the result, warnings and failures, and no progress."
)

SWITCH_SECONDS = 0.0005
"""Seconds for which a message waits while another thread loads modules; by default ten times."""

TABLES = (
    "Write [dealer] once, and [[nodes]] or [[shufflers]] for each of them, with name and address. "
    "Under [bins] write a line for each field, such as age = 4 for four bins of equal width, or "
    "balance = [0, 500, 1500] for cut points."
)


class StudyGroup(click.Group):
    """A group whose help ends with the keys of a study file, as the keys describe themselves."""

    def format_epilog(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        from umpc.cli.demo_options import write_protocols, write_settings
        from umpc.coordinator.studyfile_entries import describe_keys

        rows = [*describe_keys().items(), ("protocol", "One of the protocols below.")]
        with formatter.section("Keys of every study"):
            formatter.write_dl(rows)
        write_protocols(formatter)
        write_settings(formatter, lambda setting: setting.key)
        formatter.write_paragraph()
        formatter.write_text(TABLES)


@click.group(cls=StudyGroup)
def study() -> None:
    """Propose a study, run it, prepare it ahead, or check it without running it.

    A study is a file. Its keys are those of every study, and the settings of its protocol.

    \b
    Example of study.toml:
      name = "kendall-2026"
      statistic = "kendall_tau"
      columns = ["age", "balance"]
      epsilon = 1
      identity = "coordinator"
      protocol = "u-mpc"
      edges = "2n"
      [[fields]]
      name = "age"
      lower = 0
      upper = 127
      whole = true
      [[fields]]
      name = "balance"
      lower = -10000
      upper = 110000
      resolution = "0.01"
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


study.add_command(new)


@study.command()
@click.argument("file", type=FILE)
@FORMAT
@HTML
@click.option(
    "--wait", is_flag=True, help="Wait until the sites' administrators have accepted the study."
)
@click.option(
    "--hours",
    type=click.FloatRange(min=0, min_open=True, max=720),
    default=72.0,
    show_default=True,
    help="How long --wait waits.",
)
@click.option(
    "--await-site",
    type=click.FloatRange(min=0, max=86400),
    default=30.0,
    show_default=True,
    help="Seconds for a site that was lost after it was ready to start again and finish.",
)
@QUIET
@click.option("--inside-a-demo", is_flag=True, hidden=True)
def run(
    file: Path,
    style: str,
    page: Path | None,
    wait: bool,
    hours: float,
    await_site: float,
    quiet: bool,
    inside_a_demo: bool,
) -> None:
    """Run the study in FILE and print its report.

    A failure is one line on standard error; its exit code says what kind it is. With --format json
    a second line has it as a JSON object.

    A study that ran before returns its stored result and costs nothing. A new name makes it a new
    study. A study that was prepared ahead answers over the records of that time, up to a day
    before; the report says when it was.

    With --wait, the command asks again until nobody has yet to decide, and says who has. A
    rejection ends it.
    """
    from umpc.cli.memory import tune_process

    sys.setswitchinterval(SWITCH_SECONDS)
    tune_process()
    if page:
        check_writable(page, "the report", ConfigError)
    study = _to_run(file, quiet)
    study.returning = await_site
    run = partial(study.report, progress=not quiet)
    report = run_when_accepted(study, run, hours) if wait else run()
    print_report(report, style, page=page)


@study.command()
@click.argument("file", type=FILE)
@FORMAT
@QUIET
def prepare(file: Path, style: str, quiet: bool) -> None:
    """Do all work that needs no data, so that the run takes moments.

    The nodes agree on the edges, fetch all material from the dealer and draw the noise. Each node
    keeps this, once, in memory and in an encrypted file without a name. `umpc study run` of the
    same FILE then uses it, and needs no dealer.

    Epsilon is reserved while the preparation waits, by default for 24 hours. Only the run charges
    it. The run answers over the records that each site has now, also if a table changes until then.
    It asks each site's rules again.

    To prepare a study again drops its earlier preparation. If one node no longer has it, because
    the node was started again, the run does all work itself.

    \b
    umpc study prepare study.toml && umpc study run study.toml
    """
    study = _to_run(file, quiet)
    print_preparation(study.document, study.prepare(progress=not quiet), style)


@study.command()
@click.argument("file", type=FILE)
@click.option(
    "--records",
    help="Each node's number of records, as 300,300,200. Then also predict what a run costs. A "
    "study of two classes, such as auc, " + TWO_CLASSES,
)
@click.option(
    "--contact",
    is_flag=True,
    help="Also call all processes, have each node call those that it needs, and say who answers.",
)
@click.option(
    "--table",
    type=FILE,
    help="Compare the study's fields with this table of your own, and do nothing else: a CSV or "
    "Parquet file, or a node's configuration, whose [data] then counts.",
)
@click.option(
    "--coordinator",
    metavar="NAME",
    help="Who will ask it. Then no certificate is needed: an authority's keeper may read the "
    "study and its hash.",
)
def check(
    file: Path, records: str | None, contact: bool, table: Path | None, coordinator: str | None
) -> None:
    """Say what the study in FILE computes, before it runs.

    No node is asked to take part. The command shows the kernel, its range and sensitivity, the
    study's hash, and who takes part. With --records it also predicts the noise, rounds and bytes of
    a run over these numbers of records. With --contact it also calls all processes, and each node
    calls those that it calls in a run. The command fails if one does not answer another, or if
    their versions of the protocol differ. A node whose administrator has yet to accept the study
    calls nobody. The exit code is then 35, as that of the run.

    With --table it says which resolution holds every value of your own table, and which of your
    values do not fit the study's fields. The exit code is 23 if most values of a field do not fit:
    words for numbers, numbers outside the bounds, or words that are none of the categories. It
    needs no certificate and tells nobody else.

    \b
    umpc study check study.toml --records 303,294,200 --contact
    umpc study check study.toml --table node.toml
    umpc study check study.toml --coordinator alice
    """
    from umpc.api.study import ProposedStudy

    if table is not None:
        _compare(file, table)
        return
    study = ProposedStudy.load(file)
    if coordinator:
        study.document = study.file.study(coordinator)
    else:
        _warn_of_dates(study)
    for label, text in study.check():
        echo_row(label, text)
    if records is not None:
        print_prediction(study.document, records)
    if contact:
        print_contacts(*study.contact())


FIRST_PAUSE = 15.0
LONGEST_PAUSE = 300.0
GROWTH = 1.5
HOUR = 3600


def run_when_accepted(
    study: ProposedStudy,
    run: Callable[[], Report],
    hours: float,
    sleep: Callable[[float], None] = time.sleep,
    now: Callable[[], float] = time.monotonic,
) -> Report:
    """Run a study as soon as every site has accepted it. Say who has yet to decide.

    Raises: ApprovalPending after so many hours; PolicyRefused if a site rejects it; as `run`.
    """
    until = now() + hours * HOUR
    pause = FIRST_PAUSE
    told: tuple[str, ...] | None = None
    names = [node.name for node in study.document.nodes]
    while True:
        try:
            return run()
        except ApprovalPending as error:
            waiting = error.waiting or ((error.culprit,) if error.culprit else ())
            if now() + pause > until:
                raise
        if waiting != told:
            _tell(study, names, waiting)
            told = waiting
        sleep(pause)
        pause = min(GROWTH * pause, LONGEST_PAUSE)


def _tell(study: ProposedStudy, names: list[str], waiting: tuple[str, ...]) -> None:
    """Say on standard error who has yet to decide, and who need not any more."""
    ready = [name for name in names if name not in waiting]
    digits = study.document.hash.hex()[:16]
    click.echo(
        f"waiting for approval by {', '.join(waiting)}; "
        f"ready: {', '.join(ready) or 'nobody yet'}; the study's hash is {digits}",
        err=True,
    )


def _to_run(file: Path, quiet: bool) -> ProposedStudy:
    """The study of a file, whose dates end soon and whose choices are said on standard error."""
    from umpc.api.study import ProposedStudy

    logging.getLogger("asyncio").setLevel(logging.CRITICAL)
    study = ProposedStudy.load(file)
    _warn_of_dates(study)
    if study.chosen and not quiet:
        click.echo(f"chosen: {study.chosen}", err=True)
    return study


def _compare(file: Path, table: Path) -> None:
    """Print the study's fields beside the table's values. Raises: as the file's own checks."""
    from umpc.cli.check_table import compare_table
    from umpc.coordinator.studyfile import load_field_entries, load_study_file

    for name, text in compare_table(file, table):
        click.echo(f"field {name!r}: {text}")
    if all(entry.categories or entry.states_step for entry in load_field_entries(file)):
        return
    _ = load_study_file(file)  # it names the first field without a resolution


def _warn_of_dates(study: ProposedStudy) -> None:
    """Say on standard error which of the coordinator's certificates end soon."""
    for sentence in study.due():
        click.echo(f"warning: {sentence}", err=True)


def echo_row(label: str, text: str) -> None:
    """One line: a label, and the text in a column of its own."""
    from umpc.text_file import printable

    click.echo(f"{label:<12} {printable(text)}")


def print_prediction(study: Study, records: str) -> None:
    """Print what a run over these numbers of records costs, with an E drawn for the purpose."""
    from umpc.api.description import describe_prediction

    for label, text in describe_prediction(study, records):
        echo_row(label, text)


def print_contacts(own: Sequence[Contact], others: Sequence[Contact]) -> None:
    """Print who answers, and whom each node reaches.

    Raises: the first reason why one does not; a missing approval only where that is all there is.
    """

    for contact in own:
        click.echo(f"{contact.called:<12} {contact}")
    for contact in others:
        reached = f"{contact.caller} to {contact.called}" if contact.called else contact.caller
        click.echo(f"{reached:<12} {contact}")
    errors = [each.answer for each in (*own, *others) if isinstance(each.answer, UmpcError)]
    errors.sort(key=lambda error: isinstance(error, ApprovalPending))
    if errors:
        raise errors[0]
