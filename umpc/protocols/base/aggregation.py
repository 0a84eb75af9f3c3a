"""An aggregation: the coordinator adds up the nodes' masked vectors, and tells all nodes the total.

It is a part of *evaluate*, for protocols whose sides have one:

| message | from | to |
|---|---|---|
| Part, Part, … | every node | coordinator: its masked vector, frame by frame |
| Part, Part, … | coordinator | every node: the total of all vectors, frame by frame |
| TotalSigned | every node | coordinator: the node's signature of the attempt and the total |
| TotalConfirmed | coordinator | every node: all signatures |

A node goes on only if all nodes have signed the total that it was told. So nothing leaves a node
that was computed from two different totals, and the coordinator that told them is named before
anything is charged. While a node waits for the signatures it may compute ahead: what it computes
stays in its memory, and is dropped if they are not right.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from umpc.study.messages import Frame


class NodeAggregation(Protocol):
    """The part of a node's side that has its vector added to those of all other nodes."""

    def masked(self) -> Iterator[Frame]:
        """The node's masked vector, once."""
        ...

    def take(self, frame: Frame) -> bool:
        """Take the next frame of the total. Raises: RemoteProtocolError naming the coordinator.

        Returns: whether it was the last one.
        """
        ...

    def sign(self) -> bytes:
        """The node's signature of the attempt and the total."""
        ...

    def confirm(self, signatures: Sequence[bytes]) -> None:
        """Check that all nodes were told one total, and compute what follows from it.

        Raises: RemoteProtocolError naming the coordinator.
        """
        ...


class CoordinatorAggregation(Protocol):
    """The part of a coordinator's side that adds the vectors up."""

    def add(self, node: int, frame: Frame) -> bool:
        """Add the next frame of a node's vector. Raises: RemoteProtocolError naming the node.

        Returns: whether it was the node's last one.
        """
        ...

    def total(self) -> Iterator[Frame]:
        """The total, once all vectors are added."""
        ...

    def check_signed(self, signatures: Sequence[bytes]) -> None:
        """All nodes must have signed this total. Raises: RemoteProtocolError naming the node."""
        ...
