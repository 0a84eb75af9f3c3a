"""The certificates that peers showed when this process last reached them.

gRPC shows a client no certificate of the server, so a new peer is looked at over a connection of
its own before the channel trusts its certificate alone (decision 28). A process that has reached a
peer knows its certificate. The next channel trusts this one, without a look: one handshake less of
two. Every check is made anew: authority, dates, list of revoked certificates, name and role.

| the peer | what follows |
|---|---|
| shows the same certificate | the handshake succeeds; only who has its key can answer |
| was renewed, or another process has its address | the handshake fails, and a look follows |
| is not there | the connection fails, and a look follows |

A certificate is no secret. It is forgotten when it does not pass a check, or when no channel by it
becomes ready.
"""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock

MOST = 1024
"""Certificates of a process, each of less than a kilobyte. One more forgets the oldest."""

Place = tuple[bytes, str, str, str]
"""The authority, and the role, name and address of the peer."""


class KnownCertificates:
    """Certificates in DER by place. Args: most: how many are kept."""

    def __init__(self, most: int = MOST):
        self._most = most
        self._found: OrderedDict[Place, bytes] = OrderedDict()
        self._lock = Lock()  # another thread may have an event loop with studies

    def __len__(self) -> int:
        return len(self._found)

    def get(self, place: Place) -> bytes | None:
        """Return the certificate of a peer, if it is known."""
        with self._lock:
            if place in self._found:
                self._found.move_to_end(place)
            return self._found.get(place)

    def put(self, place: Place, der: bytes) -> None:
        """Keep the certificate with which a channel to a peer became ready."""
        with self._lock:
            self._found[place] = der
            self._found.move_to_end(place)
            while len(self._found) > self._most:
                self._found.popitem(last=False)

    def forget(self, place: Place, der: bytes) -> None:
        """Forget a certificate that did not serve, unless the peer has shown another one since."""
        with self._lock:
            if self._found.get(place) == der:
                del self._found[place]


KNOWN = KnownCertificates()
"""Those of this process."""
