"""Numbers, their shares, and products of shared numbers and bits by what was made before the data.

Sinh & Ramon 2025, A.1: fractions are integers in steps of a fixed size, and the highest bit is the
sign. A.2: additive sharing modulo M; every proper subset of the shares is uniform. Here M = 2^w,
because sums of integers need carries, which the paper's field F_{2^ℓ} does not have.
"""

from __future__ import annotations

from typing import Any

from spec.prg import pack, unpack
from spec.refused import require


def encode(value: int, bits: int) -> int:
    """The element of Z_{2^bits} that stands for a signed integer."""
    return value % (1 << bits)


def decode(element: int, bits: int) -> int:
    """The signed integer for which an element stands."""
    return (element + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)


def share(value: int, randoms: list[int], bits: int) -> list[int]:
    """Share(p, p, x). Args: randoms: p − 1 uniform elements. The last share is what is missing."""
    return [*randoms, encode(value - sum(randoms), bits)]


def reveal(shares: list[int], bits: int) -> int:
    """Rec: the sum of all shares, as a signed integer."""
    return decode(sum(shares), bits)


def multiply(
    masked: list[int], mask_shares: list[list[int]], product_shares: list[int], bits: int
) -> list[int]:
    """Additive shares of x·y from x̂ = x + r and ŷ = y + s, which all parties know.

    Beaver 1991: x·y = x̂·ŷ − x̂·s − ŷ·r + r·s, where everything but the public products is linear
    in shares that were made before.

    Args: mask_shares: of r and of s, a share of each party. product_shares: of r·s.
    """
    x, y = masked
    shares = []
    for party, (r, s, both) in enumerate(zip(*mask_shares, product_shares, strict=True)):
        public = x * y if party == 0 else 0
        shares.append(encode(public - x * s - y * r + both, bits))
    return shares


def and_bits(
    x: list[list[int]],
    y: list[list[int]],
    triples: list[list[list[int]]],
    names: list[str],
    last_sent: bytes | None = None,
) -> dict[str, Any]:
    """XOR shares of x ∧ y among several parties, by one opening. Beaver 1991.

    Args: x, y: of each party its shares of n bits. triples: of each party its shares of n random
    bits a, of n random bits b, and of c = a ∧ b. last_sent: what the last party sends instead.
    """
    count = len(x[0])
    sent = []
    # open d = x ⊕ a and e = y ⊕ b, which are uniform, since a and b are
    for one, other, (a, b, _) in zip(x, y, triples, strict=True):
        d = [bit ^ mask for bit, mask in zip(one, a, strict=True)]
        e = [bit ^ mask for bit, mask in zip(other, b, strict=True)]
        sent.append(pack(d + e, 1))
    if last_sent is not None:
        sent[-1] = last_sent
    require(len(sent[-1]) == (2 * count + 7) // 8, "shape of a message", names[-1])
    opened = [sum(bits) % 2 for bits in zip(*(unpack(m, 2 * count, 1) for m in sent), strict=True)]
    d, e = opened[:count], opened[count:]
    shares = []
    # x ∧ y = c ⊕ d·b ⊕ e·a ⊕ d·e, and one party adds the public d·e
    for party, (a, b, c) in enumerate(triples):
        lead = int(party == 0)
        rows = zip(a, b, c, d, e, strict=True)
        shares.append([z ^ v & q ^ w & p ^ v & w & lead for p, q, z, v, w in rows])
    return {"messages": sent, "shares": shares}
