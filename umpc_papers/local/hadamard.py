"""The Hadamard frequency oracle: from one bit for each record to an unbiased count of every value.

A record with value x below 2^l gets a public random index j below 2^l. It sends the sign
(-1)^<j,x> through randomised response of expected gain g. For a value q, sum the sent sign times
(-1)^<j,q> over all records and divide by g: the result counts the records with x = q. A fast
Walsh-Hadamard transform computes it for all q at once.

Paper: Bell et al. 2020, B.2.1, algorithms 2 and 3. Departures:

- The index is public randomness, expanded from a seed at the head of a node's message. It says
  nothing about the record, so a record sends one bit. Algorithm 2 sends l + 1 bits.
- The signs are not scaled. Algorithms 2 and 3 scale both y and z by 2^{-l/2}, so that their sum is
  2^-l times the count.
- The variance is n/g^2 - count. Lemma 5's variance, 4 n e^eps/(e^eps-1)^2 = n (1/g^2 - 1), holds
  for a value that all records have. A record with another value contributes ±1/g with equal
  probability because of its random index, so its variance is 1/g^2. The variance of a count is
  therefore n/g^2 - count. At epsilon 1 that is 27 % more than the paper's. For large epsilon the
  paper's goes to 0, and the true one goes to n for a value that no record has.

Lemma 6 holds as printed: given the records, counts of two values of one level are uncorrelated.
"""

from __future__ import annotations

import numpy as np

from umpc.mpc.arrays import Floats, Integers, Words
from umpc_papers.exact_sampling import ShakeStream, respond


def signs(index: Integers | Words, value: Integers) -> Integers:
    """The parity of the bits that index and value share; (-1)^parity is the Hadamard entry.

    Args:
        index, value: (n,) integers below 2^32.

    Returns: (n,) int64, 0 or 1.
    """
    shared = index.astype(np.int64) & value.astype(np.int64)
    for shift in (16, 8, 4, 2, 1):
        shared = shared ^ (shared >> shift)
    return shared & 1


def tell(index: Integers | Words, value: Integers, threshold: int, stream: ShakeStream) -> Integers:
    """Each record's bit (algorithm 2): its sign through randomised response of two answers.

    Args:
        threshold: the truth is told with probability threshold/2^64.

    Returns: (n,) int64, 0 or 1.
    """
    return respond(signs(index, value), 2, threshold, stream)


def tally(index: Integers | Words, told: Integers, size: int) -> Floats:
    """Sent signs ±1, summed by index (algorithm 3). Tallies of several nodes add up.

    Args:
        told: (n,) 0 or 1; 0 stands for the sign +1.

    Returns: (size,) float64, whole numbers.
    """
    sums = np.bincount(index.astype(np.int64), weights=1.0 - 2.0 * told, minlength=size)
    return sums.astype(np.float64, copy=False)  # NumPy's stubs say integers, whatever the weights


def transform(tallies: Floats) -> Floats:
    """The Walsh-Hadamard transform: the sum over j of (-1)^<j,q> tallies[j], for every q.

    It is exact for whole numbers.

    Args:
        tallies: float64; the length is a power of two.
    """
    out = tallies.astype(np.float64)
    half = 1
    while half < len(out):
        pairs = out.reshape(-1, 2, half)
        out = np.stack([pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]], axis=1).reshape(-1)
        half *= 2
    return out
