"""`umpc node` and `umpc dealer`: servers that wait for studies.

The parts of a site that `umpc node start` opens by the node's own file.

`umpc node backup` and `umpc node restore`: a site's files in one archive, and back.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from umpc.cli.memory import tune_process
from umpc.cli.node_page import page
from umpc.cli.server_options import (
    COMPUTE,
    COMPUTE_TLS,
    CORES,
    Monitor,
    Service,
    Serving,
    begin_helper,
    helper_options,
    node_options,
    serve,
    serve_helper,
)
from umpc.cli.shared import CONFIG, FILE, FOLDER, format_option, of_dataset
from umpc.cli.status import status
from umpc.errors import CertificateError, ConfigError
from umpc.logs import start_logging

if TYPE_CHECKING:
    from umpc.cli.server_options import Finished, Server
    from umpc.node.backup.restoring import Statement
    from umpc.node.config import NodeConfig
    from umpc.node.datasets import Dataset
    from umpc.transport.addresses import HubAddress
    from umpc.transport.identity import Identity
    from umpc.transport.people_door import PublicDoor

log = logging.getLogger("umpc.node")


@click.group()
def node() -> None:
    """Run this site's node. A node holds the site's table and its privacy budget.

    First print a template of its TOML file and edit it; then start the node.

    \b
    umpc node template --name north > node.toml
    umpc node doctor --config node.toml
    umpc node start --config node.toml
    umpc node status --config node.toml
    umpc node page --config node.toml
    umpc node backup --config node.toml --to north.tar
    """


for each in (status, page):
    node.add_command(each)


@node.command()
@click.option("--name", required=True, help="The node's name in its certificate.")
def template(name: str) -> None:
    """Print a node.toml with comments, for you to edit."""
    from umpc.node.template import template as text

    click.echo(text(name), nl=False)


@node.command("start")
@click.option("--config", type=FILE, help="The node's TOML file; see `umpc node template`.")
@click.option(
    "--many",
    type=FOLDER,
    help="A folder of such files, one for each node: this process runs all of them.",
)
@node_options
def start_node(given: Serving, config: Path | None, many: Path | None) -> None:
    """Take part in studies until Ctrl-C or SIGTERM.

    The command prints "ready" and its address as soon as it accepts calls.

    With --many, one process runs a node for each .toml file in the folder. Each node has its own
    certificate, address, ledger and rules, as if it ran alone, and prints a line of its own. All
    other commands take the node's own file.

    \b
    umpc node start --config node.toml
    umpc node start --many people
    """
    if (config is None) == (many is None):
        raise click.UsageError("give either --config FILE or --many FOLDER")
    if many is not None and given.metrics:
        raise click.UsageError("--metrics shows one node, so it does not go with --many")
    from umpc.node.config import load_datasets

    tune_process()
    found = configurations(many) if many is not None else [load_datasets(cast(Path, config))]
    with contextlib.ExitStack() as ending:
        if many is not None:
            start_logging(f"nodes {many.name}", given.level, given.style)
        identities = [own_identity(configs[0]) for configs in found]
        if many is None:
            start_logging(f"node {identities[0].name}", given.level, given.style)
        sites = [open_site(*each, ending) for each in zip(found, identities, strict=True)]
        monitor = Monitor(identities[0], given.metrics)
        for dataset in sites[0].datasets if many is None else ():
            label = dataset.name if len(found[0]) > 1 else ""
            monitor.watch_site(dataset.config, dataset.ledger, label)
        for dataset in (each for site in sites for each in site.datasets):
            for key in dataset.config.without_effect:
                log.warning(
                    "%r has no effect; correct or remove it in %s", key, dataset.config.file
                )
        services = [site.service(ending) for site in sites]
        asyncio.run(serve(services, given, monitor))


@click.group()
def dealer() -> None:
    """Run the dealer. It deals correlated random numbers to the nodes, and sees no data.

    The dealer must not collude with a node or with the coordinator. Let an organisation run it
    that has no other part in the study.

    \b
    umpc dealer start --identity dealer --listen 0.0.0.0:7100
    """


@dealer.command("start")
@helper_options
@CORES
@COMPUTE
@COMPUTE_TLS
@click.option(
    "--people",
    type=FOLDER,
    help="Also deal for studies of people; the folder has their secrets until they close.",
)
@click.option(
    "--people-listen",
    "door",
    metavar="HOST:PORT",
    help="Where people's devices fetch their secrets; it goes with --people.",
)
def start_dealer(
    given: Serving,
    cores: int | None,
    compute: str | None,
    compute_tls: Path | None,
    people: Path | None,
    door: str | None,
) -> None:
    """Deal random numbers to nodes until Ctrl-C or SIGTERM.

    With --people-listen it also prints "people" and the address of the door, which needs no
    certificate.
    """
    if people is None and door is not None:
        raise click.UsageError("--people-listen HOST:PORT goes with --people FOLDER")
    from umpc.compute.place import named_place
    from umpc.dealer.server import ALLOWED, DealerServer
    from umpc.transport.tls import rpc

    identity = begin_helper(given, "dealer")
    assert given.folder is not None
    workers = named_place(cores, compute, compute_tls).open(given.folder)
    dealt = public = None
    if people is not None:
        from umpc.dealer.people import PeopleDealer

        dealt = PeopleDealer(people)
    if dealt is not None and door is not None:
        from umpc.transport.people_door import Behind, PublicDoor

        public = PublicDoor(identity, Behind(secrets=dealt.secrets, sweep=dealt.sweep), door)

    def add(server: Server, finished: Finished) -> None:
        dealer = DealerServer(identity, finished, workers=workers, people=dealt)
        rpc.add_DealerServicer_to_server(dealer, server)  # type: ignore[no-untyped-call]

    with contextlib.ExitStack() as ending:
        if workers is not None:
            ending.callback(workers.close)
        if dealt is not None:
            ending.callback(dealt.close)
        serve_helper(given, identity, ALLOWED, add, public)


@node.command()
@CONFIG
@click.option(
    "--peer",
    "peers",
    multiple=True,
    metavar="NAME=HOST:PORT",
    help="Also call this node; dealer:NAME=HOST:PORT and shuffler:NAME=HOST:PORT call those. May "
    "be given several times.",
)
@format_option("text", "json", "Lines for people, or one JSON object for programs.")
def doctor(config: Path, peers: tuple[str, ...], style: str) -> None:
    """Check the site's files, its address and its peers, and say what to do.

    A line begins with "ok", with "!!" if somebody must do something, or with "--" if it only
    informs. The exit code is 0 if no line begins with "!!", and otherwise that of the first such
    error. The command changes nothing, and it works while the node runs. It shows the number of
    rows of the table and single values, so keep its output at the site.

    A column that is mostly numbers is red if it has other values, such as 115,1 without a decimal
    comma under [data]. A study would count them as the lower bound, and tell nobody. A study that
    waits for approval or has it is red if most values of one of its fields do not fit: numbers
    outside the bounds, or words that are none of the categories.

    `umpc study check study.toml --table node.toml` compares another study with the table.

    \b
    Example:
      umpc node doctor --config node.toml --peer south=south.example.org:7100
    """
    from umpc.cli.doctor import examine, parse_peer

    findings = []
    for finding in examine(config, [parse_peer(peer) for peer in peers]):
        findings.append(finding)
        if style == "text":
            click.echo(str(finding))
    code = next((each.error.exit_code for each in findings if each.error), 0)
    if style == "json":
        checks = [finding.as_dict() for finding in findings]
        click.echo(json.dumps({"ok": code == 0, "exit_code": code, "checks": checks}))
    sys.exit(code)


# --- the parts of a site --------------------------------------------------------------------------


@dataclass(frozen=True)
class OwnSite:
    """A node's certificate with the key, and its data sets with their open ledgers."""

    identity: Identity
    datasets: Sequence[Dataset]

    @property
    def config(self) -> NodeConfig:
        """The first data set's; name, place and certificate are those of all."""
        return self.datasets[0].config

    @property
    def place(self) -> str | HubAddress:
        """The hub that the node dials, or the address where it listens."""
        return self.config.hub or self.config.listen

    def service(self, ending: contextlib.ExitStack) -> Service:
        """Return the calls to this node, which computes where its file says.

        Args: ending: closes the node before its ledgers.
        """
        from umpc.node.server import ALLOWED, NodeServer
        from umpc.transport.tls import rpc

        def add(server: Server, finished: Finished) -> None:
            workers = self.config.place.open(self.config.identity)
            if workers is not None:
                ending.callback(workers.close)
            node = NodeServer(self.datasets, self.identity, finished, workers)
            ending.callback(node.close)
            rpc.add_NodeServicer_to_server(node, server)  # type: ignore[no-untyped-call]

        return Service(self.identity, self.place, ALLOWED, add, self._door())

    def _door(self) -> PublicDoor | None:
        """The door where people call, if this node is an aggregator."""
        for dataset in self.datasets:
            store, place = dataset.people, dataset.config.people
            if store is not None and place is not None:
                from umpc.transport.people_door import Behind, PublicDoor

                behind = Behind(submit=store.submit, counted=store.counted, sweep=store.sweep)
                return PublicDoor(self.identity, behind, place.listen, place.most)
        return None


def own_identity(config: NodeConfig) -> Identity:
    """Return the certificate and key of a node, which must be of its name.

    Raises: CertificateError.
    """
    from umpc.transport.identity import load_identity

    identity = load_identity(config.identity, "node")
    if identity.name != config.name:
        raise CertificateError(
            f"{config.file} names this node {config.name!r}, but its certificate in "
            f"{config.identity} is for {identity.name!r}; make both names equal"
        )
    return identity


def open_site(
    configs: Sequence[NodeConfig], identity: Identity, ending: contextlib.ExitStack
) -> OwnSite:
    """Open the ledgers of a node's data sets, and tell the log their budgets.

    Args: ending: closes the ledgers. Raises: LedgerError, AuditError, ApprovalError.
    """
    from umpc.node.datasets import open_dataset, open_ledger, open_people
    from umpc.transport.identity import credentials_of

    datasets = []
    for each in configs:
        ledger = ending.enter_context(open_ledger(each))
        balance = ledger.balance()
        log.info(
            "budget of data set %r: %s in all, %s spent, %s left (%s)",
            each.dataset,
            balance.total,
            balance.spent,
            balance.left,
            each.ledger,
        )
        people = open_people(each, lambda: credentials_of(identity))
        datasets.append(open_dataset(each, ledger, people))
    return OwnSite(identity, datasets)


def configurations(folder: Path) -> list[tuple[NodeConfig, ...]]:
    """Read the data sets of every node of a folder: one node for each .toml file, by its name.

    Raises: ConfigError, also where two files name one node, or no file is there.
    """
    from umpc.node.config import load_datasets

    files = sorted(folder.glob("*.toml"))
    if not files:
        raise ConfigError(
            f"{folder}: a folder with a .toml file for each node was expected, and it has none. "
            "Write the files as `umpc node template` shows, or correct the path"
        )
    found: dict[str, tuple[NodeConfig, ...]] = {}
    for file in files:
        configs = load_datasets(file)
        name = configs[0].name
        other = found.setdefault(name, configs)
        if other is not configs:
            raise ConfigError(
                f"{file}: the name {name!r} is also that of {other[0].file}. Give each node a "
                "name of its own, which is that of its certificate"
            )
    return list(found.values())


# --- backup and restore ---------------------------------------------------------------------------


AMOUNT = r"[0-9]{1,30}(\.[0-9]{1,30})?([eE]-?[0-9]{1,2})?|[0-9]{1,30}/0*[1-9][0-9]{0,29}"
ALL = "all"


@node.command()
@of_dataset
@click.option("--to", "target", type=FILE, required=True, help="The new file to write.")
@click.option("--keys", is_flag=True, help="Also the node's secret key and the ledger's key.")
def backup(config: NodeConfig, target: Path, keys: bool) -> None:
    """Write the site's files into one archive, also while the node runs.

    A site with several data sets makes one archive for each.

    It has the ledger, the audit trail, the approvals, node.toml and the certificates. It lacks the
    table, and without --keys the secret keys: key.pem, and the .key file beside the ledger. Keep
    those elsewhere, once. An archive has what the site released, and with --keys its identity, so
    keep it as you keep the table.

    The anchor is not in it. Keep that on another disk: a restore without it cannot know what was
    charged after the backup.

    \b
    umpc node backup --config node.toml --to /mnt/other/north-2026-03-01.tar
    """
    from umpc.node.backup.archive import back_up

    manifest = back_up(config, target, keys=keys)
    secret = "with the secret keys" if keys else "without secret keys"
    names = ", ".join(sorted(manifest.files))
    click.echo(f"backed up: {target}, {secret}: {names}")
    click.echo(f"row {manifest.row}, hash {manifest.hash}")
    if place := config.people or config.linked:
        click.echo(
            f"not in it: {place.folder}. Do not copy it: a former copy would take a second message "
            "of a person, or make a second list. If it is lost, its studies need a new name"
        )


@node.command()
@click.argument("archive", type=FILE)
@CONFIG
@click.option(
    "--charged-since",
    "epsilon",
    metavar="EPSILON|all",
    help="The sum of epsilon that was charged after the backup; with all, whatever was left counts "
    "as spent.",
)
@click.option(
    "--delta-since",
    "delta",
    metavar="DELTA",
    default="0",
    show_default=True,
    help="The sum of delta that was charged after the backup.",
)
def restore(archive: Path, config: Path, epsilon: str | None, delta: str) -> None:
    """Put a site's files back from a backup. Stop the node first, also on the old machine.

    A file that is at its place is kept. The command refuses a place with a ledger, an archive that
    was changed, and an anchor or audit trail of another history.

    If the last anchor is at its place and stands at the backup's last row, nothing was charged
    since. In any other case say what was charged, with --charged-since and --delta-since. The
    command names what the audit trail shows, and accepts no less. If you do not know, say all. A
    study of the backup is then still repeated at no cost, and a new one needs a larger epsilon
    under [budget].

    \b
    umpc node restore north-2026-03-01.tar --config node.toml
    umpc node restore north-2026-03-01.tar --config node.toml --charged-since 3/2
    umpc node restore north-2026-03-01.tar --config node.toml --charged-since all
    """
    from umpc.node.backup.restoring import restore as put_back

    done = put_back(archive, config, _statement(epsilon, delta))
    for path in done.written:
        click.echo(f"written: {path}")
    click.echo(f"known: {done.known}")
    click.echo(f"restored: {done.ledger}, {done.head}")
    click.echo(f"counts as charged since: epsilon {done.cost.epsilon}, delta {done.cost.delta}")
    if done.own_delta:
        click.echo(
            f"of this delta, {done.own_delta} is the lost studies' composition_delta: the delta "
            "spent is above the total by it, so raise delta under [budget] by so much more"
        )
    for path in done.absent:
        click.echo(f"missing: {path}; put it there before the node starts")
    click.echo(
        "Check [policy] in node.toml, and repeat each rejection since the backup: accepted studies "
        "wait for a person again. Then run `umpc node doctor`"
    )


def _statement(epsilon: str | None, delta: str) -> Statement | None:
    """Return the administrator's statement, or None. Raises: click.BadParameter."""
    from umpc.node.backup.restoring import Statement

    if epsilon is None:
        return None
    if epsilon == ALL:
        return Statement(all_left=True)
    for option, text in (("--charged-since", epsilon), ("--delta-since", delta)):
        if not re.fullmatch(AMOUNT, text):
            raise click.BadParameter(
                f"a number of 0 or more was expected, like 0.5 or 3/2, and {text!r} came",
                param_hint=option,
            )
    return Statement(Fraction(epsilon), Fraction(delta))
