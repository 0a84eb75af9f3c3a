"""`umpc node doctor`: check everything that a node needs before a study, one line a check."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from umpc.cli.doctor_findings import Finding, attempt, exit_code
from umpc.cli.shared import CONFIG
from umpc.errors import LedgerError, UmpcError

if TYPE_CHECKING:
    from umpc.cli.doctor_site import NamedPeer
    from umpc.node.config import NodeConfig


@click.command()
@CONFIG
@click.option(
    "--peer",
    "peers",
    multiple=True,
    metavar="NAME=HOST:PORT",
    help="Also call this node; dealer:NAME=HOST:PORT and shuffler:NAME=HOST:PORT call those. May "
    "be given several times.",
)
@click.option(
    "--study",
    "studies",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Also compare the table with the fields of this study.toml. Studies that wait for "
    "approval or have it are compared anyway. May be given several times.",
)
@click.option(
    "--format",
    "style",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Lines for people, or one JSON object for programs.",
)
def doctor(config: Path, peers: tuple[str, ...], studies: tuple[Path, ...], style: str) -> None:
    """Check the site's files, its address and its peers, and say what to do.

    A line begins with "ok", with "!!" if somebody must do something, or with "--" if it only
    informs. The exit code is 0 if no line begins with "!!", and otherwise that of the first such
    error. The command changes nothing, and it works while the node runs. It shows the number of
    rows of the table and single values, so keep its output at the site.

    A column that is mostly numbers is red if it has other values, such as 115,1 without a decimal
    comma under [data]. A study would count them as the lower bound, and tell nobody. A study is red
    if most values of one of its fields do not fit: numbers outside the bounds, or words that are
    none of the categories.

    \b
    Examples:
      umpc node doctor --config node.toml --peer south=south.example.org:7100
      umpc node doctor --config node.toml --study study.toml
    """
    from umpc.cli.doctor_site import parse_peer

    parsed = [parse_peer(peer) for peer in peers]
    findings: list[Finding] = []
    for finding in examine(config, parsed, studies):
        findings.append(finding)
        if style == "text":
            click.echo(str(finding))
    code = exit_code(findings)
    if style == "json":
        checks = [finding.as_dict() for finding in findings]
        click.echo(json.dumps({"ok": code == 0, "exit_code": code, "checks": checks}))
    sys.exit(code)


def _examine_dataset(node: NodeConfig, studies: Sequence[Path]) -> Iterator[Finding]:
    """Yield the findings about one data set of the site."""
    from umpc.cli import doctor_site as site
    from umpc.cli.doctor_findings import check_file, check_known, check_policy

    yield from attempt("policy", check_policy, node.policy)
    yield from attempt("table", site.check_table, node)
    for file in studies:
        yield from attempt("study", check_file, node, file)
    yield from attempt("study", check_known, node)
    yield from attempt("disk", site.check_disk, node)
    ledger = list(attempt("ledger", site.check_ledger, node))
    yield from ledger
    if not any(isinstance(finding.error, LedgerError) for finding in ledger):
        yield from attempt("audit trail", site.check_audit, node)


def examine(
    config: Path, peers: Sequence[NamedPeer], studies: Sequence[Path] = ()
) -> Iterator[Finding]:
    """Yield the findings of all checks. Without a configuration only the versions are known."""
    from umpc.cli import doctor_site as site
    from umpc.cli.check_table import dataset_of
    from umpc.cli.doctor_site import check_network
    from umpc.node.config import load_datasets
    from umpc.transport.identity import load_identity

    yield from site.check_version()
    yield from site.check_open_files()
    try:
        found = load_datasets(config)
    except UmpcError as error:
        yield Finding("configuration", error=error)
        return
    node = found[0]
    yield Finding("configuration", f"{node.file}: node {node.name!r}")
    for each in found:
        if len(found) > 1:
            yield Finding("data set", repr(each.dataset))
        own = [file for file in studies if dataset_of(file, found) in (each.dataset, None)]
        yield from _examine_dataset(each, own)
    yield from attempt("data sets", site.check_datasets, found)
    identity = None
    try:
        identity = load_identity(node.identity, "node")
    except UmpcError as error:
        yield Finding("certificate", error=error)
    else:
        yield from attempt("certificate", site.check_identity, node, identity)
    yield from asyncio.run(check_network(node.hub or node.listen, identity, peers))
