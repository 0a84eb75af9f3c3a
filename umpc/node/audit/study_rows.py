"""The rows of one study, and the charges of the ledger that lack a row."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import fields
from fractions import Fraction
from typing import Any

from umpc.errors import ApprovalPending, DataError, DpError, StudyError, UmpcError
from umpc.node.audit.entry import AuditRow
from umpc.node.audit.reading import has_charge, rows
from umpc.node.audit.trail import AuditTrail
from umpc.node.budget.budget_account import Row
from umpc.node.policy import Policy
from umpc.study.document import Study

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
