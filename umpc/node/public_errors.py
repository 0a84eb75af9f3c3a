"""Errors of a node as others may read them."""

from __future__ import annotations

from umpc.errors import (
    ApprovalError,
    AuditError,
    ConfigError,
    FailedCheck,
    LedgerError,
    UmpcError,
)


def public_error(error: UmpcError, node: str) -> UmpcError:
    """Return the error that others may read. Paths and internals of this site stay in its log."""
    if isinstance(error, ConfigError):
        return ConfigError(
            f"{node}: its configuration has an error, which only its administrator can correct; "
            "see the node's own log",
            culprit=node,
        )
    if isinstance(error, LedgerError | ApprovalError | AuditError):
        return type(error)(
            f"{node}: its {type(error).__name__} is for its administrator; see the node's own log",
            culprit=node,
        )
    if isinstance(error, FailedCheck):
        return error  # the node that noticed it is not at fault
    if node not in error.message:
        return type(error)(
            f"{node}: {error.message}", culprit=error.culprit or node, step=error.step
        )
    return error
