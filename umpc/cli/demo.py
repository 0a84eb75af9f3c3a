"""`umpc demo`: certificates, dealer, nodes and coordinator as processes on this machine, and one study."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import click

from umpc.errors import ConfigError
from umpc.protocols.kinds import BACKENDS, NOISES, PREPROCESSINGS, PROTOCOLS
from umpc.protocols.local.settings import ROUNDINGS, SHUFFLED
from umpc.ustat.statistics import LIBRARY, find_statistic

if TYPE_CHECKING:
    from umpc.cli.deployment import Served
    from umpc.cli.table import DemoTable
    from umpc.study.document import Study
    from umpc.study.report import Report

DELTA = Fraction(1, 1000)
"""Beside what a study asks for, the demo's sites allow this δ: finite bits of noise take some of it at a large ε."""
FILE = click.Path(dir_okay=False, path_type=Path)
FOLDER = click.Path(file_okay=False, path_type=Path)


@click.command()
@click.option(
    "--csv",
    "csv_file",
    type=FILE,
    help="A table with a header line; default: scikit-learn's breast cancer set.",
)
@click.option(
    "--delimiter", default=",", show_default=True, help="What separates the table's columns."
)
@click.option("--fields", help="The statistic's columns, separated by commas.")
@click.option(
    "--label",
    metavar="COLUMN=FIRST",
    help="A two-sample statistic's public label, and its first class.",
)
@click.option(
    "--statistic", type=click.Choice(sorted(LIBRARY)), default="kendall_tau", show_default=True
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
    help="Sites to split the table over.",
)
@click.option(
    "--edges", help="Sets to average over: a number, a multiple of n such as 2n (default), or all."
)
@click.option(
    "--protocol",
    type=click.Choice(PROTOCOLS),
    help="What is released: a noisy sum (u-mpc, default), noisy pairs, every record's noisy answer, noisy counts, "
    "or (central) the answer of a trusted curator, who sees all records.",
)
@click.option(
    "--permutations",
    type=click.IntRange(min=1),
    metavar="P",
    help="Average over P random pairings of all records.",
)
@click.option("--epsilon", default="1", show_default=True, help="Privacy of the result.")
@click.option(
    "--max-colluding",
    type=click.IntRange(min=0),
    help="Nodes that may collude; default: all but one.",
)
@click.option(
    "--noise",
    type=click.Choice(NOISES),
    help="How the noise is drawn; default: in_mpc up to 16 nodes. With --protocol central the mechanism: laplace.",
)
@click.option(
    "--delta", help="With gopa, --noise skellam or binomial, or noisy pairs, such as 1e-9."
)
@click.option(
    "--backend",
    type=click.Choice(BACKENDS),
    help="How pairs of two sites are evaluated; default: shared.",
)
@click.option(
    "--preprocessing",
    type=click.Choice(PREPROCESSINGS),
    help="With --backend garbled: none, no dealer.",
)
@click.option(
    "--bins",
    multiple=True,
    metavar="FIELD=BINS",
    help="Of protocols with cells, as bell-ldp: a number of bins (default: 4), or cut points as 30,40,50.",
)
@click.option(
    "--rounding", type=click.Choice(ROUNDINGS), help="Of values to bins; default: simple."
)
@click.option("--levels", type=int, help="With bell-auc: scores become 2^LEVELS bins; default: 4.")
@click.option(
    "--format", "style", type=click.Choice(["table", "json"]), default="table", show_default=True
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
def demo(
    csv_file: Path | None,
    delimiter: str,
    fields: str | None,
    label: str | None,
    statistic: str,
    parameters: tuple[str, ...],
    nodes: int,
    edges: str | None,
    protocol: str | None,
    permutations: int | None,
    epsilon: str,
    max_colluding: int | None,
    noise: str | None,
    delta: str | None,
    backend: str | None,
    preprocessing: str | None,
    bins: tuple[str, ...],
    rounding: str | None,
    levels: int | None,
    style: str,
    page: Path | None,
    keep: Path | None,
) -> None:
    """Run everything on this machine: a table split over nodes, and one private statistic.

    Starts dealer or shufflers, if the study has them, and the nodes as processes of their own on loopback, with
    certificates made for the occasion, runs the study, and prints the private estimate beside the exact value, which
    only the demo can know. Every process it started is gone when it ends.

    \b
    umpc demo
    umpc demo --nodes 2 --edges all --epsilon 0.5
    umpc demo --csv bank.csv --delimiter ';' --fields age,balance --edges 40000
    umpc demo --nodes 2 --backend garbled --preprocessing none
    umpc demo --protocol bell-2pc --permutations 1
    umpc demo --protocol bell-ldp --bins 'mean radius=4' --bins 'mean texture=15,20,25'
    umpc demo --protocol central --noise hajek
    umpc demo --protocol ghazi-shuffle
    umpc demo --csv bank.csv --delimiter ';' --statistic auc --fields balance --label y=yes
    umpc demo --statistic mean --protocol gopa --delta 1e-9 --max-colluding 1
    """
    from umpc.cli.table import breast_cancer, read_csv

    if permutations is not None and edges is not None:
        raise ConfigError(
            "--edges and --permutations both say what to average over; give one of them"
        )
    edges = edges if permutations is None else f"{permutations}p"
    columns = [name.strip() for name in fields.split(",")] if fields else []
    first_class = _pair("--label", label) if label else None
    wanted = [*columns, first_class[0]] if first_class else columns
    if csv_file is None:
        default = ("mean radius", "mean texture")[: len(find_statistic(statistic).arguments)]
        table = breast_cancer(wanted or default)
    else:
        table = read_csv(csv_file, delimiter, wanted)
    table = replace(table, first_class=first_class)
    given = dict(_pair("--parameter", text) for text in parameters)
    with _folder(keep) as folder:
        settings = {
            "edges": edges,
            "epsilon": epsilon,
            "max_colluding": max_colluding,
            "noise": noise,
        }
        settings |= {
            "protocol": protocol,
            "delta": delta,
            "backend": backend,
            "preprocessing": preprocessing,
        }
        settings |= {"bins": dict(map(_bins, bins)), "rounding": rounding, "levels": levels}
        report, extra = _run(folder, table, statistic, given, nodes, settings)
    from umpc.cli.show import print_report

    print_report(report, style, extra)
    if page:
        from umpc.cli.page import save_page

        save_page(report, page)


@contextmanager
def _folder(keep: Path | None):
    if keep is None:
        with tempfile.TemporaryDirectory(prefix="umpc-demo-") as name:
            yield Path(name)
    else:
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
    return field, int(value) if value.isascii() and value.isdigit() else [
        cut.strip() for cut in value.split(",")
    ]


def _run(
    folder: Path,
    table: DemoTable,
    statistic: str,
    parameters: dict[str, str],
    nodes: int,
    settings: dict,
) -> tuple[Report, dict]:
    from umpc.cli.deployment import Deployment, ended_with_us
    from umpc.coordinator.studyfile import DEFAULTS, load_study_file, write_study_file

    deployment, fields = Deployment(folder), table.fields()
    without_dealer = "none" in (
        settings["preprocessing"],
        DEFAULTS[settings["protocol"] or "u-mpc"].preprocessing,
    )
    paths = table.split(folder, nodes)
    shufflers = ("shuffler-1", "shuffler-2") if settings["protocol"] in SHUFFLED else ()
    with ended_with_us(deployment.processes):
        file = write_study_file(
            folder,
            name="demo",
            statistic=statistic,
            columns=[field.name for field in fields if not field.public],
            parameters=parameters,
            fields=fields,
            dealer=None if without_dealer else ("dealer", "127.0.0.1:1"),
            nodes=[(path.stem, "127.0.0.1:1") for path in paths],
            shufflers=[(name, "127.0.0.1:1") for name in shufflers],
            **settings,
        )
        study = load_study_file(file).study("coordinator")  # refused before any process starts
        beside = "two shufflers and " if shufflers else "a dealer and " if study.dealer else ""
        _tell(f"starting {beside}{nodes} node{'s' if nodes > 1 else ''}")
        if study.dealer:
            deployment.start_dealer()
        rules = "\n[policy]\ntrusted_curator = true\n" if study.central else ""
        for name in shufflers:
            deployment.start_shuffler(name)
        for path in paths:
            delta = str(study.exact_delta + DELTA)
            deployment.start_node(
                path.stem, path, str(study.exact_epsilon), more=rules, delta=delta
            )
        _write_addresses(file, deployment.wait_until_ready())
        report = _coordinate(file, deployment.processes)
    return report, _exact(study, paths, report)


def _write_addresses(file: Path, served: dict[str, Served]) -> None:
    """The study names its participants' addresses, which exist only now."""
    lines = file.read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines):
        if line.startswith("address = "):
            name = json.loads(lines[number - 1].removeprefix("name = "))
            lines[number] = f"address = {json.dumps(served[name].address)}"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _coordinate(file: Path, processes: list[subprocess.Popen]) -> Report:
    """The coordinator, a process of its own; its refusal ends the demo with the same exit code."""
    from umpc.cli.deployment import UMPC
    from umpc.study.report import Report

    command = [*UMPC, "study", "run", str(file), "--format", "json"]
    coordinator = subprocess.Popen(command, stdout=subprocess.PIPE)
    processes.append(coordinator)
    output, _ = coordinator.communicate()
    if coordinator.returncode != 0:
        sys.exit(coordinator.returncode)
    return Report.from_dict(json.loads(output))


def _exact(study: Study, paths: Sequence[Path], report: Report) -> dict:
    """What the pooled records give: over all sets, and over the same E without noise."""
    from umpc.cli.table import exact_and_quantised, exact_over_all, exact_value, pooled
    from umpc.mpc.attempt import edges_of

    tables = pooled(study, paths)
    if study.central:
        exact = exact_over_all(study, tables)
        return {"exact": exact, "exact_over_edges": exact if report.edges == report.sets else None}
    if study.one_message:
        return exact_and_quantised(study, tables)
    firsts, records = report.first_class_by_node, report.records_by_node
    classes = [(first, count - first) for first, count in zip(firsts, records, strict=True)]
    graph = edges_of(study, bytes.fromhex(report.joint_seed), classes)
    return {
        "exact": exact_over_all(study, tables),
        "exact_over_edges": exact_value(study, tables, graph),
    }


def _tell(line: str) -> None:
    click.echo(line, err=True)
