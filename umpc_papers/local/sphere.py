"""An unbiased randomiser of vectors: a record sends one bit, and all else is public.

A record holds a vector v with |v| <= r in d dimensions. A direction W, uniform on the sphere, is
public. The record becomes v/|v| or -v/|v|, with probabilities 1/2 ± |v|/(2r). It tells whether
that unit vector lies on W's side: it sends the sign of the inner product through randomised
response of gain g. Let b = ±1 be the sign that it sends. Then

    E[b W] = g (|v|/r) E|W_1| v/|v|,    E|W_1| = G(d/2)/(sqrt(pi) G((d+1)/2)),

where G is the gamma function. So rho b W with rho = r/(g E|W_1|) is unbiased. Its second moment is
rho^2/d times the unit matrix for every v, and rho^2/d is near (pi/2) r^2/g^2.

Privacy. Only one bit depends on the record, and it goes through randomised response. The ratio of
its probabilities is therefore at most e^epsilon for each W, exactly, however the sign was computed.
Rounding of floats, and a W whose last digit differs between machines, can change the bias by
1e-15. They cannot change the privacy.

Paper: Duchi, Jordan, Wainwright 2018, section 4.2.1. It draws a uniform point of the half sphere;
b W is such a point, by symmetry. Ghazi et al. 2024 use the randomiser of Blasiok et al. 2019 and
send a vector. PrivUnit (Bhowmick et al. 2018) has less variance from epsilon about 2 on, but its
probabilities are areas of caps, and it cannot send one bit.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import exp, lgamma, pi, sqrt

import numpy as np

from umpc.errors import LocalProtocolError
from umpc.mpc.arrays import Floats, Integers
from umpc_papers.exact_sampling import COIN_BITS, ShakeStream, respond

ROWS = 4096
"""The number of records whose directions are held at once."""

MANTISSA_BITS = 53
"""Bits of a float's mantissa: the odds of `bernoulli` are multiples of 2^-53."""


def mean_coordinate(dimension: int) -> float:
    """E|W_1| of a uniform direction; it is near sqrt(2/(pi d))."""
    return exp(lgamma(dimension / 2) - lgamma((dimension + 1) / 2)) / sqrt(pi)


def scale(radius: float, truth: float, dimension: int) -> float:
    """rho = r/(g E|W_1|), the norm of an unbiased vector.

    Args:
        radius: r.
        truth: g.
        dimension: d.
    """
    return radius / (truth * mean_coordinate(dimension))


def directions(seed: bytes, count: int, dimension: int) -> Iterator[tuple[slice, Floats]]:
    """The public directions of a message's records, up to `ROWS` at a time.

    Yields: the slice of records, and their directions, (rows, d) float64 of norm 1.
    """
    stream = ShakeStream(seed, "directions")
    for start in range(0, count, ROWS):
        rows = min(ROWS, count - start)
        drawn = stream.normals(rows, dimension)
        yield slice(start, start + rows), drawn / np.linalg.norm(drawn, axis=1, keepdims=True)


def tell_side(
    vectors: Floats, cell: Integers, seed: bytes, threshold: int, stream: ShakeStream
) -> Integers:
    """Each record's bit: (records,) int64, where 0 is W's side and 1 the other side.

    Args:
        vectors: (t, d) float64, the vector of each cell.
        cell: (records,) int64, each record's cell.
        seed: 32 public bytes, from which the directions follow.
        threshold: randomised response tells the truth with probability threshold/2^64.
        stream: secret randomness.
    """
    norms = np.linalg.norm(vectors, axis=1)
    # The side of v/|v|.
    side = np.zeros(len(cell), dtype=np.int64)
    for which, direction in directions(seed, len(cell), vectors.shape[1]):
        side[which] = np.einsum("id,id->i", direction, vectors[cell[which]]) < 0
    # With probability 1/2 - |v|/(2r) the record becomes -v/|v|.
    turned = bernoulli((1 - norms / norms.max()) / 2, stream, cell)
    # Randomised response of gain g.
    return respond(side ^ turned, 2, threshold, stream)


def bernoulli(odds: Floats, stream: ShakeStream, cell: Integers) -> Integers:
    """Biased coins: (records,) int64, each 1 with probability odds[cell], else 0.

    The probabilities are rounded down to multiples of 2^-53 below 1. Privacy does not depend on
    them.

    Raises:
        LocalProtocolError: a probability lies outside 0 .. 1.
    """
    if not np.all((odds >= 0) & (odds <= 1)):
        raise LocalProtocolError(
            "expected probabilities in 0 .. 1, but another number came; check the kernel's vectors"
        )
    steps = 2.0**MANTISSA_BITS
    rounded = np.minimum(np.floor(odds * steps), steps - 1).astype(np.uint64)
    thresholds = rounded << np.uint64(COIN_BITS - MANTISSA_BITS)
    return stream.coins(thresholds[cell], len(cell)).astype(np.int64)


def collect(seed: bytes, signs: Floats, form: Floats) -> tuple[Floats, float]:
    """The coordinator's sums of a message's vectors, without the factor rho.

    Args:
        seed: the message's public seed.
        signs: (groups, records) float64, the ±1 that a record sent; 0 where the record is not in
            the group.
        form: (d, d) float64.

    Returns: the sum of b W for each group, (groups, d) float64, and the sum of W' form W over all
    records.
    """
    totals = np.zeros((len(signs), len(form)))
    own = 0.0
    for which, direction in directions(seed, signs.shape[1], len(form)):
        totals += signs[:, which] @ direction
        own += float(np.sum((direction @ form) * direction))
    return totals, own
