"""Zero shares: masks of the released shares that cancel in the sum over all nodes.

Sinh & Ramon 2025, protocol 3.1, step 4: every node sends its share of the noisy sum to the
aggregator. Where E falls into parts that share no record, these shares would tell sums over the
parts. So each node adds masks (Bonawitz et al. 2017, section 4, without dropouts): every two nodes
agree on a seed by X25519, the first adds its stream, the second subtracts it.
"""

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey

from spec.prg import derive, random_order, reader, words
from spec.refused import Refused


def public_key(secret: bytes) -> bytes:
    """The X25519 key that a node puts into its member. Args: secret: 32 random bytes."""
    return X25519PrivateKey.from_private_bytes(secret).public_key().public_bytes_raw()


def shared_seed(secret: bytes, peer_key: bytes, peer: str | None) -> bytes:
    """The seed that two nodes share. A key of another length or of small order is refused."""
    try:
        key = X25519PublicKey.from_public_bytes(peer_key)
        return X25519PrivateKey.from_private_bytes(secret).exchange(key)
    except ValueError:
        raise Refused("a key is usable", peer) from None


def zero_share(
    own: int,
    names: list[str],
    secret: bytes,
    public_keys: list[bytes],
    attempt: bytes,
    ring_bits: int,
    sums: int,
) -> list[int]:
    """A node's masks, one for each of the study's sums, modulo 2^ring_bits.

    Args: own: the node's place. public_keys: of all nodes; empty for a node without a common mask.
    """
    share = [0] * sums
    for other, key in enumerate(public_keys):
        if other == own or not key:
            continue
        # Bonawitz et al. 2017, section 4.0.1: u < v agree on s_uv; u adds PRG(s_uv), v subtracts
        # it. The attempt keeps two attempts apart, and the places a copied key.
        agreed = shared_seed(secret, key, names[other])
        pair = derive(agreed, "zero share", attempt, min(own, other), max(own, other))
        for number, mask in enumerate(words(pair, sums, ring_bits)):
            share[number] += mask if own < other else -mask
    return [each % (1 << ring_bits) for each in share]


def neighbours(seed: bytes, nodes: int, colluding: int, node: int) -> list[int]:
    """The nodes with which a node shares masks. Args: seed: the joint seed.

    All others; but where more than 64 nodes take part and all but one may collude, 16 on either
    side on a random circle (docs/privacy.md says why they suffice).
    """
    if nodes <= 64 or colluding < nodes - 1:
        return [other for other in range(nodes) if other != node]
    circle = random_order(nodes, reader(derive(seed, "zero shares")))
    place = circle.index(node)
    return sorted(circle[(place + step) % nodes] for step in range(-16, 17) if step)
