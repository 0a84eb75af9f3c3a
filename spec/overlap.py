"""How many people two sites share: points of a curve, dummies as noise, and two released lists.

Meadows 1986; De Cristofaro, Gasti & Tsudik 2012 count equal points H(x)^ab of two lists. There one
site learns the exact number. Here each site hides its noise among dummies, and both lists go to the
coordinator, once both sites have charged: nobody sees the number without the noise of an honest
site. That a point says nothing needs the decisional Diffie–Hellman assumption in the group of prime
order of edwards25519 (RFC 8032), with SHAKE-256 and the map of RFC 9380 as a random oracle.
"""

from fractions import Fraction
from hashlib import shake_256
from io import BytesIO
from math import ceil
from typing import Any

from nacl import bindings as sodium

from spec.base_transfers import is_valid_point, times
from spec.noise import Source, own_share
from spec.prg import cut, stream
from spec.refused import require

LOG_OF_DELTA = Fraction(27632, 1000)
"""Above ln(10^12)."""
LEFT_BYTES = 6
"""The bytes of a point that leave a site in the end."""
ALL_BYTES = 1 << 16
"""More random bytes than a site needs."""


def hashed(text: bytes) -> bytes:
    """RFC 9380, section 3: the sum of two maps of uniform bytes, because one reaches half."""
    halves = cut(shake_256(b"umpc overlap 1" + text).digest(64), 32)
    return sodium.crypto_core_ed25519_add(*map(sodium.crypto_core_ed25519_from_uniform, halves))


def hidden(epsilon: Fraction, source: Source) -> int:
    """Discrete Laplace noise of scale 1/ε, given that it is between −t and t: (ε, 10^−12)-DP.

    Two numbers that differ by 1 have all values in common but one end of each, of at most e^(−εt).
    """
    while True:
        drawn = own_share(1, epsilon, source)
        if abs(drawn) <= most_hidden(epsilon):
            return drawn


def most_hidden(epsilon: Fraction) -> int:
    """t."""
    return ceil(LOG_OF_DELTA / epsilon)


def texts(
    study: bytes, site: int, people: list[str], most: int, noise: int, nobody: bytes
) -> list[bytes]:
    """A text of each person and of 4t dummies: 2t for the noise of each site.

    This site takes all dummies for the other site's noise. For its own noise it takes t + noise,
    and t − noise that hold its secret, which nobody else can make.
    """
    found = [b"person" + study + each.encode() for each in people]
    for whose in (0, 1):
        shared = most + noise if whose == site else 2 * most
        for number in range(2 * most):
            known = bytes(64) if number < shared else nobody
            found.append(b"dummy%d" % whose + study + number.to_bytes(8, "little") + known)
    return found


def number(lists: list[bytes], most: int) -> int:
    """The number of people at both sites, and both sites' noise."""
    first, second = (set(cut(each, LEFT_BYTES)) for each in lists)
    return len(first & second) - 2 * most


def comparison(
    study: bytes,
    epsilon: list[int],
    people: list[list[str]],
    seeds: list[bytes],
    sender: int = 0,
    payload: bytes = b"",
) -> dict[str, Any]:
    """One comparison. Args: seeds: all randomness of each site. payload: in place of a message."""
    ratio = Fraction(*epsilon)
    most = most_hidden(ratio)
    names = ("first", "second")
    scalars, noises, messages, released = [], [], [], []
    # prepare: each site draws all that it will need
    for site, seed in enumerate(seeds):
        source = BytesIO(stream(seed, ALL_BYTES)).read
        scalars.append(sodium.crypto_core_ed25519_scalar_reduce(source(64)))
        nobody = source(64)
        noises.append(hidden(ratio, source))
        # round 1, to the other site: H(x)^a, in the order of bytes, which says nothing
        own = texts(study, site, people[site], most, noises[site], nobody)
        messages.append(b"".join(sorted(times(scalars[site], hashed(each)) for each in own)))
    if payload:
        messages[sender] = payload
    # release, to the coordinator: the other site's points to the power of one's own key
    for site, scalar in enumerate(scalars):
        points = cut(messages[1 - site], 32)
        for point in points:
            # a point of small order would tell whether it comes back
            require(is_valid_point(point), "a key is a point", names[1 - site])
        twice = sorted(times(scalar, point) for point in points)
        released.append(b"".join(point[:LEFT_BYTES] for point in twice))
    sent = {"messages": messages, "released": released}
    return {"noises": noises, **sent, "number": number(released, most)}
