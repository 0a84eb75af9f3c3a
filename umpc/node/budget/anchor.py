"""The two small files of a ledger: its key, and the anchor that detects an older copy.

*Key*, `<ledger>.key`: 32 random bytes that only the node's user may read. Every row's hash is an
HMAC with this key, so a person without the key cannot write rows that verify.

*Anchor*: one line with the number and the hash of the ledger's last row, best kept on another disk.
It is replaced and fsynced after every row. The ledger is therefore at the anchor's row, or one row
ahead after a crash between the two, and never behind. The anchor holds no secret. Without the key,
nobody can forge a row that the anchor would confirm.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from umpc.errors import LedgerError
from umpc.node.budget.budget_account import FIRST_HASH
from umpc.transport.files import write_durably

KEY_BYTES = 32
LINE = r"umpc anchor 1: row (0|[1-9][0-9]{0,18}), hash ([0-9a-f]{64})\n"
ACCEPT = "`umpc budget anchor --config node.toml --accept`"


@dataclass(frozen=True)
class Mark:
    """A place in the ledger: the number of rows up to it, and the hash of the last of them."""

    seq: int
    hash: bytes

    def __str__(self) -> str:
        return f"row {self.seq}, hash {self.hash.hex()}"


START = Mark(0, FIRST_HASH)
"""The place before the first row. The anchor stands here while a new ledger is made."""


def read_anchor(path: Path) -> Mark | None:
    """Return the anchor's place, or None if there is no such file.

    Raises: LedgerError if the file holds something else.
    """
    try:
        text = path.read_bytes().decode("ascii", "replace")
    except FileNotFoundError:
        return None
    found = re.fullmatch(LINE, text)
    if not found:
        raise LedgerError(
            f"anchor {path}: one line with a row and its hash was expected, and something else is "
            "there. Correct anchor under [budget], or put the file back; or, once you are sure "
            f"that the ledger is the latest, remove it and run {ACCEPT}"
        )
    return Mark(int(found[1]), bytes.fromhex(found[2]))


def write_anchor(path: Path, mark: Mark, on_the_way: Callable[[], None] = lambda: None) -> None:
    """Move the anchor. It is on disk when this returns, and whole at every instant."""
    write_durably(path, f"umpc anchor 1: {mark}\n".encode(), on_the_way=on_the_way)


def disagreement(mark: Mark | None, hashes: Sequence[bytes]) -> str:
    """Return why a ledger does not agree with its anchor, or "" if it does.

    Args:
        mark: the anchor's place.
        hashes: FIRST_HASH and then the hash of each row.
    """
    last = len(hashes) - 1
    if mark is None:
        return (
            "was expected, and there is no such file. If its disk is not mounted, mount it. If it "
            "is lost, make sure that the ledger is the latest, and not an older copy; then run "
            f"{ACCEPT}"
        )
    if mark.seq > last:
        return (
            f"saw row {mark.seq} of the ledger, which ends at row {last}: an older copy was put "
            f"back, and {mark.seq - last} row(s) are missing. Put the latest back; if it is lost "
            "for good, lower epsilon and delta under [budget] by what the missing rows may have "
            f"spent, and run {ACCEPT}"
        )
    if mark.hash != hashes[mark.seq]:
        return (
            f"saw another row {mark.seq} than the ledger's: one of the two belongs elsewhere, or "
            "the ledger's history parted from the one seen. Put the right one back; only if you "
            f"know why they differ, run {ACCEPT}"
        )
    if mark.seq < last - 1:
        return (
            f"stands at row {mark.seq}, and the ledger is at row {last}, where at most one row "
            "more was expected: an older anchor was put back. If you know why, make sure that the "
            f"ledger is the latest, and run {ACCEPT}"
        )
    return ""


def read_key(path: Path) -> bytes | None:
    """Return the ledger's key, or None if there is no such file.

    Raises: LedgerError if the file holds no key.
    """
    try:
        key = path.read_bytes()
    except FileNotFoundError:
        return None
    if len(key) != KEY_BYTES:
        raise LedgerError(
            f"ledger key {path}: {KEY_BYTES} bytes were expected, and {len(key)} are there. "
            "Put the key back from the backup of the ledger"
        )
    return key


def new_key(path: Path) -> bytes:
    """Draw a key, write it to the file, and return it."""
    key = os.urandom(KEY_BYTES)
    write_durably(path, key)
    return key
