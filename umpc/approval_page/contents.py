"""The content of the approvals' page: texts and amounts, which the site's files give."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class WaitingStudy:
    """A study that waits for a person.

    hash: hexadecimal. facts: as `umpc approve show` prints them. fault: why the study cannot be
    read here, or ""; it can then be refused only.
    """

    hash: str
    name: str
    facts: tuple[tuple[str, str], ...]
    fault: str = ""


@dataclass(frozen=True)
class BudgetShares:
    """The budget's parts, of ε or of δ. Their sum is `total`."""

    name: str
    total: Fraction
    spent: Fraction
    reserved: Fraction
    left: Fraction


@dataclass(frozen=True)
class PastEvent:
    """One row of the audit trail. about: its study, or ""."""

    at: str
    event: str
    about: str
    note: str


@dataclass(frozen=True)
class PageContents:
    """All parts of the page. more: pending studies that have no room. faults: what failed."""

    site: str
    waiting: tuple[WaitingStudy, ...] = ()
    more: int = 0
    budgets: tuple[BudgetShares, ...] = ()
    history: tuple[PastEvent, ...] = ()
    faults: tuple[str, ...] = ()
