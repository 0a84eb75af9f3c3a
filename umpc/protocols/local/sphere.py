"""An unbiased randomiser of vectors: one bit a record, the rest public.

A record holds v with |v| <= r in d dimensions. A direction W, uniform on the sphere, is public. The record becomes
v/|v| or -v/|v|, with odds 1/2 ± |v|/(2r), and tells whether that lies on W's side: the sign of the inner product,
through randomised response of gain g. With b = ±1 what it told,

    E[b W] = g (|v|/r) E|W_1| v/|v|,     so     rho b W,   rho = r/(g E|W_1|),   E|W_1| = G(d/2)/(sqrt(pi) G((d+1)/2)),

is unbiased. Its second moment is rho^2/d times the unit matrix, whatever v: rho^2/d is near (pi/2) r^2/g^2.

Privacy. All that depends on the record is one bit through randomised response, so the ratio of odds is at most
e^epsilon for each W, exactly, however the sign was computed: floats, and a W that differs in its last digit between
machines, can change the bias (by 1e-15) and not the privacy.

Paper: Duchi, Jordan, Wainwright 2018, section 4.2.1 (a uniform point of the half sphere; b W is one, by symmetry).
Ghazi et al. 2024 use the randomiser of Blasiok et al. 2019 and send a vector. PrivUnit (Bhowmick et al. 2018) has less
variance from epsilon about 2 on; its odds are areas of caps, and it cannot send one bit.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import exp, lgamma, pi, sqrt

import numpy as np

from umpc.dp.exact_sampling import COIN_BITS, ShakeStream, respond
from umpc.errors import LocalProtocolError

ROWS = 4096
"""Records whose directions are held at once."""


def mean_coordinate(dimension: int) -> float:
    """E|W_1| of a uniform direction; near sqrt(2/(pi d))."""
    return exp(lgamma(dimension / 2) - lgamma((dimension + 1) / 2)) / sqrt(pi)


def scale(radius: float, truth: float, dimension: int) -> float:
    """rho."""
    return radius / (truth * mean_coordinate(dimension))


def directions(seed: bytes, count: int, dimension: int) -> Iterator[tuple[slice, np.ndarray]]:
    """Public directions of a message's records, some at a time: (which, (rows, d) float64 of norm 1)."""
    stream = ShakeStream(seed, "directions")
    for start in range(0, count, ROWS):
        rows = min(ROWS, count - start)
        drawn = stream.normals(rows, dimension)
        yield slice(start, start + rows), drawn / np.linalg.norm(drawn, axis=1, keepdims=True)


def tell_side(
    vectors: np.ndarray, cell: np.ndarray, seed: bytes, threshold: int, stream: ShakeStream
) -> np.ndarray:
    """What records send: (records,) 0 or 1; 0 is W's side.

    Args: vectors: (t, d), of each cell. cell: (records,). seed: public. threshold: of randomised response.
    """
    norms = np.linalg.norm(vectors, axis=1)
    side = np.zeros(len(cell), dtype=np.int64)
    for which, direction in directions(seed, len(cell), vectors.shape[1]):
        side[which] = np.einsum("id,id->i", direction, vectors[cell[which]]) < 0
    turned = bernoulli((1 - norms / norms.max()) / 2, stream, cell)
    return respond(side ^ turned, 2, threshold, stream)


def bernoulli(odds: np.ndarray, stream: ShakeStream, cell: np.ndarray) -> np.ndarray:
    """(records,) 0 or 1, one with odds[cell], rounded down to 2^-53, below 1. Privacy does not rest on these."""
    if not np.all((odds >= 0) & (odds <= 1)):
        raise LocalProtocolError("odds must lie in 0 .. 1")
    thresholds = np.minimum(np.floor(odds * 2.0**53), 2.0**53 - 1).astype(np.uint64) << np.uint64(
        COIN_BITS - 53
    )
    return stream.coins(thresholds[cell], len(cell)).astype(np.int64)


def collect(seed: bytes, signs: np.ndarray, form: np.ndarray) -> tuple[np.ndarray, float]:
    """What the coordinator adds up, without rho.

    Args: signs: (groups, records) float64, ±1 for what a record told, 0 where it is not in the group. form: (d, d).

    Returns: sum of b W for each group, (groups, d), and the sum over all records of W' form W.
    """
    totals, own = np.zeros((len(signs), len(form))), 0.0
    for which, direction in directions(seed, signs.shape[1], len(form)):
        totals += signs[:, which] @ direction
        own += float(np.sum((direction @ form) * direction))
    return totals, own
