"""A backup is put back at a site. A charge that may have come after it counts as charged.

*The rule.* Nothing needs to be charged only if the surviving anchor stands at the backup's last
row. In any other case the administrator states what was charged since, at least
what the audit trail shows, or that all that was left counts as spent. This becomes one row of the
chain, before the ledger is at its place. From this row on no question of an older study is
answered, and a paid course is paid anew, because the lost ledger may have done either.

*Order.* The node starts with no state in between. It refuses a key without a ledger, and a ledger
that its anchor does not know. The ledger is moved to its place last but for the anchor.

*Evidence.* The proof of charges after a backup that the surviving anchor and audit trail give.

The anchor moves after each row and before anything of that row leaves. An anchor that stands at the
backup's last row therefore proves that nothing of a later row left. Nothing else proves this. The
trail proves charges and never their absence, because its end may be lost.
"""

from __future__ import annotations

import os
import re
import sqlite3
import tempfile
from contextlib import ExitStack, closing
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeAlias

from umpc.dp.composition import BASIC
from umpc.errors import AuditError, LedgerError
from umpc.node.approvals import ACCEPTED, PENDING, approvals_beside
from umpc.node.audit.reading import damaged, rows, verify
from umpc.node.audit.trail import AuditMark, AuditRow, AuditTrail, key_of, trail_beside
from umpc.node.backup import archive
from umpc.node.backup.archive import Manifest
from umpc.node.budget import ledgerfile as file
from umpc.node.budget.budget_account import (
    RESTORE,
    RESTORE_ALL,
    Account,
    BudgetCost,
    check_delta,
    exact_text,
    sealed,
)
from umpc.node.budget.ledger_place import (
    Mark,
    Place,
    connect,
    copy_lines,
    locked,
    read_anchor,
    read_key,
    system_refuses,
    utc_text,
    write_anchor,
)
from umpc.node.budget.ledgerfile import Content
from umpc.node.budget.store import TABLE, forget_passing
from umpc.node.config import SitePlaces, load_places
from umpc.transport.files import write_durably


@dataclass(frozen=True)
class Statement:
    """The administrator's word on what was charged after the backup.

    Sums of ε and δ; with `all_left` they are not read, and all that was left counts as spent.
    """

    epsilon: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)
    all_left: bool = False


@dataclass(frozen=True)
class Restored:
    """The outcome of a restore: the new head, the cost that it added, and the new files."""

    ledger: Path
    head: Mark
    cost: BudgetCost
    known: Evidence
    written: tuple[Path, ...]
    absent: tuple[Path, ...]
    """Secret files that the node needs, and that nobody has put back yet."""
    own_delta: Fraction
    """The δ' of the lost studies' composition, which is a part of the cost's δ."""


class Restoration:
    """One archive that is being put back.

    Args: config: the node's file. It is written if it is absent, and else counts as it is.
    """

    def __init__(self, path: Path, config: Path, folder: Path):
        """Unpack and check. Args: folder: an empty one for drafts. Raises: UmpcError."""
        self.path, self.config, self.folder = path, config.resolve(), folder
        self.manifest, self._seal = archive.unpack(path, folder)
        draft = None if self.config.exists() else folder / archive.CONFIG
        self.site: SitePlaces = load_places(self.config, draft, self.manifest.dataset)
        self.place = Place.of(self.site.ledger, self.site.anchor)
        self.ledger = folder / archive.LEDGER
        self.written: list[Path] = []
        if self.site.name != self.manifest.node:
            raise LedgerError(
                f"backup {path}: node {self.site.name!r} was expected, as {self.config} says, and "
                f"it is of {self.manifest.node!r}. Take the right one"
            )

    def run(self, statement: Statement | None) -> Restored:
        """Check everything, then write. Raises: LedgerError, AuditError; nothing is then written.

        Args: statement: None if the anchor proves that nothing was charged since.
        """
        refuse_present(self.place, self.manifest)
        key = self._key()
        archive.check_seal(self.path, self.manifest, self._seal, key)
        content = self._verified(key)
        known = self._evidence(key, content)
        cost, kind = self._cost(content, known, statement)
        head = self._add_row(key, content, cost, kind) if kind else content.head
        said = f"{kind or 'nothing was lost'}; backup of {self.manifest.made}, {known}"
        note = note_of(self._last_row, said)
        epsilon, delta = str(cost.epsilon), str(cost.delta or 0)
        self._write(head, AuditRow("restore", epsilon=epsilon, delta=delta, note=note))
        needed = [self.site.identity / name for name in (*archive.PUBLIC[:2], archive.KEY)]
        absent = tuple(path for path in needed if not path.exists())
        own = self.site.composition.delta if kind == RESTORE_ALL else Fraction(0)
        return Restored(self.place.ledger, head, cost, known, tuple(self.written), absent, own)

    def _key(self) -> bytes:
        """Return the ledger's key, from its place or from the archive. Raises: LedgerError."""
        here, brought = read_key(self.place.key), read_key(self.folder / archive.LEDGER_KEY)
        if here and brought and here != brought:
            raise LedgerError(
                f"ledger key {self.place.key}: the key in the backup is another one. Move the "
                "wrong one away"
            )
        found = here or brought
        if found is None:
            raise LedgerError(
                f"ledger key {self.place.key}: a file was expected, because this backup was made "
                "without --keys. Put the key there from where you keep it, with mode 600"
            )
        return found

    def _verified(self, key: bytes) -> file.Content:
        """Verify the chain of the backup's ledger, and drop what it may hold. Raises: LedgerError.

        The ledger's own messages name the draft, and its restorer needs the archive's name.
        """
        draft = Place.of(self.ledger)
        try:
            with system_refuses(draft), closing(connect(self.ledger)) as db:
                file.check_version(db, draft)
                forget_passing(db)
                db.execute(TABLE)  # a ledger of a former version has no Store
                content = file.replay(db, draft, key)
        except LedgerError as error:
            raise archive.damaged(self.path, f"its ledger does not verify ({error})") from None
        if (content.head.seq, content.head.hash.hex()) != (self.manifest.row, self.manifest.hash):
            raise archive.damaged(self.path, "its ledger is not at the row of its manifest")
        return content

    def _evidence(self, key: bytes, content: file.Content) -> Evidence:
        mark = read_anchor(self.place.anchor)
        is_at_backup, ahead = anchor_after(mark, content, self.place)
        found = trail_beside(self.place.ledger)
        survived = surviving_trail(found, self.folder / "survived", key, self.manifest)
        trail = survived or self.folder / archive.TRAIL
        charges = charges_after(trail, key, content.account, self._last_row)
        return Evidence(is_at_backup, ahead, *charges)

    @property
    def _last_row(self) -> int:
        """The number of the audit trail's last row in the backup; 0 without one."""
        return AuditMark.parse(self.manifest.trail).seq if self.manifest.trail else 0

    def _cost(
        self, content: file.Content, known: Evidence, statement: Statement | None
    ) -> tuple[BudgetCost, str]:
        """Return what counts as charged, and the kind of its row; no row where nothing is lost.

        Raises: LedgerError if a statement is missing, or below what is proven.
        """
        if statement is None:
            if known.is_complete:
                return BudgetCost(Fraction(0), Fraction(0)), ""
            raise LedgerError(
                f"backup {self.path}: a proof was expected that nothing was charged after "
                f"{self.manifest.made}, and there is none: {known}. Put the last anchor to "
                f"{self.place.anchor}; or state the sum of what was charged since, from the audit "
                "trail or the coordinators' reports, with --charged-since EPSILON and "
                "--delta-since DELTA; or let all that was left count as spent, with "
                "--charged-since all"
            )
        if statement.all_left:
            return self._all_left(content), RESTORE_ALL
        check_delta(statement.delta)
        lacks = statement.epsilon < known.epsilon or statement.delta < known.delta
        if lacks or (known.ahead and not known.studies and not statement.epsilon):
            raise LedgerError(
                f"backup {self.path}: a sum of at least what is proven was expected, and epsilon "
                f"{statement.epsilon} and delta {statement.delta} came: {known}. Correct "
                "--charged-since and --delta-since, or use --charged-since all"
            )
        return BudgetCost(statement.epsilon, statement.delta), RESTORE

    def _all_left(self, content: file.Content) -> BudgetCost:
        """Return all that the lost ledger could have charged, under the larger of two totals.

        With a composition other than basic, its studies together had the total ε, with the
        composition's own δ'. So the δ spent is then above the total by δ'.
        """
        account = content.account
        total = max(account.total.epsilon, self.site.epsilon)
        delta = max(account.total.delta or Fraction(0), self.site.delta)
        left = max(total - account.spent.epsilon, Fraction(0))
        epsilon = left if self.site.composition.name == BASIC else total
        spent = account.spent.delta or Fraction(0)
        return BudgetCost(epsilon, max(delta - spent, Fraction(0)) + self.site.composition.delta)

    def _add_row(self, key: bytes, content: file.Content, cost: BudgetCost, kind: str) -> Mark:
        """Write the row of the restore into the draft, and return the new head."""
        amounts = (exact_text(cost.epsilon), exact_text(cost.delta))
        note = f"restored from the backup of {self.manifest.made}"
        values = (content.head.seq + 1, utc_text(), kind, b"", *amounts, b"", b"", note)
        row = sealed(key, content.head.hash, values)
        draft = Place.of(self.ledger)
        with system_refuses(draft), closing(connect(self.ledger)) as db:
            return file.append(db, draft, key, row, content.head)

    def _write(self, head: Mark, row: AuditRow) -> None:
        """Put all files to their places: the ledger after the others, and the anchor after it.

        The trail says what counts as charged before the ledger counts it. After a crash in between
        a restore needs a sum that is at least as large.
        """
        with system_refuses(self.place), ExitStack() as held:
            held.callback(os.close, locked(self.place.ledger))  # no node starts in between
            refuse_present(self.place, self.manifest)
            self.site.identity.mkdir(mode=0o700, exist_ok=True)
            for name in (*archive.PUBLIC, archive.KEY):
                self.put(name, self.site.identity / name)
            self.put(archive.LEDGER_KEY, self.place.key)
            self.put(archive.CONFIG, self.config)
            self._put_approvals()
            self.put(archive.FIELD_SETS, Path(f"{self.place.ledger}.fieldsets"))
            self.put(archive.TRAIL, trail_beside(self.place.ledger))
            AuditTrail(self.place.ledger).append(row)
            self.put(archive.LEDGER, self.place.ledger)
            write_anchor(self.place.anchor, head)

    def put(self, name: str, target: Path) -> None:
        """Put a file to its place, unless the archive lacks it or the place has one."""
        source = self.folder / name
        if source.exists() and not target.exists():
            write_durably(target, source, draft=Path(f"{target}.restored"))
            self.written.append(target)

    def _put_approvals(self) -> None:
        """Put the decisions back. An accepted study waits again, for it may be rejected since."""
        draft = self.folder / archive.APPROVALS
        if draft.exists():
            with closing(sqlite3.connect(draft, isolation_level=None)) as db:
                values = (PENDING, ACCEPTED)
                db.execute("UPDATE studies SET state = ?, decided = '' WHERE state = ?", values)
        self.put(archive.APPROVALS, approvals_beside(self.place.ledger))


def restore(path: Path, config: Path, statement: Statement | None = None) -> Restored:
    """Put a backup back. Args: config: the node's file, which need not exist.

    Raises: LedgerError, AuditError, ConfigError. Nothing is written if a check fails.
    """
    parent = Path(config).resolve().parent
    if not parent.is_dir():
        raise LedgerError(f"{config}: a file in an existing folder was expected. Make the folder")
    with tempfile.TemporaryDirectory(dir=parent, prefix=".umpc-restore-") as drafts:
        return Restoration(Path(path).resolve(), config, Path(drafts)).run(statement)


# --- evidence -------------------------------------------------------------------------------------

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
    trail: Path, key: bytes, account: Account, known: int
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
        if row["event"] == "charge" and _is_lost(row["study"], lost, account):
            lost.add(row["study"])
            sums.add(row["seq"], _amounts(trail, row))
        if row["event"] == "restore":
            # Its ledger did not know these studies, so it charged them again when they were asked.
            lost.clear()
            if row["seq"] > known:
                sums.raise_to(row["seq"], base_of(row["note"]), _amounts(trail, row))
            else:  # the backup's ledger counts all that was lost by then
                sums = _ProvenSums()
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


def _is_lost(study: str, lost: set[str], account: Account) -> bool:
    return study not in lost and bytes.fromhex(study) not in account.charged


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
