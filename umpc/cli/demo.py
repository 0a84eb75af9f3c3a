"""`umpc demo`: certificates, dealer, nodes and coordinator as processes on this machine.

The options that set up the protocol are those settings that some protocol has; their help comes
from the protocols themselves.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from umpc.cli.settings_help import Setting, settings_of, write_protocols, write_settings
from umpc.errors import ConfigError, StudyError
from umpc.node.table.number_format import DECIMAL_MARKS, THOUSANDS_MARKS
from umpc.protocols.registry import PROTOCOLS, USUAL, find_protocol
from umpc.study.grades import ADVERSARIES, HONEST
from umpc.study.settings import keys_of
from umpc.ustat.statistics import LIBRARY, find_statistic

if TYPE_CHECKING:
    from umpc.cli.deployment import Deployment, Served
    from umpc.cli.table import DemoTable
    from umpc.coordinator.studyfile import StudyFile
    from umpc.node.table.number_format import NumberFormat
    from umpc.study.document import Study
    from umpc.study.report import Report

DELTA = Fraction(1, 1000)
"""The δ that the demo's sites allow beside the study's: finite bits of noise take some of it."""
FILE = click.Path(dir_okay=False, path_type=Path)
FOLDER = click.Path(file_okay=False, path_type=Path)
NOWHERE = "127.0.0.1:1"
"""The address of a process that is not started yet."""
PARTICIPANTS = ("dealer", "shufflers")
"""Settings that the demo makes itself."""
TABLE = "The table"
STUDY = "The study"
OUTPUT = "The output"
SECTIONS = {
    "csv_file": TABLE,
    "delimiter": TABLE,
    "fields": TABLE,
    "label": TABLE,
    "nodes": TABLE,
    "missing": TABLE,
    "encoding": TABLE,
    "decimal": TABLE,
    "thousands": TABLE,
    "statistic": STUDY,
    "parameters": STUDY,
    "protocol": STUDY,
    "permutations": STUDY,
    "epsilon": STUDY,
    "max_colluding": STUDY,
    "adversary": STUDY,
    "style": OUTPUT,
}
"""Option → its section in the help text. Options that are not here join the last section."""
Command = Callable[..., None]


@dataclass(frozen=True)
class DemoOptions:
    """The options of `umpc demo`. settings: those of the protocol."""

    csv_file: Path | None
    delimiter: str
    missing: tuple[str, ...]
    encoding: str
    decimal: str
    thousands: str | None
    fields: str | None
    label: str | None
    statistic: str
    parameters: tuple[str, ...]
    nodes: int
    protocol: str
    epsilon: str
    max_colluding: int | None
    adversary: str
    style: str
    page: Path | None
    keep: Path | None
    settings: Mapping[str, Any]


class DemoCommand(click.Command):
    """A command whose help has a section for each group of options."""

    def format_options(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        settings = _settings()
        records: dict[str, list[tuple[str, str]]] = {title: [] for title in SECTIONS.values()}
        metavars = {}
        for option in self.get_params(context):
            metavars[option.name] = option.make_metavar(context)
            record = option.get_help_record(context)
            if record is not None and option.name not in settings:
                records[SECTIONS.get(option.name or "", OUTPUT)].append(record)
        for title, rows in records.items():
            with formatter.section(title):
                formatter.write_dl(rows)
        write_protocols(formatter)
        write_settings(
            formatter,
            lambda setting: f"{_flag(setting.key)} {metavars[setting.key]}",
            leave_out=PARTICIPANTS,
        )


def _settings_options(command: Command) -> Command:
    """An option for every setting that a protocol has."""
    for key, settings in reversed(_settings().items()):
        command = click.option(_flag(key), **_kind(key, settings))(command)
    return command


def _settings() -> dict[str, list[Setting]]:
    """Every setting that a demo takes, as each protocol that has it describes it."""
    found: dict[str, list[Setting]] = {}
    for protocol in PROTOCOLS.values():
        for setting in settings_of(protocol):
            if setting.key not in PARTICIPANTS:
                found.setdefault(setting.key, []).append(setting)
    return found


def _kind(key: str, settings: Sequence[Setting]) -> dict[str, Any]:
    """What click is told of a setting: the values that any protocol takes for it."""
    if key == "bins":
        return {"multiple": True, "metavar": "FIELD=BINS"}
    choices = dict.fromkeys(choice for each in settings for choice in each.choices)
    if choices:
        return {"type": click.Choice(list(choices)), "metavar": "NAME"}
    return {"type": int if settings[0].is_number else str}


def _flag(key: str) -> str:
    return f"--{key.replace('_', '-')}"


@click.command(cls=DemoCommand)
@click.option(
    "--csv",
    "csv_file",
    type=FILE,
    help="A table with a header line. The default is scikit-learn's breast cancer set.",
)
@click.option(
    "--delimiter", default=",", show_default=True, help="The separator of the table's columns."
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
    metavar="COLUMN=FIRST",
    help="A two-sample statistic's public label, and its first class.",
)
@click.option(
    "--statistic",
    type=click.Choice(sorted(LIBRARY)),
    metavar="NAME",
    default="kendall_tau",
    show_default=True,
    help="A statistic of the library, which `umpc kernels` lists.",
)
@click.option(
    "--parameter",
    "parameters",
    multiple=True,
    metavar="NAME=VALUE",
    help="A parameter of the statistic.",
)
@click.option(
    "--nodes",
    type=click.IntRange(1, 64),
    default=4,
    show_default=True,
    help="The number of sites to split the table over.",
)
@click.option(
    "--protocol",
    type=click.Choice(list(PROTOCOLS)),
    default=USUAL,
    show_default=True,
    metavar="NAME",
    help="One of the protocols below. It decides what is released.",
)
@click.option(
    "--permutations",
    type=click.IntRange(min=1),
    metavar="P",
    help="Average over P random pairings of all records; the same as --edges Pp.",
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
@_settings_options
@click.option(
    "--format",
    "style",
    type=click.Choice(["table", "json"]),
    default="table",
    show_default=True,
    help="How the report is printed.",
)
@click.option(
    "--html",
    "page",
    type=FILE,
    help="Also write the report as one HTML file that needs no network.",
)
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
    umpc demo --nodes 2 --backend garbled --preprocessing none
    umpc demo --adversary lying_nodes
    umpc demo --protocol bell-2pc --permutations 1
    umpc demo --protocol bell-ldp --bins 'mean radius=4' --bins 'mean texture=15,20,25'
    umpc demo --protocol central --noise hajek
    umpc demo --protocol ghazi-shuffle
    umpc demo --csv bank.csv --delimiter ';' --statistic auc --fields balance --label y=yes
    umpc demo --statistic mean --protocol gopa --delta 1e-9 --max-colluding 1
    """
    from umpc.cli.show import print_report

    named = {key: given.pop(key) for key in _settings()}
    settings = {key: value for key, value in named.items() if value not in (None, ())}
    permutations = given.pop("permutations")
    if permutations is not None:
        if "edges" in settings:
            raise ConfigError(
                "--edges and --permutations both say what to average over; give one of them"
            )
        settings["edges"] = f"{permutations}p"
    options = DemoOptions(**given, settings=settings)
    with _folder(options.keep) as folder:
        report, exact = _run(folder, _table(options), options)
    print_report(report, options.style, exact)
    if options.page:
        from umpc.cli.page import save_page

        save_page(report, options.page)


def _table(options: DemoOptions) -> DemoTable:
    """The demo's table, with the statistic's columns and its label."""
    from umpc.cli.table import breast_cancer, read_csv

    columns = [name.strip() for name in options.fields.split(",")] if options.fields else []
    first_class = _pair("--label", options.label) if options.label else None
    wanted = [*columns, first_class[0]] if first_class else columns
    if options.csv_file is None:
        arguments = find_statistic(options.statistic).arguments
        default = ("mean radius", "mean texture")[: len(arguments)]
        table = breast_cancer(wanted or default)
    else:
        table = read_csv(
            options.csv_file,
            options.delimiter,
            wanted,
            missing=options.missing,
            encoding=options.encoding,
            numbers=_number_format(options.decimal, options.thousands or ""),
        )
    return replace(table, first_class=first_class)


def _number_format(decimal: str, thousands: str) -> NumberFormat:
    """How the table writes numbers. Raises: ConfigError."""
    from umpc.node.table.number_format import NumberFormat

    if decimal == thousands:
        raise ConfigError(
            f"--decimal and --thousands must be different characters, got {decimal!r} for both"
        )
    return NumberFormat(decimal, thousands)


@contextmanager
def _folder(keep: Path | None) -> Iterator[Path]:
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


def _pair(option: str, text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals and value):
        raise ConfigError(f"{option} is given as NAME=VALUE, got {text!r}")
    return name, value


def _bins(text: str) -> tuple[str, int | list[str]]:
    """A field's number of bins, or its cut points."""
    field, value = _pair("--bins", text)
    if value.isascii() and value.isdigit():
        return field, int(value)
    return field, [cut.strip() for cut in value.split(",")]


def _run(
    folder: Path, table: DemoTable, options: DemoOptions
) -> tuple[Report, dict[str, float | None]]:
    """The study over real processes. Returns: its report, and the exact values."""
    from umpc.cli.deployment import Deployment, ended_with_us
    from umpc.cli.table import exact_values, pooled

    deployment = Deployment(folder)
    paths = table.split(folder, options.nodes)
    with ended_with_us(deployment.processes):
        file = _write_study(folder, table, options, [path.stem for path in paths])
        study = file.study("coordinator")  # refused before any process starts
        _start(deployment, study, paths)
        _write_addresses(file.path, deployment.wait_until_ready())
        report = _coordinate(file.path, deployment.processes)
    return report, exact_values(study, pooled(study, paths), report)


def _write_study(
    folder: Path, table: DemoTable, options: DemoOptions, nodes: Sequence[str]
) -> StudyFile:
    """study.toml, for processes that are not started yet."""
    from umpc.coordinator.studyfile import field_entry, load_study_file, write_study_file

    described = table.describe()
    for each in described:
        _tell(str(each))
    fields = [each.field for each in described]
    settings = _checked_settings(options)
    entries = {
        "name": "demo",
        "protocol": options.protocol,
        "epsilon": options.epsilon,
        "identity": "coordinator",
        "statistic": options.statistic,
        "columns": [field.name for field in fields if not field.public],
        "parameters": dict(_pair("--parameter", text) for text in options.parameters),
        "max_colluding": options.max_colluding,
        "adversary": options.adversary,
        "fields": [field_entry(field) for field in fields],
        "nodes": [{"name": name, "address": NOWHERE} for name in nodes],
        **settings,
        **_helpers(options.protocol, settings),
    }
    return load_study_file(write_study_file(folder, entries))


def _checked_settings(options: DemoOptions) -> dict[str, Any]:
    """The settings as a study file has them. Raises: StudyError for one of another protocol."""
    known = [each.key for each in settings_of(find_protocol(options.protocol))]
    for key in options.settings:
        if key not in known:
            shown = ", ".join(_flag(each) for each in known if each not in PARTICIPANTS)
            raise StudyError(
                f"{_flag(key)} is not a setting of --protocol {options.protocol}, which has "
                f"{shown}; leave it out"
            )
    settings = dict(options.settings)
    if "bins" in settings:
        settings["bins"] = dict(map(_bins, settings["bins"]))
    return settings


def _helpers(protocol: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The dealer or the shufflers that the study needs."""
    known = keys_of(find_protocol(protocol).settings)
    found: dict[str, Any] = {}
    if "dealer" in known and settings.get("preprocessing") != "none":
        found["dealer"] = {"name": "dealer", "address": NOWHERE}
    if "shufflers" in known:
        names = ("shuffler-1", "shuffler-2")
        found["shufflers"] = [{"name": name, "address": NOWHERE} for name in names]
    return found


def _start(deployment: Deployment, study: Study, paths: Sequence[Path]) -> None:
    """Start all processes but the coordinator."""
    from umpc.cli.deployment import rules_for

    beside = ""
    if study.shufflers:
        beside = "two shufflers and "
    elif study.dealer:
        beside = "a dealer and "
    _tell(f"starting {beside}{len(paths)} node{'s' if len(paths) > 1 else ''}")
    if study.dealer:
        deployment.start_dealer()
    for shuffler in study.shufflers:
        deployment.start_shuffler(shuffler.name)
    rules = rules_for(study)
    epsilon = str(study.exact_epsilon)
    delta = str(study.exact_delta + DELTA)
    for path in paths:
        deployment.start_node(path.stem, path, epsilon, more=rules, delta=delta)


def _write_addresses(file: Path, served: dict[str, Served]) -> None:
    """Write the participants' addresses into the study: they exist only now."""
    lines = file.read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines):
        if line.startswith("address = "):
            name = json.loads(lines[number - 1].removeprefix("name = "))
            lines[number] = f"address = {json.dumps(served[name].address)}"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _coordinate(file: Path, processes: list[subprocess.Popen[bytes]]) -> Report:
    """The coordinator, a process of its own. Its refusal ends the demo with the same exit code."""
    from umpc.cli.deployment import UMPC
    from umpc.study.report import Report

    command = [*UMPC, "study", "run", str(file), "--format", "json"]
    coordinator = subprocess.Popen(command, stdout=subprocess.PIPE)
    processes.append(coordinator)
    output, _ = coordinator.communicate()
    if coordinator.returncode != 0:
        sys.exit(coordinator.returncode)
    return Report.from_dict(json.loads(output))


def _tell(line: str) -> None:
    click.echo(line, err=True)
