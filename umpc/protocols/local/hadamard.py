"""The Hadamard frequency oracle: from one bit a record to an unbiased count for every value.

A record with value x below 2^l gets a public random index j below 2^l and tells the sign (-1)^<j,x>, through
randomised response with expected gain g. The sum over records of told sign times (-1)^<j,q>, divided by g, counts the
records with x = q, for all q at once by a fast Walsh-Hadamard transform.

Paper: Bell et al. 2020, B.2.1, algorithms 2 and 3. Departures:
- The index is public randomness, expanded from a seed at the head of a node's message: it says nothing of the record,
  so a record sends one bit, where algorithm 2 sends l + 1.
- The signs are not scaled. Algorithms 2 and 3 scale both y and z by 2^{-l/2}, so their sum is 2^-l times the count.
- Lemma 5's variance, 4 n e^eps/(e^eps-1)^2 = n (1/g^2 - 1), holds for a value that all records have. A record with
  another value contributes ±1/g, with equal odds because of its random index: variance 1/g^2. So it is n/g^2 - count,
  `count_variance`; at epsilon 1 that is 27 % more, and for large epsilon, where the paper's goes to 0, it is n.
Lemma 6, counts of two values of one level are uncorrelated given the records, holds as it is.
"""

from __future__ import annotations

import numpy as np

from umpc.dp.exact_sampling import ShakeStream, respond


def signs(index: np.ndarray, value: np.ndarray) -> np.ndarray:
    """(n,) 0 or 1: the parity of the bits that index and value share, below 2^32; (-1)^it is the Hadamard entry."""
    shared = index.astype(np.int64) & value.astype(np.int64)
    for shift in (16, 8, 4, 2, 1):
        shared = shared ^ (shared >> shift)
    return shared & 1


def tell(index: np.ndarray, value: np.ndarray, threshold: int, stream: ShakeStream) -> np.ndarray:
    """What records send: (n,) 0 or 1, their sign through randomised response of two answers."""
    return respond(signs(index, value), 2, threshold, stream)


def tally(index: np.ndarray, told: np.ndarray, size: int) -> np.ndarray:
    """(size,) float64, whole numbers: told signs ±1 summed by index. Tallies of nodes add up."""
    return np.bincount(index.astype(np.int64), weights=1.0 - 2.0 * told, minlength=size)


def transform(tallies: np.ndarray) -> np.ndarray:
    """sum over j of (-1)^<j,q> tallies[j], for every q; exact for whole numbers. Length a power of two."""
    out, half = tallies.astype(np.float64), 1
    while half < len(out):
        pairs = out.reshape(-1, 2, half)
        out = np.stack([pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]], axis=1).reshape(-1)
        half *= 2
    return out


def count_variance(records: float, truth: float, count: float = 0.0) -> float:
    """Of the count of a value that `count` of the records have; truth: g, the gain of a record's bit."""
    return records / truth**2 - count


def lemma_5(records: float, epsilon: float) -> float:
    """The paper's bound of the same, 4 n e^eps/(e^eps-1)^2, too small by n - count."""
    return float(records / np.sinh(epsilon / 2) ** 2)
