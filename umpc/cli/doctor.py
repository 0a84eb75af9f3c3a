"""`umpc node doctor`: check everything that a node needs before a study, one line a check.

First come the site's own files: table, disk, ledger, identity. The checks change nothing, and they
work while the node runs.

Then come the checks of `umpc node doctor` over the network: the own address, and each peer.
"""

from __future__ import annotations

import asyncio
import os
import platform
import re
import resource
import shutil
import stat
from collections.abc import Awaitable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import combinations
from pathlib import Path

import click

from umpc import __version__
from umpc.cli.audit import verified_head
from umpc.cli.budget import balance_text, read_verified
from umpc.cli.doctor_findings import (
    Finding,
    attempt,
    check_columns,
    check_known,
    check_people,
    check_policy,
    fields_of,
    neutral,
)
from umpc.cli.hub import status_lines
from umpc.cli.shared import has_ledger, place_of
from umpc.cli.status import dates_text, list_text
from umpc.errors import (
    AddressInUse,
    CertificateError,
    ConfigError,
    DataError,
    EmptyTable,
    InsufficientBudget,
    LedgerError,
    UmpcError,
    UnknownField,
)
from umpc.native import CHOSEN, status
from umpc.node.audit.trail import AuditTrail
from umpc.node.config import NAME, NodeConfig, changed_since_start, load_datasets
from umpc.node.table.source import TableSite, is_same_database, shared_content
from umpc.node.table.survey import survey_table
from umpc.protocol_version import PROTOCOL
from umpc.transport.addresses import (
    HubAddress,
    is_behind_hub,
    refuse_if_taken,
    shown_certificate,
    split_address,
)
from umpc.transport.certificates import clock, verify_certificate
from umpc.transport.diagnose import find_fault
from umpc.transport.files import check_private
from umpc.transport.greeting import greet_or_fail
from umpc.transport.hub.connection import ask_status
from umpc.transport.identity import Identity, due, load_identity

LEAST_FREE = 400_000_000
"""Bytes that should be free where the ledger is.

By default four studies may wait that were prepared ahead, and each may have 100 MB of material.
"""


FEW_FILES = 4096
"""A hard limit of open files below this is told."""


def examine(config: Path, peers: Sequence[NamedPeer]) -> Iterator[Finding]:
    """Yield the findings of all checks. Without a configuration only the versions are known."""
    yield from check_version()
    yield from check_open_files()
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
        yield from _examine_dataset(each)
    yield from attempt("data sets", check_datasets, found)
    identity = None
    try:
        identity = load_identity(node.identity, "node")
    except UmpcError as error:
        yield Finding("certificate", error=error)
    else:
        yield from attempt("certificate", check_identity, node, identity)
    yield from asyncio.run(check_network(node.hub or node.listen, identity, peers))
    for place in (each.people for each in found if each.people is not None):
        looking = _check_listen(place.listen, identity, "people's door")
        yield from asyncio.run(_tried("people's door", looking))


def _examine_dataset(node: NodeConfig) -> Iterator[Finding]:
    """Yield the findings about one data set of the site."""
    yield from attempt("policy", check_policy, node.policy)
    if node.people is not None:
        yield from attempt("people", check_shares, "people", node.people.folder)
    else:
        yield from attempt("table", check_table, node)
        yield from attempt("study", check_known, node)
    if node.linked is not None:
        yield from attempt("linked rows", check_shares, "linked rows", node.linked.folder)
    yield from attempt("disk", check_disk, node)
    ledger = list(attempt("ledger", check_ledger, node))
    yield from ledger
    if not any(isinstance(finding.error, LedgerError) for finding in ledger):
        yield from attempt("audit trail", check_audit, node)


def check_version() -> Iterator[Finding]:
    """Show the versions, and whether the compiled gate is used."""
    versions = f"umpc {__version__}, protocol {PROTOCOL}, Python {platform.python_version()}"
    yield Finding("version", versions)
    if CHOSEN is None:
        yield neutral("native gate", f"not in use, so garbled pairs take longer: {status()}")
    else:
        yield Finding("native gate", status())


def check_open_files() -> Iterator[Finding]:
    """Say how many files a process of this user may open, where that is few for a server."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most == resource.RLIM_INFINITY or most >= FEW_FILES:
        yield Finding("open files", "as many as a node needs")
        return
    yield neutral(
        "open files",
        f"at most {most}, of which each connection takes one, also a stranger's until its "
        f"handshake fails: {most} of them keep studies out for 30 s. Raise the hard limit to "
        f"{FEW_FILES} or more (LimitNOFILE= of a unit, or ulimit -Hn)",
    )


def check_table(config: NodeConfig) -> Iterator[Finding]:
    """Read the whole table, and look at the columns that a study may use."""
    site = TableSite(config.name, config.source.path)
    survey = survey_table(config.source, fields_of(config), site)
    path, rows = config.source.path, survey.rows
    if not rows:
        raise EmptyTable(f"{path} has a header and no rows. Put the records into the file")
    if rows < config.policy.min_records:
        raise DataError(
            f"{path} has {rows} rows, and min_records under [policy] asks for "
            f"{config.policy.min_records}, so every study is refused. Add records, or lower "
            "min_records"
        )
    shown = f"{path}: {rows} rows and {len(survey.columns)} columns (only this command tells you)"
    yield Finding("table", shown)
    yield from check_columns(config, survey)
    yield from check_people(config.policy, survey.columns)
    if config.linked and config.linked.key not in survey.columns:
        raise UnknownField(
            f"[linked] has key = {config.linked.key!r}, and the table has no such column. Correct "
            "key, or rename the column"
        )


def check_shares(check: str, folder: Path) -> Iterator[Finding]:
    """Check that the folder of a site's shares is of this user alone, and has room.

    Args: check: whose shares are in it.
    """
    if not folder.exists():
        yield neutral(check, f"{folder}: the node makes it at its first start")
        return
    mode = stat.S_IMODE(folder.stat().st_mode)
    if mode & 0o077 or not os.access(folder, os.W_OK | os.X_OK):
        raise ConfigError(
            f"{folder} has secrets of studies, and mode {mode:03o}; a folder of this user alone "
            "was expected. Correct it with `chown` and `chmod 700`"
        )
    free = _megabytes(shutil.disk_usage(folder).free)
    yield Finding(check, f"{folder}: {len([*folder.glob('*.dealt')])} studies with keys, {free}")


def check_datasets(found: Sequence[NodeConfig]) -> Iterator[Finding]:
    """Look for records that several data sets have: their budgets would add up.

    A shared file or query is refused before; here are copies, and other queries of one database.
    """
    copies = [*shared_content([each.source for each in found])]
    for one, other in ((found[place], found[another]) for place, another in copies):
        yield Finding(
            "data sets",
            error=ConfigError(
                f"the data sets {one.dataset!r} and {other.dataset!r} have equal tables, "
                f"{one.source.path} and {other.source.path}: each record has two budgets. Keep "
                "one of the two"
            ),
        )
    for one, other in combinations(found, 2):
        if is_same_database(one.source, other.source):
            yield neutral(
                "data sets",
                f"{one.dataset!r} and {other.dataset!r} are queries of one database: a record "
                "that both return has two budgets",
            )
    if len(found) > 1 and not copies:
        yield Finding("data sets", f"{len(found)}, no two of one table")


def check_disk(config: NodeConfig) -> Iterator[Finding]:
    """Check that the folders of ledger and anchor can be written to and have room."""
    place = place_of(config)
    for folder in dict.fromkeys([place.ledger.parent, place.anchor.parent]):
        free = shutil.disk_usage(folder).free
        if not os.access(folder, os.W_OK | os.X_OK):
            error = LedgerError(
                f"this user may not write to {folder}, where the ledger or its anchor is. Run the "
                "command as the node's user, or correct owner and mode"
            )
            yield Finding("disk", error=error)
        elif free < LEAST_FREE:
            error = LedgerError(
                f"{folder} has {_megabytes(free)} free, and {_megabytes(LEAST_FREE)} were "
                "expected for the ledger and for prepared studies. Make room on this disk"
            )
            yield Finding("disk", error=error)
        else:
            yield Finding("disk", f"{folder}: {_megabytes(free)} free")


def _megabytes(count: int) -> str:
    return f"{count // 1_000_000} MB"


def check_ledger(config: NodeConfig) -> Iterator[Finding]:
    """Verify the ledger and its anchor as `umpc budget verify`, and show what is left."""
    place = place_of(config)
    if not place.ledger.exists():
        if place.anchor.exists():
            raise LedgerError(
                f"ledger {place.ledger}: a file was expected, because its anchor {place.anchor} "
                "exists. Put the ledger back from its backup"
            )
        text = f"{place.ledger}: the node makes it at its first start, with {config.epsilon} in all"
        yield neutral("ledger", text)
        return
    snapshot = read_verified(config, place)
    account = snapshot.account
    if account.dataset != config.dataset:
        raise place.of_other_data(config.dataset, account.dataset)
    yield Finding("ledger", f"{place.ledger}: verified with its anchor, {snapshot.head}")
    yield from _private(place.key)
    is_used_up = not snapshot.prepared and not account.largest_epsilon()
    left = f"epsilon {balance_text(account.epsilon())}, delta {balance_text(account.delta())}"
    if snapshot.prepared:
        left += f"; reserved for studies prepared ahead: {len(snapshot.prepared)}"
    if stale := changed_since_start(config):
        yield Finding("restart", error=ConfigError(stale))
    if account.total.epsilon != config.epsilon:
        left += f"; {config.file.name} gives epsilon {config.epsilon} from the next start on"
    elif is_used_up:
        yield Finding(
            "budget",
            error=InsufficientBudget(
                f"{left}: every study is refused. Raise epsilon under [budget], if your rules "
                "allow that, or wait until a reservation ends"
            ),
        )
        return
    yield Finding("budget", left)


def check_audit(config: NodeConfig) -> Iterator[Finding]:
    """Verify the audit trail as `umpc audit verify`, with every charge of the ledger."""
    trail = AuditTrail(config.ledger)
    if not trail.path.exists() and not has_ledger(config):
        yield neutral("audit trail", f"{trail.path}: the node makes it at its first start")
        return
    head = verified_head(config, trail)
    yield Finding("audit trail", f"{trail.path}: verified with every charge, {head}")


def check_identity(config: NodeConfig, identity: Identity) -> Iterator[Finding]:
    """Check the certificate's name and dates, the key's mode, and the list of revoked ones."""
    cert = identity.certificate
    if identity.name == config.name:
        yield Finding("certificate", f"node {identity.name!r}, {dates_text(cert)}")
    else:
        yield Finding(
            "certificate",
            error=CertificateError(
                f"the certificate is for {identity.name!r}, and {config.file} is for "
                f"{config.name!r}. Make both names equal"
            ),
        )
    for sentence in due(identity):
        yield Finding("dates", error=CertificateError(sentence))
    yield from _private(config.identity / "key.pem")
    if identity.revoked is None:
        text = "there is none; if the authority has one, put its crl.pem beside cert.pem"
        yield neutral("revoked", text)
    else:
        days = (datetime.now(UTC) - identity.revoked.made).days
        text = f"{list_text(identity.revoked)}; {days} days old, and this node is not on it"
        yield Finding("revoked", text)


def _private(path: Path) -> Iterator[Finding]:
    """Yield whether a secret file is as private as a process asks for."""
    mode = path.stat().st_mode & 0o777
    try:
        check_private(path)
    except CertificateError:
        yield Finding(
            "key",
            error=CertificateError(
                f"{path} has mode {mode:03o}, and other users may use it: run `chmod 600 {path}`"
            ),
        )
    else:
        readers = "root and this process's group" if mode & 0o077 else "its owner"
        yield Finding("key", f"{path}: mode {mode:03o}, for {readers} only")


# --- network --------------------------------------------------------------------------------------


LOOK_SECONDS = 3
EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}
"""An address that means all of this machine, and one of these addresses."""
PEER = re.compile(rf"((?P<role>node|dealer|shuffler):)?(?P<name>{NAME})=(?P<address>.+)")


@dataclass(frozen=True)
class NamedPeer:
    """Another process that this node should reach."""

    role: str
    name: str
    address: str


def parse_peer(text: str) -> NamedPeer:
    """Read the text of one --peer. Raises: click.BadParameter."""
    found = PEER.fullmatch(text)
    if found is None:
        raise click.BadParameter(
            f"{text!r}: NAME=HOST:PORT was expected, or dealer:NAME=HOST:PORT", param_hint="--peer"
        )
    return NamedPeer(found["role"] or "node", found["name"], found["address"])


async def check_network(
    place: str | HubAddress, identity: Identity | None, peers: Sequence[NamedPeer]
) -> list[Finding]:
    """Check the address to listen on, or the hub to dial, and all peers, at the same time.

    Args: identity: None if it is unusable. No peer is then called.
    """
    if isinstance(place, str):
        own = _tried("listen", _check_listen(place, identity))
    else:
        own = _tried("hub", _check_hub(place, identity))
    if not peers:
        told = neutral("peers", "none was named; add --peer NAME=HOST:PORT for each")
        return [*await own, told]
    if identity is None:
        skipped = neutral("peers", "not called: correct this node's certificate first")
        return [*await own, skipped]
    found = await asyncio.gather(
        own, *(_tried("peer", _check_peer(identity, peer)) for peer in peers)
    )
    now = f"the protocol tells no peer's time, so compare it yourself: {clock():%F %T} UTC here"
    return [finding for part in found for finding in part] + [neutral("clock", now)]


async def _tried(check: str, part: Awaitable[list[Finding]]) -> list[Finding]:
    try:
        return await part
    except UmpcError as error:
        return [Finding(check, error=error)]


async def _check_listen(
    listen: str, identity: Identity | None, check: str = "listen"
) -> list[Finding]:
    """Check that the address can be bound, or that this very node listens there."""
    host, port = split_address(listen)
    try:
        await asyncio.to_thread(refuse_if_taken, host, port, listen)
    except AddressInUse:
        shown_at = f"{EVERYWHERE.get(host, listen.rpartition(':')[0])}:{port}"
        if identity is None:
            return [neutral(check, f"{listen} is in use, maybe by this node")]
        if await _is_own(shown_at, identity):
            return [Finding(check, f"{listen}: this node runs and listens there")]
        raise
    if not port:
        return [neutral(check, f"{listen} takes any free port; peers need a fixed one")]
    return [Finding(check, f"{listen} is free")]


async def _check_hub(hub: HubAddress, identity: Identity | None) -> list[Finding]:
    """Check name, TCP and TLS of the hub, and ask whether this node is connected to it."""
    if identity is None:
        return [neutral("hub", "not called: correct this node's certificate first")]
    parts = (identity, hub.name, "hub", hub.address, LOOK_SECONDS)
    if fault := await asyncio.to_thread(find_fault, *parts):
        raise fault
    reply = await ask_status(identity, hub, LOOK_SECONDS)
    own = identity.role, identity.name
    here = any((each.role, each.name) == own and each.listens for each in reply.seats)
    runs = "this node runs and is connected" if here else "it answers; this node is not connected"
    return [Finding("hub", f"{hub}: {runs}"), neutral("hub status", next(status_lines(reply)))]


async def _is_own(address: str, identity: Identity) -> bool:
    """Return whether the server at an address shows a certificate of our own name and role."""
    shown = await shown_certificate(address, LOOK_SECONDS)
    if shown is None:
        return False
    try:
        found = verify_certificate(shown, identity.ca_pem, now=clock())
    except CertificateError:
        return False
    return found == (identity.name, identity.role)


async def _check_peer(identity: Identity, peer: NamedPeer) -> list[Finding]:
    """Check name, TCP and TLS of a peer, one after the other, and then its version."""
    parts = (identity, peer.name, peer.role, peer.address, LOOK_SECONDS)
    who = f"{peer.role} {peer.name!r} at {peer.address}"
    if is_behind_hub(peer.address):
        answer = await greet_or_fail(identity, peer.role, peer.name, peer.address)
        if isinstance(answer, UmpcError):
            raise answer
        return [Finding("peer", f"{who}: umpc {answer}")]
    if fault := await asyncio.to_thread(find_fault, *parts):
        raise fault
    reached = f"{who}: name, TCP and TLS work, and each side accepts the other's certificate"
    answer = await greet_or_fail(identity, peer.role, peer.name, peer.address)
    if isinstance(answer, UmpcError):
        return [Finding("peer", reached), Finding("peer version", error=answer)]
    return [Finding("peer", reached), Finding("peer version", f"{who}: protocol {answer}")]
