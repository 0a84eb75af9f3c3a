"""The one file of a backup: a tar archive with a manifest, a seal, and a site's files.

The manifest has the SHA-256 of each file and the ledger's last row. The seal is an HMAC over the
manifest with a key that derives from the ledger's key, so without that key nobody can change a
file. An archive with the secret keys can be changed by its holder. Nobody else can read it.

*Making.* A site's backup is made while its node runs or stands.

The ledger is copied in one snapshot, then verified with its chain and its anchor. The trail is
copied after the ledger, so that it may show charges that the copy lacks. The Store goes along, but
for what is not for ever (`store.py`): a held attempt is a share that has not left the site. The
anchor is left out too. An anchor from a backup would prove nothing about the time after it.
"""

from __future__ import annotations

import hmac
import io
import json
import os
import shutil
import tarfile
import tempfile
from collections.abc import Mapping
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import IO

from umpc.errors import LedgerError
from umpc.node.approvals import approvals_beside
from umpc.node.audit.reading import verify
from umpc.node.audit.trail import key_of, trail_beside
from umpc.node.budget import ledgerfile
from umpc.node.budget.ledger_place import (
    Place,
    connect,
    copy_database,
    copy_lines,
    disagreement,
    system_refuses,
    utc_text,
)
from umpc.node.budget.store import forget_passing
from umpc.node.config import NodeConfig
from umpc.protocol_version import PROTOCOL
from umpc.transport.files import digest_of, fsync_folder

FORMAT = "umpc backup 1"
MANIFEST, SEAL = "manifest.json", "manifest.seal"
CONFIG, LEDGER, TRAIL, APPROVALS = "node.toml", "ledger.sqlite", "ledger.audit", "approvals.sqlite"
PUBLIC = ("ca.pem", "cert.pem", "crl.pem")
"""Files of the identity that are no secret."""
KEY, LEDGER_KEY = "key.pem", "ledger.key"
FIELD_SETS = "ledger.fieldsets"
"""Only in archives of former versions; the ledger's next start moves it into the Store."""
MEMBERS = (CONFIG, LEDGER, TRAIL, APPROVALS, FIELD_SETS, *PUBLIC, KEY, LEDGER_KEY)
MOST_MANIFEST = 1 << 16


@dataclass(frozen=True)
class Manifest:
    """The facts of a backup.

    made: the time in UTC. protocol: its version. row, hash: the place of the ledger's last row.
    trail: the place of the audit trail's last row, "NUMBER HASH", or "". files: SHA-256 by name.
    """

    made: str
    protocol: str
    node: str
    dataset: str
    row: int
    hash: str
    trail: str
    files: dict[str, str] = field(default_factory=dict)
    format: str = FORMAT

    def encode(self) -> bytes:
        """Return the bytes that are sealed."""
        return json.dumps(asdict(self), sort_keys=True).encode()


def write_archive(path: Path, manifest: Manifest, files: Mapping[str, Path], key: bytes) -> None:
    """Write a new archive that only its owner can read; it is on disk and whole, or absent.

    Args: files: member → the file's path. key: the ledger's key.
    Raises: LedgerError if the path exists. OSError.
    """
    if path.exists():
        raise LedgerError(f"backup {path}: a new file was expected, and it exists. Give another")
    draft = path.with_name(f".{path.name}.{os.getpid()}.draft")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            with tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as tar:
                content = manifest.encode()
                _add(tar, MANIFEST, io.BytesIO(content), len(content))
                seal = seal_of(key, content)
                _add(tar, SEAL, io.BytesIO(seal), len(seal))
                for name, source in files.items():
                    with source.open("rb") as opened:
                        _add(tar, name, opened, source.stat().st_size)
            file.flush()
            os.fsync(file.fileno())
        os.link(draft, path)  # unlike a renaming, this never replaces a file
    except FileExistsError:
        raise LedgerError(f"backup {path}: a new file was expected, and it exists") from None
    finally:
        draft.unlink(missing_ok=True)
    fsync_folder(path.parent)


def _add(tar: tarfile.TarFile, name: str, source: IO[bytes], size: int) -> None:
    member = tarfile.TarInfo(name)
    member.size, member.mode = size, 0o600
    tar.addfile(member, source)


def unpack(path: Path, folder: Path) -> tuple[Manifest, bytes]:
    """Copy the archive's files into an empty folder, each with its SHA-256 checked.

    Returns: the manifest, and the seal, which `check_seal` compares once the key is known.
    Raises: LedgerError if anything in it is not as a backup has it.
    """
    try:
        with tarfile.open(path, "r:") as tar:
            found = {member.name: member for member in _members(tar, path)}
            manifest, seal = _read_manifest(tar, found, path)
            for name, digest in manifest.files.items():
                if _extract(tar, found[name], folder / name) != digest:
                    raise damaged(path, f"{name} is not the file that was backed up")
    except (tarfile.TarError, EOFError) as error:
        raise damaged(path, f"it is no whole archive ({error})") from None
    except OSError as error:
        raise LedgerError(
            f"backup {path}: a readable file and room for its copy were expected "
            f"({error.strerror}). Check the path, the mode and the disk"
        ) from None
    return manifest, seal


def check_seal(path: Path, manifest: Manifest, seal: bytes, key: bytes) -> None:
    """Check that the ledger's key made this archive. Raises: LedgerError."""
    if not hmac.compare_digest(seal, seal_of(key, manifest.encode())):
        raise damaged(
            path, "its seal is wrong: the manifest was changed, or the ledger's key is another one"
        )


def _members(tar: tarfile.TarFile, path: Path) -> list[tarfile.TarInfo]:
    members = tar.getmembers()
    names = [member.name for member in members]
    if len(set(names)) < len(names) or not set(names) <= {MANIFEST, SEAL, *MEMBERS}:
        raise damaged(path, "it has a member that no backup has, or one twice")
    if not all(member.isreg() and member.sparse is None for member in members):
        raise damaged(path, "it has a member that is no plain file")
    return members


def _read_manifest(
    tar: tarfile.TarFile, found: Mapping[str, tarfile.TarInfo], path: Path
) -> tuple[Manifest, bytes]:
    content, seal = (_small(tar, found.get(name)) for name in (MANIFEST, SEAL))
    try:
        manifest = Manifest(**json.loads(content))
    except (ValueError, TypeError):
        raise damaged(path, "its manifest is no manifest") from None
    if manifest.format != FORMAT or manifest.encode() != content:
        raise damaged(path, f"{FORMAT!r} was expected, and its manifest says otherwise")
    listed = {*manifest.files, MANIFEST, SEAL}
    if listed != found.keys() or not {CONFIG, LEDGER} <= listed:
        raise damaged(path, "its members are not those of its manifest")
    return manifest, seal


def _small(tar: tarfile.TarFile, member: tarfile.TarInfo | None) -> bytes:
    opened = tar.extractfile(member) if member and member.size <= MOST_MANIFEST else None
    return opened.read() if opened else b""


def _extract(tar: tarfile.TarFile, member: tarfile.TarInfo, target: Path) -> str:
    """Copy one member into a new file, and return its SHA-256."""
    opened = tar.extractfile(member)
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        if opened:
            shutil.copyfileobj(opened, file)
    return digest_of(target)


def seal_of(key: bytes, content: bytes) -> bytes:
    own = hmac.digest(key, FORMAT.encode(), "sha256")
    return hmac.digest(own, content, "sha256").hex().encode()


def damaged(path: Path, reason: str) -> LedgerError:
    """Return the error for an archive that is not as its node made it."""
    return LedgerError(
        f"backup {path}: {reason}. Nothing was restored. Fetch the archive again, or take another"
    )


# --- making ---------------------------------------------------------------------------------------


def back_up(config: NodeConfig, target: Path, *, keys: bool = False) -> Manifest:
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
        key = ledgerfile.existing_key(place)
        content = _copy_ledger(place, folder / LEDGER)
        files = {LEDGER: folder / LEDGER}
        trail = ""
        if trail_beside(place.ledger).exists():
            files[TRAIL] = folder / TRAIL
            copy_lines(trail_beside(place.ledger), files[TRAIL])
            trail = str(verify(files[TRAIL], key_of(key)).head)
        if approvals_beside(place.ledger).exists():
            files[APPROVALS] = folder / APPROVALS
            copy_database(approvals_beside(place.ledger), files[APPROVALS])
        for name, path in _plain_files(config, place, keys).items():
            files[name] = folder / name
            files[name].write_bytes(path.read_bytes())
        manifest = Manifest(
            made=utc_text(),
            protocol=PROTOCOL,
            node=config.name,
            dataset=content.account.dataset,
            row=content.head.seq,
            hash=content.head.hash.hex(),
            trail=trail,
        )
        manifest = replace(manifest, files={name: digest_of(each) for name, each in files.items()})
        write_archive(target, manifest, files, key)
    return manifest


def _plain_files(config: NodeConfig, place: Place, keys: bool) -> dict[str, Path]:
    """Return the files that are copied as they are."""
    found = {name: config.identity / name for name in PUBLIC}
    files = {name: path for name, path in found.items() if path.exists()}
    files[CONFIG] = config.file
    if keys:
        files[KEY] = config.identity / KEY
        files[LEDGER_KEY] = place.key
    return files


def _copy_ledger(place: Place, target: Path) -> ledgerfile.Content:
    """Copy the ledger at one time with its anchor, and verify the copy. Raises: LedgerError."""

    def copy() -> None:
        target.unlink(missing_ok=True)
        copy_database(place.ledger, target, forget_passing)

    _, mark = ledgerfile.with_anchor(place, copy)
    with closing(connect(target)) as db:
        ledgerfile.check_version(db, place)
        content = ledgerfile.replay(db, place, ledgerfile.existing_key(place))
    if reason := disagreement(mark, content.hashes):
        raise place.astray(reason)
    return content
