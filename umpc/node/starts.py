"""How often each node has started: a second copy of a node is noticed by its peers.

A node counts its starts on disk, and gives each start a random name. In each greeting between nodes
it tells both, and what it remembers of the peer. A copy of the folder that runs elsewhere has an
earlier number, or another name of one number. A backup that was put back looks the same. So both
administrators are warned, nobody is accused, and no study is refused.

*Reveals*: how often the node has started, to the nodes of its studies.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from umpc.node.budget.ledger import Ledger
from umpc.proto.v1 import umpc_pb2 as pb

log = logging.getLogger("umpc.node")
NAME_BYTES = 8
MOST_STARTS = 1 << 40
"""A number beyond it is another node's error, and is ignored."""
LEAP = 1 << 16
"""By so much at most a peer moves this node's own number before the next start."""


@dataclass(frozen=True)
class Start:
    """One start of a node. name: NAME_BYTES random bytes."""

    number: int = 0
    name: bytes = b""


class Starts:
    """The starts that this node knows, its own among them, on disk in its ledger.

    Args: node: its own name. entropy: number of bytes → so many random ones.
    """

    def __init__(self, ledger: Ledger, node: str, entropy: Callable[[int], bytes]):
        self._ledger, self._node = ledger, node
        self._known = {
            name.decode(): Start(int.from_bytes(value[NAME_BYTES:]), value[:NAME_BYTES])
            for name, value in ledger.starts().items()
        }
        self.own = Start(self._of(node).number + 1, entropy(NAME_BYTES))
        self._keep(node, self.own)

    def greeting(self, peer: str, attempt: bytes, channel: bytes) -> pb.PeerHello:
        """Return the greeting for a peer, with both starts."""
        known = self._of(peer)
        return pb.PeerHello(
            attempt=attempt,
            channel=channel,
            own=pb.NodeStart(number=self.own.number, name=self.own.name),
            known=pb.NodeStart(number=known.number, name=known.name),
        )

    def hear(self, peer: str, hello: pb.PeerHello) -> None:
        """Compare a peer's greeting with what is remembered, and warn where they disagree.

        A peer of an earlier version tells no start. Raises: LedgerError if the disk refuses.
        """
        told = Start(hello.own.number, hello.own.name)
        before = self._of(peer)
        if before.number < told.number < MOST_STARTS:
            self._keep(peer, told)
        elif told.number and told != before:
            log.warning(
                "%s told its start number %d, and this node has heard of its start number %d: a "
                "second copy of it may run, or its backup was put back. Nobody need have done "
                "wrong. Telephone with its administrator, who is warned, too",
                *(peer, told.number, before.number),
            )
        remembered = Start(hello.known.number, hello.known.name)
        if 0 <= remembered.number - self.own.number < LEAP and remembered != self.own:
            log.warning(
                "%s remembers start number %d of this node, and this is number %d: a second copy "
                "of this node may run elsewhere, which would spend the budget twice, or a backup "
                "was put back. Make sure that no other copy runs; then start this node again, and "
                "it counts on from there (docs/day_two.md)",
                *(peer, remembered.number, self.own.number),
            )
            self._keep(self._node, remembered)

    def _of(self, node: str) -> Start:
        return self._known.get(node, Start())

    def _keep(self, node: str, start: Start) -> None:
        self._known[node] = start
        value = start.name[:NAME_BYTES].ljust(NAME_BYTES, b"\0") + start.number.to_bytes(8)
        self._ledger.keep_start(node.encode(), value)
