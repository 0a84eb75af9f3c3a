"""The proof of charges after a backup that the surviving anchor and audit trail give.

The anchor moves after each row and before anything of that row leaves. An anchor that stands at the
backup's last row therefore proves that nothing of a later row left. Nothing else proves this. The
trail proves charges and never their absence, because its end may be lost.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeAlias

from umpc.errors import AuditError, LedgerError
from umpc.node.audit.entry import AuditMark, key_of
from umpc.node.audit.reading import damaged, rows, verify
from umpc.node.backup.archive import Manifest
from umpc.node.backup.copies import copy_lines
from umpc.node.budget.anchor import Mark
from umpc.node.budget.ledger_place import Place
from umpc.node.budget.ledger_reading import Content

Amounts: TypeAlias = tuple[Fraction, Fraction]
"""A sum of ε, and one of δ."""


@dataclass(frozen=True)
class Evidence:
    """The known facts of the rows that the backup lacks.

    is_at_backup: the anchor stands at the backup's last row. ahead: rows that the anchor saw after
    it. epsilon, delta: sums of the `studies` charges that the trail shows and the backup lacks.
    """

    is_at_backup: bool
    ahead: int
    studies: int
    epsilon: Fraction
    delta: Fraction

    @property
    def is_complete(self) -> bool:
        """Whether nothing was charged after the backup. A trail with charges refutes the anchor."""
        return self.is_at_backup and not self.studies

    def __str__(self) -> str:
        if self.is_at_backup:
            anchor = "the anchor stands at the backup's last row"
        elif self.ahead:
            anchor = f"the anchor saw {self.ahead} rows after the backup"
        else:
            anchor = "no anchor tells of the time after the backup"
        trail = (
            f"the audit trail shows {self.studies} charges of epsilon {self.epsilon} and delta "
            f"{self.delta} that the backup lacks"
            if self.studies
            else "the audit trail shows no charge that the backup lacks"
        )
        return f"{anchor}, and {trail}"


def anchor_after(mark: Mark | None, content: Content, place: Place) -> tuple[bool, int]:
    """Return whether the anchor is at the backup's last row, and how many rows it is ahead.

    Raises: LedgerError if it is the anchor of another history.
    """
    if mark is None:
        return False, 0
    last = content.head.seq
    if mark.seq <= last and content.hashes[mark.seq] != mark.hash:
        raise place.astray(
            f"saw another row {mark.seq} than the backup's: one of the two belongs to another "
            "ledger. Take the right backup; or move the anchor away, if it is the wrong one"
        )
    return mark == content.head, max(0, mark.seq - last)


def charges_after(
    trail: Path, key: bytes, content: Content, known: int
) -> tuple[int, Fraction, Fraction]:
    """Return the number, ε and δ of the charges that a trail shows and the ledger lacks.

    Args:
        trail: whole lines; verified here. An absent file shows none.
        known: the number of the trail's last row that is in the backup.
    Raises: AuditError.
    """
    verify(trail, key_of(key))
    lost: set[str] = set()
    sums = _ProvenSums()
    for row in rows(trail):
        if row["event"] == "charge" and _is_lost(row["study"], lost, content):
            lost.add(row["study"])
            sums.add(row["seq"], _amounts(trail, row))
        if row["event"] == "restore" and row["seq"] > known:
            # Its ledger did not know these studies, so it charged them again when they were asked.
            lost.clear()
            sums.raise_to(row["seq"], base_of(row["note"]), _amounts(trail, row))
    return sums.number, *sums.now


class _ProvenSums:
    """The ε and δ that a trail shows, row by row. number: of the rows that show some."""

    def __init__(self) -> None:
        self.number = 0
        self._after: list[tuple[int, Amounts]] = [(0, (Fraction(0), Fraction(0)))]

    @property
    def now(self) -> Amounts:
        return self._after[-1][1]

    def add(self, seq: int, amounts: Amounts) -> None:
        """Count a charge."""
        self._set(seq, (self.now[0] + amounts[0], self.now[1] + amounts[1]))

    def raise_to(self, seq: int, base: int | None, amounts: Amounts) -> None:
        """Count what a restore counted as charged since its backup, which stood at row `base`.

        This may be more than the trail shows since then. Where a former version did not note the
        row, it is added to everything before.
        """
        if not any(amounts):
            return
        before = self.now if base is None else self._at(base)
        most = (max(self.now[n], before[n] + amounts[n]) for n in (0, 1))
        self._set(seq, (next(most), next(most)))

    def _at(self, base: int) -> Amounts:
        return next(amounts for seq, amounts in reversed(self._after) if seq <= base)

    def _set(self, seq: int, amounts: Amounts) -> None:
        self.number += 1
        self._after.append((seq, amounts))


def note_of(base: int, text: str) -> str:
    """Return the note of a restore's row. Args: base: the trail's last row in the backup."""
    return f"after row {base}: {text}"


def base_of(note: str) -> int | None:
    """Return the row that a note names, or None for one of a former version."""
    found = re.match(r"after row (\d{1,18}): ", note)
    return int(found[1]) if found else None


def _is_lost(study: str, lost: set[str], content: Content) -> bool:
    return study not in lost and bytes.fromhex(study) not in content.account.charged


def _amounts(trail: Path, row: dict[str, Any]) -> tuple[Fraction, Fraction]:
    try:
        return Fraction(row["epsilon"]), Fraction(row["delta"])
    except ValueError:
        raise damaged(trail, f"row {row['seq']} has no epsilon or delta") from None


def surviving_trail(found: Path, draft: Path, key: bytes, manifest: Manifest) -> Path | None:
    """Return a verified copy of the trail at its place, or None if there is none.

    Raises: AuditError if it is damaged, or does not go on from the backup's own.
    """
    if not found.exists():
        return None
    copy_lines(found, draft)
    expected = AuditMark.parse(manifest.trail) if manifest.trail else None
    try:
        verify(draft, key_of(key), expected)
    except AuditError as error:
        raise AuditError(
            f"audit trail {found}: a trail that goes on from the backup's row "
            f"{expected.seq if expected else 0} was expected at its place. Keep the file for "
            "inquiry and move it away, if the backup is the right one",
            detail=error.message,
        ) from None
    return draft


def refuse_present(place: Place, manifest: Manifest) -> None:
    """Check that no ledger, and no part of one, is at the place. Raises: LedgerError."""
    beside = [Path(f"{place.ledger}{end}") for end in ("", "-wal", "-journal")]
    present = next((path for path in beside if path.exists() and path.stat().st_size), None)
    if present:
        raise LedgerError(
            f"ledger {place.ledger}: no file was expected at its place before a restore, and "
            f"{present} is there. If it verifies, with `umpc budget verify`, keep it: it is newer "
            f"than the backup of {manifest.made}. Otherwise stop the node and move it away, and "
            "leave its anchor and its audit trail where they are"
        )
