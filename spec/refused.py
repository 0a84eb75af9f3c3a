"""A refusal: what came fails a check, which has a name. Each bad vector is refused by one."""

from __future__ import annotations


class Refused(Exception):
    """A check failed. check: the name of the check. culprit: who is to blame, if known."""

    def __init__(self, check: str, culprit: str | None = None):
        super().__init__(check)
        self.check, self.culprit = check, culprit


def require(holds: bool, check: str, culprit: str | None = None) -> None:
    """Go on if a check holds, and refuse what came otherwise."""
    if not holds:
        raise Refused(check, culprit)
