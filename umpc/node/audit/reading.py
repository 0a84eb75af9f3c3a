"""The audit trail is read and verified, one row at a time: memory does not grow with its length.

*What verification finds.* A row that was changed, removed from the middle, exchanged, or written
without the key breaks the chain at its number. Rows that were cut off at the end leave a chain
that is whole. Two things find these: a charge in the ledger without a row here, and a place that
somebody noted before (`AuditMark`), which must still be in the chain.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from umpc.errors import AuditError
from umpc.node.audit.trail import (
    FIRST_HASH,
    MOST_LINE,
    SEAL_BYTES,
    AuditMark,
    AuditRow,
    AuditTrail,
    mark_of,
    seal,
)
from umpc.node.budget.budget_account import Row
from umpc.node.policy import rules_in_words

KNOWN = {"seq", "at", "hash", *(each.name for each in fields(AuditRow))}
"""The keys of every row. A later version may add others."""
CLASS = re.compile(r"^\w+ in \w+: ")
"""How the note of a row of a failure begins."""
CHARGE = re.compile(rb'"event":"charge","study":"([0-9a-f]{64})"')
"""In a row whose seal is right. A text of others cannot hold it: JSON escapes its quotes."""


@dataclass(frozen=True)
class Verified:
    """A trail whose chain is whole: its last place, and the studies that it says were charged."""

    head: AuditMark
    charged: frozenset[bytes]


def lines(path: Path) -> Iterator[bytes]:
    """Yield the lines of a trail with their newlines. The last one may be cut.

    An absent file has no line. Raises: AuditError.
    """
    try:
        with path.open("rb") as file:
            while line := file.readline(MOST_LINE + 1):
                if len(line) > MOST_LINE:
                    raise damaged(path, "a line is longer than any row")
                yield line
    except FileNotFoundError:
        return
    except OSError as error:
        raise _unreadable(path, error) from None


def rows(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the facts of each row, which are not verified. Raises: AuditError."""
    for number, line in enumerate(lines(path), 1):
        if not line.endswith(b"\n"):
            return  # a writer is at work, or a crash cut it short
        yield _facts(path, line, f"row {number}")


def _facts(path: Path, line: bytes, which: str = "one of the last rows") -> dict[str, Any]:
    try:
        facts = json.loads(line)
    except ValueError:
        raise damaged(path, f"{which} is no JSON") from None
    if not isinstance(facts, dict) or not facts.keys() >= KNOWN:
        raise damaged(path, f"{which} is no row")
    return facts


def last_rows(path: Path, most_bytes: int = 1 << 20) -> list[dict[str, Any]]:
    """Return the facts of the rows in the last bytes of a trail, the oldest first. Not verified.

    Memory and time do not grow with the trail's length. Raises: AuditError.
    """
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - most_bytes))
            tail = file.read(most_bytes)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise _unreadable(path, error) from None
    whole = tail.splitlines(keepends=True)[size > most_bytes :]  # the first may be cut
    return [_facts(path, line) for line in whole if line.endswith(b"\n")]


def note_of(row: dict[str, Any]) -> str:
    """Return a row's note for people: rules are a sentence, and a refusal has no class of error."""
    note: str = row["note"]
    if row["event"] in ("start", "policy"):
        return rules_in_words(note)
    return CLASS.sub("", note) if row["event"] == "refusal" else note


def has_charge(path: Path, study: bytes) -> bool:
    """Return whether a row says that the study was charged. Not verified. Raises: AuditError."""
    digits = study.hex().encode()
    return any(found[1] == digits for found in map(CHARGE.search, lines(path)) if found)


def verify(
    path: Path,
    key: bytes,
    expected: AuditMark | None = None,
    sought: frozenset[bytes] | None = None,
) -> Verified:
    """Verify every row.

    Args:
        expected: a place that was noted before.
        sought: the studies whose charges are looked for; None keeps those of all studies, and
            memory then grows with their number.

    Raises: AuditError, which names the first wrong row.
    """
    seq, former = 0, FIRST_HASH
    charged: set[bytes] = set()
    is_met = expected is None or expected == AuditMark()
    for line in lines(path):
        seq += 1
        body = line[: -SEAL_BYTES - 1]
        own = seal(key, former, body)
        if line[-SEAL_BYTES - 1 :] != b',"hash":"%b"}\n' % own.hex().encode():
            raise damaged(path, _reason(line, seq))
        if not body.startswith(b'{"seq":%d,' % seq):
            raise damaged(path, f"row {seq} has another number")
        if found := CHARGE.search(body):
            study = bytes.fromhex(found[1].decode())
            if sought is None or study in sought:
                charged.add(study)
        former = own
        is_met = is_met or (expected is not None and (seq, own) == (expected.seq, expected.hash))
    if not is_met and expected is not None:
        raise damaged(
            path, f"row {expected.seq} with the hash that was noted is missing: rows were cut off"
        )
    return Verified(AuditMark(seq, former), frozenset(charged))


def compare(path: Path, verified: Verified, charged: frozenset[bytes]) -> None:
    """Check that every charge of the ledger has its row. Raises: AuditError.

    Args: charged: the hashes of the studies that the ledger charged.
    """
    if missing := charged - verified.charged:
        digits = min(missing).hex()[:16]
        raise damaged(
            path,
            f"the ledger charged {len(missing)} studies that have no row here, among them "
            f"{digits}: rows were cut off, or the node ended in that moment and adds them at its "
            "next start",
        )


def _unreadable(path: Path, error: OSError) -> AuditError:
    return AuditError(
        f"audit trail {path}: it cannot be read ({error.strerror}): check owner and mode"
    )


def damaged(path: Path, reason: str) -> AuditError:
    """Return the error for a trail whose content is wrong."""
    return AuditError(
        f"audit trail {path}: {reason}. Keep the file for inquiry, and compare it with a copy that "
        "`umpc audit export` made"
    )


def _reason(line: bytes, seq: int) -> str:
    if not line.endswith(b"\n"):
        return f"row {seq} is cut short, by a crash or while a process writes it; verify again"
    if mark_of(line) is None:
        return f"row {seq} is no row"
    return f"row {seq} is wrong: it was changed, or a row before it was removed"


# --- charges without a row ------------------------------------------------------------------------

CHARGES = ("charge", "course", "step")
RESTORES = ("restore", "restore-all")
"""The kinds of a ledger's rows that are charges."""


def add_missing_charges(trail: AuditTrail, history: Iterable[Row]) -> int:
    """Append a row for each charge of the ledger that has none, and return their number.

    A node that ends between the charge and its row, or an upgrade, leaves such charges. A ledger
    that was restored may charge a study again that the trail has before the restore.
    Raises: AuditError.
    """
    charges = list(history)
    restores = [at for at, row in enumerate(charges) if row.kind in RESTORES]
    restored = max(restores, default=len(charges))
    known: set[str] = set()
    before: set[str] = set()
    for row in rows(trail.path):
        if row.get("event") == "restore":
            before, known = before | known, set()
        elif row.get("event") == "charge":
            known.add(row["study"])
    missing = [
        AuditRow(
            "charge",
            study=row.study.hex(),
            name=row.note,
            epsilon=str(row.epsilon),
            delta=str(row.delta),
            note=f"found in the ledger, charged at {row.at}",
        )
        for at, row in enumerate(charges)
        if row.kind in CHARGES
        and row.study.hex() not in (known if at > restored else known | before)
    ]
    if missing:
        trail.append(*missing)
    return len(missing)


def add_missing_charge(
    trail: AuditTrail, history: Callable[[], Iterable[Row]], study: bytes
) -> None:
    """Append the row of a released study's charge where it is missing, as after a full disk.

    Args: history: the ledger's rows, which are read only then. Raises: AuditError, LedgerError.
    """
    if not has_charge(trail.path, study):
        add_missing_charges(trail, history())
