"""A site's backup is made while its node runs or stands.

The ledger is copied in one snapshot, then verified with its chain and its anchor. The trail is
copied after the ledger, so that it may show charges that the copy lacks. Held attempts are left
out: they are shares that have not left the site. The anchor is left out too. An anchor from a
backup would prove nothing about the time after it.
"""

from __future__ import annotations

import tempfile
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from umpc.errors import LedgerError
from umpc.node.approvals import approvals_beside
from umpc.node.audit.entry import key_of
from umpc.node.audit.reading import verify
from umpc.node.audit.trail import trail_beside
from umpc.node.backup import archive
from umpc.node.backup.copies import copy_database, copy_lines
from umpc.node.budget import held_attempts
from umpc.node.budget import ledger_reading as reading
from umpc.node.budget.anchor import disagreement
from umpc.node.budget.ledger_place import Place, connect, system_refuses, utc_text
from umpc.node.config import NodeConfig
from umpc.node.field_sets import field_sets_beside
from umpc.protocol_version import PROTOCOL
from umpc.transport.files import digest_of


def back_up(config: NodeConfig, target: Path, *, keys: bool = False) -> archive.Manifest:
    """Write one new archive of the site's files, which only its owner can read.

    Args: keys: also the node's secret key and the ledger's key.
    Raises: LedgerError, AuditError.
    """
    target = target.resolve()
    place = Place.of(config.ledger, config.anchor)
    if target.exists() or not target.parent.is_dir():
        raise LedgerError(
            f"backup {target}: a new file in an existing folder was expected. Give another path"
        )
    with (
        system_refuses(place),
        tempfile.TemporaryDirectory(dir=target.parent, prefix=".umpc-backup-") as drafts,
    ):
        folder = Path(drafts)
        key = reading.existing_key(place)
        content = _copy_ledger(place, folder / archive.LEDGER)
        files = {archive.LEDGER: folder / archive.LEDGER}
        trail = ""
        if trail_beside(place.ledger).exists():
            files[archive.TRAIL] = folder / archive.TRAIL
            copy_lines(trail_beside(place.ledger), files[archive.TRAIL])
            trail = str(verify(files[archive.TRAIL], key_of(key)).head)
        if approvals_beside(place.ledger).exists():
            files[archive.APPROVALS] = folder / archive.APPROVALS
            copy_database(approvals_beside(place.ledger), files[archive.APPROVALS])
        for name, path in _plain_files(config, place, keys).items():
            files[name] = folder / name
            files[name].write_bytes(path.read_bytes())
        manifest = archive.Manifest(
            made=utc_text(),
            protocol=PROTOCOL,
            node=config.name,
            dataset=content.account.dataset,
            row=content.head.seq,
            hash=content.head.hash.hex(),
            trail=trail,
        )
        manifest = replace(manifest, files={name: digest_of(each) for name, each in files.items()})
        archive.write_archive(target, manifest, files, key)
    return manifest


def _plain_files(config: NodeConfig, place: Place, keys: bool) -> dict[str, Path]:
    """Return the files that are copied as they are."""
    found = {name: config.identity / name for name in archive.PUBLIC}
    files = {name: path for name, path in found.items() if path.exists()}
    files[archive.CONFIG] = config.file
    if (asked := field_sets_beside(place.ledger)).exists():
        files[archive.FIELD_SETS] = asked
    if keys:
        files[archive.KEY] = config.identity / archive.KEY
        files[archive.LEDGER_KEY] = place.key
    return files


def _copy_ledger(place: Place, target: Path) -> reading.Content:
    """Copy the ledger at one time with its anchor, and verify the copy. Raises: LedgerError."""

    def copy() -> None:
        target.unlink(missing_ok=True)
        copy_database(place.ledger, target, *held_attempts.FORGET_ALL)

    _, mark = reading.with_anchor(place, copy)
    with closing(connect(target)) as db:
        reading.check_version(db, place)
        content = reading.replay(db, place, reading.existing_key(place))
    if reason := disagreement(mark, content.hashes):
        raise place.astray(reason)
    return content
