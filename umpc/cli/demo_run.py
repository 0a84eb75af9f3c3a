"""The demo's run: a table split over sites, and one study between real processes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from umpc.api.entries import NOWHERE, helper_entries
from umpc.cli.demo_options import PARTICIPANTS, DemoOptions, flag_of, named_list, named_value
from umpc.cli.kernel_options import listed
from umpc.cli.main import INSIDE_A_DEMO
from umpc.cli.settings_help import settings_of
from umpc.errors import StudyError
from umpc.protocols.auto import open_keys
from umpc.protocols.left_open import AUTO, is_open
from umpc.protocols.registry import USUAL, chosen_protocol
from umpc.ustat.condition import fields_read
from umpc.ustat.statistics import find_statistic

if TYPE_CHECKING:
    from umpc.cli.table import DemoTable
    from umpc.coordinator.studyfile import StudyFile
    from umpc.deployment.processes import Deployment, Served, Start
    from umpc.study.document import Study
    from umpc.study.report import Report

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


def _write_study(
    folder: Path, table: DemoTable, options: DemoOptions, nodes: Sequence[str]
) -> StudyFile:
    """study.toml, for processes that are not started yet."""
    from umpc.coordinator.studyfile import load_study_file
    from umpc.coordinator.studyfile_text import field_entry, write_study_file

    described = table.describe()
    for each in described:
        _tell(str(each))
    fields = [each.field for each in described]
    for warning in table.warnings(fields):
        click.echo(f"warning: {warning}", err=True)
    names = [field.name for field in fields if not field.public]
    filtered = set(fields_read(options.where)) - set(_asked_for(options, names))
    settings = _checked_settings(options)
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


def _asked_for(options: DemoOptions, names: Sequence[str]) -> Sequence[str]:
    """The statistic's own columns: those that were named, or the first ones of the table."""
    if options.fields:
        return listed(options.fields)
    return names[: len(find_statistic(options.statistic).arguments)]


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
    from umpc.study.report import Report

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
