"""Pairwise zero shares: one mask per node that makes its final share uniform, and all masks sum to zero.

Bonawitz et al. 2017 (secure aggregation), without dropouts. Every pair of nodes agrees on a seed by X25519; the lower
adds the pair's mask, the higher subtracts it. Without it a disconnected E would reveal partial sums.
Whoever lacks the secret key of two nodes sees their shares as uniform given their sum.
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

    def __repr__(self) -> str:
        return "KeyAgreement(<redacted>)"

    def seed_with(self, public_key: bytes, peer: str) -> bytes:
        """The seed shared with a peer. Raises: RemoteProtocolError on a degenerate key."""
        try:
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
    """This node's masks: a ring element for each of the study's sums; the masks of all nodes sum to 0.

    Args: own: this node's index. attempt: the attempt's identity, so that no mask is used twice.
    """
    totals = [0] * sums
    for other, (name, public_key) in enumerate(zip(names, public_keys, strict=True)):
        if other == own:
            continue
        seed = derive(key.seed_with(public_key, name), "zero share", attempt)
        stream = Stream(seed)
        for number in range(sums):
            mask = int.from_bytes(stream.bytes(ring.bytes), "little")
            totals[number] += mask if own < other else -mask
    return [ring.encode(total) for total in totals]
