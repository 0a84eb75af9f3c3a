"""Trust: whom the sites of a study must trust beside themselves.

Three grades, in ascending order: nobody; helpers, processes without data that collude with nobody;
a curator, one process that sees all records.
"""

from __future__ import annotations

from dataclasses import dataclass

GRADES = ("nobody", "helpers", "curator")


@dataclass(frozen=True)
class Trust:
    """grade: one of GRADES. who: the trusted parties in words, "-" for none."""

    grade: str
    who: str


NOBODY = Trust("nobody", "-")
DEALER = Trust("helpers", "the dealer")
SHUFFLERS = Trust("helpers", "both shufflers")
