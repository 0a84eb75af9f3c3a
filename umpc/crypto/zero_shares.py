"""Pairwise zero shares: one mask per node and sum; the masks of all nodes add up to zero.

Bonawitz et al. 2017 (secure aggregation), without dropouts. Every pair of nodes agrees on a seed by
X25519. The node with the lower index adds the pair's mask, the other one subtracts it. Without
these masks an edge set that falls into several parts would reveal partial sums. An observer that
lacks the secret keys of two nodes sees these nodes' masked shares as uniform, given their sum.
"""

from __future__ import annotations

from collections.abc import Sequence

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey

from umpc.crypto.prg import Stream, derive
from umpc.crypto.ring import Ring
from umpc.errors import RemoteProtocolError


class KeyAgreement:
    """A node's X25519 key of one attempt.

    Args: secret: 32 random bytes.
    """

    def __init__(self, secret: bytes):
        self._private = X25519PrivateKey.from_private_bytes(secret)
        self.public_key = self._private.public_key().public_bytes_raw()
        self._agreed: dict[bytes, bytes] = {}

    def __repr__(self) -> str:
        return "KeyAgreement(<redacted>)"

    def seed_with(self, public_key: bytes, peer: str) -> bytes:
        """The 32-byte seed that this node shares with a peer, computed once for each key.

        Each use of it derives from it by a label of its own.

        Raises: RemoteProtocolError on a key of another length or a degenerate key.
        """
        agreed = self._agreed.get(public_key)
        if agreed is None:
            agreed = self._agreed[public_key] = self._exchange(public_key, peer)
        return agreed

    def _exchange(self, public_key: bytes, peer: str) -> bytes:
        try:
            # spec/zero_shares.py, `shared_seed`
            return self._private.exchange(X25519PublicKey.from_public_bytes(public_key))
        except ValueError as error:
            raise RemoteProtocolError(
                f"{peer} sent an unusable X25519 key; it must make a new one",
                culprit=peer,
                step="agree",
            ) from error


def zero_shares(
    own: int,
    names: Sequence[str],
    public_keys: Sequence[bytes],
    key: KeyAgreement,
    attempt: bytes,
    ring: Ring,
    sums: int,
) -> list[int]:
    """This node's masks: one ring element for each of the study's sums.

    For each sum, the masks of all nodes add up to 0.

    Args:
        own: this node's index.
        names, public_keys: every node's, in the order of the indices. The key is empty for a node
            with which this node shares no mask; then that node's list has none for this one.
        key: this node's own key.
        attempt: the attempt's identity, so that no mask is used twice.
        sums: the number of sums.

    Raises: RemoteProtocolError naming a node with an unusable key.
    """
    totals = [0] * sums
    # spec/zero_shares.py, `zero_share`
    for other, (name, public_key) in enumerate(zip(names, public_keys, strict=True)):
        # no mask with itself, nor with nodes beyond its neighbours
        if other == own or not public_key:
            continue
        # both nodes derive one seed; their places keep a copied key from making the mask of two
        places = (min(own, other), max(own, other))
        agreed = key.seed_with(public_key, name)
        # Bonawitz et al. 2017: pairwise mask from the agreed seed
        stream = Stream(derive(agreed, "zero share", attempt, *places))
        for number, mask in enumerate(ring.drawn(stream, sums).tolist()):
            # the lower index adds the mask, the higher subtracts it
            totals[number] += mask if own < other else -mask
    # masks of all nodes add up to 0 mod 2^w
    return [ring.encode(total) for total in totals]
