"""The total of all masked histograms: who signed it, and who told whom another one."""

from __future__ import annotations

from collections.abc import Sequence

from umpc.crypto.prg import digest
from umpc.crypto.signing import is_signature
from umpc.errors import RemoteProtocolError
from umpc.study.sizes import Member

STEP = "evaluate"
HISTOGRAM = "histogram"
TOTAL = "total"
"""The steps of a node's frames, and of the total's."""


def total_statement(attempt: bytes, total: bytes) -> bytes:
    """The bytes that every node signs of a total. Args: attempt: its id. total: its SHA-256."""
    return digest(b"umpc total 1", attempt, total)


def check_signed(
    statement: bytes,
    members: Sequence[Member],
    keys: Sequence[bytes],
    signatures: Sequence[bytes],
    relay: str | None,
) -> None:
    """Check that all nodes signed one total.

    Args: relay: the process that told the total and passed the signatures on; None where each
    signature came from its node.

    Raises: RemoteProtocolError naming the relay, or without one the node.
    """
    for number, (member, key) in enumerate(zip(members, keys, strict=True)):
        signature = signatures[number] if len(signatures) == len(keys) else b""
        if not is_signature(key, statement, signature):
            other = f"{relay} told it another one, or changed its signature"
            raise RemoteProtocolError(
                f"{member.name} has not signed the same total of the masked histograms: "
                f"{other if relay else 'it signed something else'}; no share was made, and the "
                f"study ends",
                culprit=relay or member.name,
                step=STEP,
            )
