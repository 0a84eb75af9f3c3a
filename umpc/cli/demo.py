"""`umpc demo`: certificates, dealer, nodes and coordinator as processes on this machine.

*Demo run.* The demo's run: a table split over sites, and one study between real processes.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from umpc.api.entries import NOWHERE, arguments_of, helper_entries, label_classes
from umpc.cli.demo_options import (
    PARTICIPANTS,
    DemoCommand,
    DemoOptions,
    demo_settings,
    flag_of,
    given_bounds,
    named_list,
    named_value,
    protocol_options,
    settings_of,
)
from umpc.cli.kernel_options import listed
from umpc.cli.main import INSIDE_A_DEMO
from umpc.cli.shared import FILE, FOLDER, FORMAT, HTML, print_report
from umpc.coordinator.studyfile import OF_COUNTS, StudyFile, load_study_file, named_protocol
from umpc.coordinator.studyfile_text import field_entry, write_study_file
from umpc.counts import COUNTED
from umpc.errors import ConfigError, StudyError
from umpc.node.table.conversions import DECIMAL_MARKS, THOUSANDS_MARKS, NumberFormat
from umpc.protocols.auto import open_keys
from umpc.protocols.registry import AUTO, PROTOCOLS, USUAL, chosen_protocol, is_open
from umpc.study.document import Study
from umpc.study.report import Report
from umpc.study.settings import ADVERSARIES, HONEST
from umpc.ustat.condition import fields_read
from umpc.ustat.sampling import UNBALANCED
from umpc.ustat.schema import FieldSchema
from umpc.ustat.statistics import LIBRARY, find_statistic

if TYPE_CHECKING:
    from umpc.cli.table import DemoTable
    from umpc.deployment.processes import Deployment, Served, Start

NODES = 4
"""The sites of one table."""
MOST_VALUES, USUAL_BINS = 2048, 128
"""A table of counts has so many bins of a field that has more values, where nobody says which."""
PEOPLE, LINKED = "people", "linked"
"""Protocols of two shares of one table, each with a setting of its own: how many people there are,
and which columns lie at the first site."""


@click.command(cls=DemoCommand)
@click.option(
    "--csv",
    "csv_files",
    type=FILE,
    multiple=True,
    help="A table with a header line. The default is scikit-learn's breast cancer set. If the "
    "option is given several times, each file is the table of one site.",
)
@click.option(
    "--delimiter",
    help="The separator of the table's columns; default: the one of , ; tab | that splits the "
    "first line most, as a node finds it.",
)
@click.option(
    "--missing",
    multiple=True,
    metavar="WORD",
    help="A word that marks a missing value, such as '?'. Its rows are left out.",
)
@click.option("--encoding", default="utf-8", show_default=True, help="The table's encoding.")
@click.option(
    "--decimal",
    type=click.Choice(DECIMAL_MARKS),
    default=".",
    show_default=True,
    help="The decimal mark of the table's numbers.",
)
@click.option(
    "--thousands",
    type=click.Choice(THOUSANDS_MARKS),
    default=None,
    help="The thousands separator of the table's numbers. The default is none.",
)
@click.option("--fields", help="The statistic's columns, separated by commas.")
@click.option(
    "--label",
    metavar="COLUMN=CLASS",
    help="A two-sample statistic's public label, and its class that should score higher.",
)
@click.option(
    "--statistic",
    type=click.Choice(sorted((*LIBRARY, *COUNTED))),
    metavar="NAME",
    default="kendall_tau",
    show_default=True,
    help="A statistic of the library, which `umpc kernels` lists, or one that is read off a table "
    f"of counts: {', '.join(COUNTED)}.",
)
@click.option(
    "--parameter",
    "parameters",
    multiple=True,
    metavar="NAME=VALUE",
    help="A parameter of the statistic.",
)
@click.option(
    "--where",
    metavar="CONDITION",
    help='Take only the records for which this holds, such as "age >= 40".',
)
@click.option(
    "--weight",
    metavar="COLUMN",
    help="Weights of the records: a pair counts as much as the product of its two.",
)
@click.option(
    "--bounds",
    multiple=True,
    metavar="FIELD=LOWER:UPPER[:STEP]",
    help="A field's public bounds, or FIELD=A,B,C for its categories. The default takes them from "
    "the table, which is not private. A name in a list may be in double quotes, if it has a comma.",
)
@click.option(
    "--nodes",
    type=click.IntRange(1, 64),
    help=f"The number of sites to split the table over. The default is {NODES}.",
)
@click.option(
    "--protocol",
    type=click.Choice(list(PROTOCOLS)),
    metavar="NAME",
    help="One of the protocols below. It decides what is released. The default is u-mpc, over "
    "sampled sets, or over all sets by the grid where that is cheaper.",
)
@click.option("--epsilon", default="1", show_default=True, help="Privacy of the result.")
@click.option(
    "--max-colluding",
    type=click.IntRange(min=0),
    help="The number of nodes that may collude. The default is all but one.",
)
@click.option(
    "--adversary",
    type=click.Choice(ADVERSARIES),
    default=HONEST,
    show_default=True,
    metavar="NAME",
    help="The grade of the promise: honest, or lying_nodes, where --max-colluding nodes and the "
    "coordinator may send anything.",
)
@click.option(
    "--sampling",
    type=click.Choice(UNBALANCED),
    metavar="NAME",
    help="uniform or bernoulli: take sets without regard to how many a record is in, with u-mpc. "
    "The default takes equally many of each record.",
)
@protocol_options
@FORMAT
@HTML
@click.option(
    "--hub", is_flag=True, help="Also start a hub. All processes dial it, and no other one listens."
)
@click.option("--quiet", is_flag=True, help="Print the result and failures, and no progress.")
@click.option(
    "--keep", type=FOLDER, help="Keep configuration, ledgers and logs in this new folder."
)
def demo(**given: Any) -> None:
    """Run everything on this machine: a table split over nodes, and one private statistic.

    The demo starts a dealer or shufflers, if the study has them, and the nodes as processes of
    their own on loopback, with certificates of their own. It runs the study and prints the private
    estimate beside the exact value, which only a demo can know. At its end no process is left.

    \b
    umpc demo
    umpc demo --nodes 2 --edges all --epsilon 0.5
    umpc demo --csv bank.csv --delimiter ';' --fields age,balance --edges 40000
    umpc demo --csv north.csv --csv south.csv --fields age,balance --bounds age=0:127
    umpc demo --nodes 2 --backend garbled --preprocessing none
    umpc demo --backend grid --levels 12
    umpc demo --adversary lying_nodes
    umpc demo --protocol people --people 10000
    umpc demo --protocol linked --linked 'mean radius'
    umpc demo --sampling uniform --edges 2n
    umpc demo --hub
    umpc demo --statistic kaplan_meier --nodes 2
    umpc demo --csv bank.csv --delimiter ';' --statistic auc --fields balance --label y=yes

    docs/demo.md has an example of every protocol.
    """
    from umpc.deployment.fork_server import fork_server

    named = {key: given.pop(key) for key in demo_settings()}
    settings = {key: value for key, value in named.items() if value not in (None, ())}
    del given["quiet"]
    options = DemoOptions(**given, settings=settings)
    protocol = named_protocol(options.protocol, options.statistic)
    options = replace(options, nodes=_sites(options), protocol=protocol)
    with kept_folder(options.keep) as folder, fork_server() as popen:
        report, exact = run_demo(folder, _table(options), options, popen)
    print_report(report, options.style, exact, page=options.page)


def _table(options: DemoOptions) -> DemoTable:
    """The demo's table, with the statistic's columns and its label."""
    from umpc.cli.table import (
        breast_cancer,
        made_up_survival,
        read_csv,
        together,
        usual_columns,
        usual_counted,
    )

    columns = listed(options.fields) if options.fields else []
    label = options.label
    counted = COUNTED.get(options.statistic)
    if counted and not options.csv_files and not columns:
        if "event" in counted.roles:
            table = made_up_survival(counted.roles)
            return replace(table, classes=label_classes(options.statistic, counted.roles))
        columns = usual_counted(options.statistic)
    elif not options.csv_files and not columns:
        columns, usual_label = usual_columns(find_statistic(options.statistic))
        label = label or usual_label
    first_class = named_value("--label", label) if label else None
    read = [*fields_read(options.where), *filter(None, [options.weight])]
    others = [*([first_class[0]] if first_class else []), *read]
    wanted = list(dict.fromkeys([*columns, *others])) if columns else others
    if not options.csv_files:
        table = breast_cancer(wanted)
    else:
        how: dict[str, Any] = {
            "missing": options.missing,
            "encoding": options.encoding,
            "numbers": _number_format(options.decimal, options.thousands or ""),
        }
        tables = [read_csv(path, options.delimiter, wanted, **how) for path in options.csv_files]
        table = together(tables)
    bounds = dict(map(given_bounds, options.bounds))
    if unknown := [name for name in bounds if name not in table.columns]:
        raise ConfigError(
            f"--bounds names {', '.join(unknown)}, but the study's columns are "
            f"{', '.join(table.columns)}; correct the name"
        )
    classes = label_classes(options.statistic, columns)
    return replace(table, first_class=first_class, bounds=bounds, classes=classes)


def _sites(options: DemoOptions) -> int:
    """The number of nodes. Raises: ConfigError where the files say another one."""
    files = len(options.csv_files)
    if files > 1 and options.nodes not in (None, files):
        raise ConfigError(
            f"{files} files are the tables of {files} sites, but --nodes is {options.nodes}; leave "
            f"--nodes out, or give one file"
        )
    return files if files > 1 else options.nodes or NODES


def _number_format(decimal: str, thousands: str) -> NumberFormat:
    """How the table writes numbers. Raises: ConfigError."""
    if decimal == thousands:
        raise ConfigError(
            f"--decimal and --thousands must be different characters, got {decimal!r} for both"
        )
    return NumberFormat(decimal, thousands)


@contextmanager
def kept_folder(keep: Path | None) -> Iterator[Path]:
    """The demo's folder: the one to keep, or one that is gone with the demo."""
    if keep is None:
        with tempfile.TemporaryDirectory(prefix="umpc-demo-") as name:
            yield Path(name)
        return
    if keep.exists():
        raise ConfigError(
            f"{keep} exists already; --keep makes a new folder, so give the name of one"
        )
    keep.mkdir(parents=True)
    yield keep.resolve()


# --- demo run -------------------------------------------------------------------------------------

DELTA = Fraction(1, 1000)
"""The δ that the demo's sites allow beside the study's: finite bits of noise take some of it."""
DEMO_EDGES = "2n"
"""The demo is quick. A study file without `edges` takes as many as its budget pays for."""


def run_demo(
    folder: Path, table: DemoTable, options: DemoOptions, popen: Start
) -> tuple[Report, dict[str, float | None]]:
    """The study over real processes. Returns: its report, and the exact values.

    Args: popen: starts a process.
    """
    from umpc.cli.table import exact_values, pooled
    from umpc.deployment.processes import Deployment, ended_with_us
    from umpc.node.told_order import orders_told

    if options.protocol in (PEOPLE, LINKED):
        return _run_with_shares(Deployment(folder, popen=popen), table, options)
    paths = table.split(folder, options.nodes or 1)
    deployment = Deployment(folder, orders_told(paths), popen)
    with ended_with_us(deployment.processes):
        file = _write_study(folder, table, options, [path.stem for path in paths])
        study = file.new_study("coordinator")  # refused before any process starts
        if options.hub:
            deployment.start_hub()
        _start(deployment, study, paths)
        _write_addresses(file.path, deployment.wait_until_ready())
        report = _coordinate(file.path, deployment)
    return report, exact_values(study, pooled(study, paths), report)


def _run_with_shares(
    deployment: Deployment, table: DemoTable, options: DemoOptions
) -> tuple[Report, dict[str, float | None]]:
    """`run_demo` of people, who answer by processes of their own, or of rows at two sites."""
    from umpc.cli import demo_people
    from umpc.cli.table import exact_values, pooled
    from umpc.deployment.processes import MISSING, ended_with_us, rules_for

    if options.hub or options.nodes not in (None, NODES):
        raise ConfigError(
            f"a demo of {options.protocol} starts two nodes and no hub; leave --hub and --nodes out"
        )
    has_people = options.protocol == PEOPLE
    if has_people:
        table = demo_people.with_people(table, options.settings.get(PEOPLE))
    path = table.part(0, 1, deployment.folder / f"{options.protocol}.csv")
    names = demo_people.AGGREGATORS if has_people else demo_people.SITES
    with ended_with_us(deployment.processes):
        file = _write_study(deployment.folder, table, options, names)
        study = file.new_study("coordinator")
        _tell(f"starting a dealer, {names[0]} and {names[1]} for {len(table.rows):,} rows")
        deployment.start_dealer(people=True)
        epsilon, delta = str(study.exact_epsilon), str(study.exact_delta + DELTA)
        for name in names:
            more = rules_for(study)
            if has_people:
                deployment.start_aggregator(name, epsilon, more, delta)
                continue
            part = demo_people.part_of(table, study, name, deployment.folder)
            more += demo_people.LINKED_AT.format(name)
            deployment.start_node(name, part, epsilon, MISSING, more, delta)
        served = deployment.wait_until_ready()
        _write_addresses(file.path, served)
        if has_people:
            doors = {name: each.door for name, each in served.items()}
            demo_people.answer(deployment.folder, file.path, doors, quiet=_is_quiet())
        report = _coordinate(file.path, deployment)
        if has_people:
            _tell(demo_people.check(deployment.folder))
    return report, exact_values(study, pooled(study, [path]), report)


def _write_study(
    folder: Path, table: DemoTable, options: DemoOptions, nodes: Sequence[str]
) -> StudyFile:
    """study.toml, for processes that are not started yet."""
    described = table.describe()
    for each in described:
        _tell(str(each))
    fields = [each.field for each in described]
    for warning in table.warnings(fields):
        click.echo(f"warning: {warning}", err=True)
    names = [field.name for field in fields if not field.public]
    asked = names[: len(arguments_of(options.statistic))]
    if options.fields:
        asked = listed(options.fields)
    filtered = {*fields_read(options.where), options.weight} - set(asked)
    settings = _checked_settings(options)
    if options.protocol == OF_COUNTS:
        wide = [each.field.name for each in described if _is_wide(each.field.schema())]
        settings["bins"] = dict.fromkeys(wide, USUAL_BINS) | settings.get("bins", {})
    if options.protocol in (PEOPLE, LINKED):
        from umpc.cli.demo_people import shares_settings

        settings = shares_settings(folder, options.protocol, len(table.rows), settings, fields)
    left_open = is_open(options.protocol, options.settings)
    entries = {
        "name": "demo",
        "records": len(table.rows) if left_open else None,
        "protocol": options.protocol,
        "epsilon": options.epsilon,
        "identity": "coordinator",
        "statistic": options.statistic,
        "columns": [name for name in names if name not in filtered],
        "where": options.where,
        "weight": options.weight,
        "parameters": dict(named_value("--parameter", text) for text in options.parameters),
        "max_colluding": options.max_colluding,
        "adversary": options.adversary,
        "sampling": options.sampling,
        "fields": [field_entry(field) for field in fields],
        "nodes": [{"name": name, "address": NOWHERE} for name in nodes],
        **settings,
        **helper_entries(options.protocol, settings),
    }
    return load_study_file(write_study_file(folder, entries))


def _is_wide(field: FieldSchema) -> bool:
    """Whether a table of counts has bins of this field, where nobody says which."""
    return field.upper_units - field.lower_units >= MOST_VALUES


def _checked_settings(options: DemoOptions) -> dict[str, Any]:
    """The settings as a study file has them. Raises: StudyError for one of another protocol."""
    left_open = is_open(options.protocol, options.settings)
    protocol = chosen_protocol(options.protocol or USUAL, options.settings)
    known = list(open_keys()) if left_open else [each.key for each in settings_of(protocol)]
    for key in options.settings:
        if key not in known:
            shown = ", ".join(flag_of(each) for each in known if each not in PARTICIPANTS)
            raise StudyError(
                f"{flag_of(key)} is not a setting of --protocol {protocol.name}, which has "
                f"{shown}; leave it out"
            )
    settings = dict(options.settings)
    if protocol.name == USUAL:
        settings.setdefault("edges", DEMO_EDGES)
    if left_open:
        settings["backend"] = AUTO
    if "bins" in settings:
        settings["bins"] = dict(map(_bins, settings["bins"]))
    return settings


def _bins(text: str) -> tuple[str, int | list[str]]:
    """A field's number of bins, or its cut points."""
    field, value = named_list("--bins", text)
    if value.isascii() and value.isdigit():
        return field, int(value)
    return field, listed(value)


def _start(deployment: Deployment, study: Study, paths: Sequence[Path]) -> None:
    """Start all processes but the coordinator."""
    from umpc.deployment.processes import MISSING, rules_for

    beside = ""
    if study.shufflers:
        beside = "two shufflers and "
    elif study.dealer:
        beside = "a dealer and "
    hub = "a hub, " if deployment.hub else ""
    _tell(f"starting {hub}{beside}{len(paths)} node{'s' if len(paths) > 1 else ''}")
    if study.dealer:
        deployment.start_dealer()
    for shuffler in study.shufflers:
        deployment.start_shuffler(shuffler.name)
    rules = rules_for(study)
    epsilon = str(study.exact_epsilon)
    delta = str(study.exact_delta + DELTA)
    for path in paths:
        deployment.start_node(path.stem, path, epsilon, MISSING, more=rules, delta=delta)


def _write_addresses(file: Path, served: dict[str, Served]) -> None:
    """Write the participants' addresses into the study: they exist only now."""
    lines = file.read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines):
        if line.startswith("address = "):
            name = json.loads(lines[number - 1].removeprefix("name = "))
            lines[number] = f"address = {json.dumps(served[name].address)}"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _coordinate(file: Path, deployment: Deployment) -> Report:
    """The coordinator, a process of its own. Its refusal ends the demo with the same exit code."""
    from umpc.deployment.processes import UMPC

    command = [*UMPC, "study", "run", str(file), "--format", "json", INSIDE_A_DEMO]
    command += ["--await-site", "0"]  # nobody starts a demo's node again
    command += ["--quiet"] * _is_quiet()
    coordinator = deployment.popen(command, stdout=subprocess.PIPE)
    deployment.processes.append(coordinator)
    output = coordinator.stdout.read() if coordinator.stdout else b""
    if coordinator.wait() != 0:
        sys.exit(coordinator.returncode)
    return Report.from_dict(json.loads(output))


def _tell(line: str) -> None:
    if not _is_quiet():
        click.echo(line, err=True)


def _is_quiet() -> bool:
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.params.get("quiet"))
