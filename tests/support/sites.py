"""One node's site without a network: a run of it ends where a part is used that it lacks."""

from __future__ import annotations

from typing import Any, cast

from umpc.errors import DataError
from umpc.node.budget.ledger import Ledger
from umpc.node.run.context import Site
from umpc.node.standing import PreparedAttempts
from umpc.simulation import AUTHORITY


def unused(*_: Any) -> Any:
    raise DataError("the run went on to the records")


def site_of(ledger: Ledger, **parts: Any) -> Site:
    """The site of node-0, which admits every study. Args: parts: that it has beside the ledger."""
    lacking = dict.fromkeys(
        (
            "load",
            "permit",
            "permit_delta",
            "dial",
            "await_link",
            "dial_helper",
            "open_spool",
        ),
        unused,
    )
    has = {
        "name": "node-0",
        "credentials": lambda: AUTHORITY.credentials("node-0"),
        "ledger": ledger,
        "parking": PreparedAttempts(ledger, 1, 60),
        "admit": lambda _: None,
    }
    return Site(**{**lacking, **has, **parts})


def idle_site(**parts: Any) -> Site:
    """The site of node-0 without a ledger, for a part of a run that needs none."""
    return site_of(cast(Ledger, None), **parts)
