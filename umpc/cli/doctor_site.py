"""The checks of `umpc node doctor` that read the site's own files: table, disk, ledger, identity.

They change nothing, and they work while the node runs.
"""

from __future__ import annotations

import os
import platform
import resource
import shutil
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import combinations
from pathlib import Path

from umpc import __version__
from umpc.cli.amounts import balance_text
from umpc.cli.audit import verified_head
from umpc.cli.budget import read_verified
from umpc.cli.dataset_option import has_ledger
from umpc.cli.doctor_columns import check_columns, fields_of
from umpc.cli.doctor_finding import Finding, neutral
from umpc.cli.doctor_policy import check_people
from umpc.cli.status import dates_text, list_text
from umpc.errors import (
    CertificateError,
    ConfigError,
    DataError,
    EmptyTable,
    InsufficientBudget,
    LedgerError,
)
from umpc.node.audit.trail import AuditTrail
from umpc.node.budget.ledger_place import Place
from umpc.node.config import NodeConfig, changed_since_start
from umpc.node.dataset_files import is_same_database, shared_content
from umpc.node.table.source import TableSite
from umpc.node.table.survey import survey_table
from umpc.protocol_version import PROTOCOL
from umpc.transport.files import check_private
from umpc.transport.identity import Identity, due

LEAST_FREE = 400_000_000
"""Bytes that should be free where the ledger is.

By default four studies may wait that were prepared ahead, and each may have 100 MB of material.
"""


FEW_FILES = 4096
"""A hard limit of open files below this is told."""


def check_version() -> Iterator[Finding]:
    """Show the versions, and whether the compiled sign gate is used."""
    from umpc.native import CHOSEN, status

    versions = f"umpc {__version__}, protocol {PROTOCOL}, Python {platform.python_version()}"
    yield Finding("version", versions)
    if CHOSEN is None:
        yield neutral("native gate", f"not in use, so comparisons take longer: {status()}")
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


def check_datasets(found: Sequence[NodeConfig]) -> Iterator[Finding]:
    """Look for records that several data sets have: their budgets would add up.

    A shared file or query is refused before; here are copies, and other queries of one database.
    """
    copies = [*shared_content([each.source for each in found])]
    for one, other in ((found[place], found[another]) for place, another in copies):
        error = ConfigError(
            f"the data sets {one.dataset!r} and {other.dataset!r} have equal tables, "
            f"{one.source.path} and {other.source.path}: each record has two budgets. Keep one of "
            "the two"
        )
        yield Finding("data sets", error=error)
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
    place = Place.of(config.ledger, config.anchor)
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
    place = Place.of(config.ledger, config.anchor)
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
        error = InsufficientBudget(
            f"{left}: every study is refused. Raise epsilon under [budget], if your rules allow "
            "that, or wait until a reservation ends"
        )
        yield Finding("budget", error=error)
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
        error = CertificateError(
            f"the certificate is for {identity.name!r}, and {config.file} is for "
            f"{config.name!r}. Make both names equal"
        )
        yield Finding("certificate", error=error)
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
        error = CertificateError(
            f"{path} has mode {mode:03o}, and other users may use it: run `chmod 600 {path}`"
        )
        yield Finding("key", error=error)
    else:
        readers = "root and this process's group" if mode & 0o077 else "its owner"
        yield Finding("key", f"{path}: mode {mode:03o}, for {readers} only")
