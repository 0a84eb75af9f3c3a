"""The file of the audit trail, to which rows are appended.

The node and `umpc approve` append to one file beside the ledger. Each holds the file's lock while
it reads the last row, writes its own and waits until it is on disk. A crash can cut the last line
short. The next writer removes that part, and says so in a row of its own.

Nothing of a study leaves the node without a row: `append` raises if the disk refuses.

*Study rows.* The rows of one study, and the charges of the ledger that lack a row.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from fractions import Fraction
from pathlib import Path
from typing import Any

from umpc.errors import ApprovalPending, AuditError, DataError, DpError, StudyError, UmpcError
from umpc.node.audit.entry import MOST_LINE, AuditMark, AuditRow, key_of, mark_of, sealed
from umpc.node.audit.reading import has_charge, rows
from umpc.node.budget.anchor import read_key
from umpc.node.budget.budget_account import Row
from umpc.node.budget.ledger_place import Place, utc_text
from umpc.node.policy import Policy
from umpc.study.document import Study


def trail_beside(ledger: Path) -> Path:
    """Return the path of the audit trail that belongs to a ledger."""
    return Path(f"{ledger}.audit")


class AuditTrail:
    """The trail beside a ledger, whose key it uses. Any thread and any process may append."""

    def __init__(self, ledger: Path, *, clock: Callable[[], str] = utc_text):
        self.path = trail_beside(Path(ledger).resolve())
        self._key_path = Place.of(ledger).key
        self._clock = clock

    def key(self) -> bytes:
        """Return the trail's key. Raises: AuditError if the ledger has none yet."""
        key = read_key(self._key_path)
        if key is None:
            raise AuditError(
                f"audit trail {self.path}: the ledger's key {self._key_path} was expected, and "
                "there is no such file. The node makes it at its first start; put a lost one back"
            )
        return key_of(key)

    def append(self, *entries: AuditRow) -> AuditMark:
        """Write rows, on disk when this returns, and return the last one's place.

        Raises: AuditError. Then none of the rows, or only some of the first ones, are in the file.
        """
        key = self.key()
        with self._locked() as file:
            mark, torn = self._tail(file)
            if torn:
                note = f"{torn} bytes of a row that was never finished"
                entries = (AuditRow("repair", note=note), *entries)
            lines = []
            for entry in entries:
                body = entry.line(mark.seq + 1, self._clock())
                line, own = sealed(key, mark.hash, body)
                mark = AuditMark(mark.seq + 1, own)
                lines.append(line)
            self._write(file, b"".join(lines))
        return mark

    def _tail(self, file: int) -> tuple[AuditMark, int]:
        """Return the last row's place, and the number of bytes after it, which are removed."""
        size = os.fstat(file).st_size
        start = max(0, size - 2 * MOST_LINE)
        tail = os.pread(file, size - start, start)
        whole, newline, torn = tail.rpartition(b"\n")
        if torn:
            os.ftruncate(file, size - len(torn))
        if not newline and start == 0:
            return AuditMark(), len(torn)
        mark = mark_of(whole.rpartition(b"\n")[2])
        if mark is None:
            raise AuditError(
                f"audit trail {self.path}: a row was expected at its end, and something else is "
                "there. Keep the file for inquiry and move it away; the node then begins a new one"
            )
        return mark, len(torn)

    def _write(self, file: int, content: bytes) -> None:
        left = memoryview(content)
        while left:
            left = left[os.write(file, left) :]
        os.fsync(file)

    @contextmanager
    def _locked(self) -> Iterator[int]:
        """Hold the open file and its lock. Raises: AuditError if the system refuses."""
        try:
            file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
            try:
                fcntl.flock(file, fcntl.LOCK_EX)
                yield file
            finally:
                os.close(file)
        except OSError as error:
            raise AuditError(
                f"audit trail {self.path}: a readable and writable file was expected, and the "
                "system refused. Check the disk and the permissions; the node takes part in no "
                "study without it",
                detail=f"{type(error).__name__}: {error}",
            ) from error


# --- study rows -----------------------------------------------------------------------------------

Record = Callable[..., object]
"""Appends rows. Arguments: as of `AuditTrail.append`. Raises: AuditError."""
CHARGES = ("charge", "course", "step")
RESTORES = ("restore", "restore-all")
"""The kinds of a ledger's rows that are charges."""


def nothing(*entries: AuditRow) -> None:
    """Append nothing: for a site without a trail, in tests."""


def about(
    event: str,
    study: Study | None,
    coordinator: str,
    note: str = "",
    *,
    cost: tuple[Fraction, Fraction] | None = None,
) -> AuditRow:
    """Return the row of an event of a study, which may not have been read.

    Args: cost: epsilon and delta, if they are known better than the study asks for.
    """
    if study is None:
        return AuditRow(event, coordinator=coordinator, note=note)
    epsilon, delta = map(str, cost) if cost else (study.epsilon, study.delta)
    if missing := study.names_missing:
        note = f"without {', '.join(missing)}{'; ' if note else ''}{note}"
    return AuditRow(
        event,
        study=study.whole.hash.hex(),
        name=study.name,
        coordinator=coordinator,
        statistic=study.statistic,
        fields=tuple(field.name for field in study.fields),
        epsilon=epsilon,
        delta=delta,
        note=note,
    )


def of_failure(error: UmpcError, study: Study | None, coordinator: str, step: str) -> AuditRow:
    """Return the row of a study that ended with an error."""
    event = "ended"
    if isinstance(error, ApprovalPending):
        event = "pending"
    elif isinstance(error, DpError | StudyError | DataError):
        event = "refusal"
    return about(event, study, coordinator, f"{type(error).__name__} in {step}: {error.message}")


def of_rules(event: str, policy: Policy) -> AuditRow:
    """Return the row that states the rules of a site, without those that restrict nothing."""
    usual = Policy()
    rules = {
        field.name: _plain(getattr(policy, field.name))
        for field in fields(policy)
        if getattr(policy, field.name) != getattr(usual, field.name)
    }
    return AuditRow(event, note=json.dumps(rules, ensure_ascii=False, sort_keys=True))


def _plain(value: Any) -> Any:
    if isinstance(value, frozenset):
        return sorted(value)
    return str(value) if isinstance(value, Fraction) else value


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
