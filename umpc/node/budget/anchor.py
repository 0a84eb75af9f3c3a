"""The two small files that go with a ledger: its key, and the anchor that notices an older copy put back.

*Key*, `<ledger>.key`: 32 random bytes that only the node's user may read. Every row's hash is an HMAC with it, so
nobody without it can write rows that verify.

*Anchor*: one line with the number and the hash of the ledger's last row, best kept on another disk. It is replaced
and fsynced after every row, so the ledger is where the anchor is, or, after a crash between the two, one row ahead;
never behind. It holds no secret, and without the key nobody can forge a row that it would vouch for.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from umpc.errors import LedgerError
from umpc.node.budget.budget_account import FIRST_HASH

KEY_BYTES = 32
LINE = r"umpc anchor 1: row (0|[1-9][0-9]{0,18}), hash ([0-9a-f]{64})\n"
ACCEPT = "`umpc budget anchor --config node.toml --accept`"


@dataclass(frozen=True)
class Mark:
    """A place in the ledger: how many rows there are, and the last one's hash."""

    seq: int
    hash: bytes

    def __str__(self) -> str:
        return f"row {self.seq}, hash {self.hash.hex()}"


START = Mark(0, FIRST_HASH)
"""Before the first row: the anchor stands here while a new ledger is made."""


def read_anchor(path: Path) -> Mark | None:
    """Where the anchor stands; None where there is no such file. Raises: LedgerError where it is no anchor."""
    try:
        text = path.read_bytes().decode("ascii", "replace")
    except FileNotFoundError:
        return None
    found = re.fullmatch(LINE, text)
    if not found:
        raise LedgerError(
            f"anchor {path}: one line with a row and its hash was expected, and something else is there. Correct "
            "anchor under [budget], or put the file back; or, once you are sure that the ledger is the latest, remove "
            f"it and run {ACCEPT}"
        )
    return Mark(int(found[1]), bytes.fromhex(found[2]))


def write_anchor(path: Path, mark: Mark, on_the_way: Callable[[], None] = lambda: None) -> None:
    """Moves the anchor; on disk when this returns, and whole at every instant."""
    write_durably(path, f"umpc anchor 1: {mark}\n".encode(), on_the_way)


def disagreement(mark: Mark | None, hashes: Sequence[bytes]) -> str:
    """Why a ledger with these hashes, from FIRST_HASH on, does not go with the anchor; or nothing."""
    last = len(hashes) - 1
    if mark is None:
        return (
            "was expected, and there is no such file. If its disk is not mounted, mount it. If it is lost, make sure "
            f"that the ledger is the latest, and not an older copy; then run {ACCEPT}"
        )
    if mark.seq > last:
        return (
            f"saw row {mark.seq} of the ledger, which ends at row {last}: an older copy was put back, and "
            f"{mark.seq - last} row(s) are missing. Put the latest back; if it is lost for good, lower epsilon and "
            f"delta under [budget] by what the missing rows may have spent, and run {ACCEPT}"
        )
    if mark.hash != hashes[mark.seq]:
        return (
            f"saw another row {mark.seq} than the ledger's: one of the two belongs elsewhere, or the ledger's history "
            f"parted from the one seen. Put the right one back; only if you know why they differ, run {ACCEPT}"
        )
    if mark.seq < last - 1:
        return (
            f"stands at row {mark.seq}, and the ledger is at row {last}, where at most one row more was expected: an "
            f"older anchor was put back. If you know why, make sure that the ledger is the latest, and run {ACCEPT}"
        )
    return ""


def read_key(path: Path) -> bytes | None:
    """The ledger's key; None where there is no such file. Raises: LedgerError where it is no key."""
    try:
        key = path.read_bytes()
    except FileNotFoundError:
        return None
    if len(key) != KEY_BYTES:
        raise LedgerError(
            f"ledger key {path}: {KEY_BYTES} bytes were expected, and {len(key)} are there. Put the key back from "
            "the backup of the ledger"
        )
    return key


def new_key(path: Path) -> bytes:
    key = os.urandom(KEY_BYTES)
    write_durably(path, key)
    return key


def write_durably(path: Path, data: bytes, on_the_way: Callable[[], None] = lambda: None) -> None:
    """Replaces the file, readable by its owner only: old or new at every instant, and new on disk at the end."""
    draft = Path(f"{path}.new")
    draft.unlink(missing_ok=True)
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        os.write(descriptor, data)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    on_the_way()
    os.replace(draft, path)
    fsync_folder(path.parent)


def fsync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
