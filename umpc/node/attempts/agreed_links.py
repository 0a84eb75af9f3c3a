"""The making of links between nodes at one hub: each makes its end by itself, and nothing is sent.

Both ends know whom they meet once they have the attempt, and both do this before they sign it. So
the first message on data, which comes after all signatures, finds the other end made.
"""

from __future__ import annotations

from collections.abc import Sequence

from umpc.node.attempts.session_link import SessionLink
from umpc.study.document import Study
from umpc.transport.hub.link import HubLink
from umpc.transport.hub.routes import common_link
from umpc.transport.identity import Identity


class AgreedLinks:
    """The links of one node over sessions of a hub."""

    def __init__(self, identity: Identity):
        self._identity = identity

    def reached(self, study: Study, peers: Sequence[int]) -> dict[int, HubLink]:
        """Return those of these nodes that are at the hub of this one, in other processes.

        Raises: PeerUnavailable if this node is not at the hub that the study names.
        """
        own = study.nodes[study.index_of(self._identity.name)].address
        found = {}
        for peer in peers:
            node = study.nodes[peer]
            hub = common_link(self._identity, own, node.name, node.address)
            if hub is not None:
                found[peer] = hub
        return found

    def link(
        self, hub: HubLink, peer: str, meeting: bytes, secret: bytes, *, is_later: bool
    ) -> SessionLink:
        """Make this node's end of a link.

        Args:
            secret: of both nodes, for this meeting alone.
            is_later: the peer comes later in the study.
        """
        own = self._identity.name
        ends = (own, peer) if is_later else (peer, own)
        link = SessionLink(peer)
        link.session = hub.agree(*ends, meeting, secret, link)
        return link
