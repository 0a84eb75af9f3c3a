"""The law of the sums of all messages of `BellAuc`: a run over 2·10^6 records in under a second.

With users split, each record answers one question about one level. It gets a uniform index and
tells the sign of index and value, which a coin of odds (1 − g)/2 turns. A message's records are
spread evenly over the levels, at random.

Here one 64-bit word of a numpy generator is a record's index (the highest bits) and its coin (the
lowest 44). No bits are packed, sent and unpacked. Everything else is the protocol's: indices,
signs, transform, walk. Only the coin's odds are rounded, to 2^-44.
`tests/reproduction/figures/test_figures_001.py` tests that all tallies have the same law as those
of whole messages.
"""

from __future__ import annotations

import numpy as np

from umpc_papers.local.bell_auc import BellAuc
from umpc_papers.local.hadamard import signs

COIN_BITS = 44


def draw_auc(
    protocol: BellAuc, negatives: np.ndarray, positives: np.ndarray, rng: np.random.Generator
) -> float:
    """The estimate of a run in which each class sends one message.

    Args: negatives, positives: (n,) int64, in steps of the field. protocol: with `split = "users"`.
    """
    counts = []
    for column in (negatives, positives):
        leaf = protocol.leaves({protocol.field.name: column})
        counts.append(protocol.counts(draw_tallies(protocol, leaf, rng), len(leaf)))
    return protocol.value(*counts)


def draw_tallies(protocol: BellAuc, leaf: np.ndarray, rng: np.random.Generator) -> list[np.ndarray]:
    """One message's told signs, summed by index, for level 0 (nothing) to alpha.

    leaf: (n,) int64.
    """
    shuffled = (
        leaf if len(leaf) and leaf.min() == leaf.max() else rng.permutation(leaf.astype(np.int32))
    )
    start = int(rng.integers(protocol.levels))
    tallies = [np.zeros(1)]
    for level in range(1, protocol.levels + 1):
        value = shuffled[(start + level - 1) % protocol.levels :: protocol.levels] >> (
            protocol.levels - level
        )
        tallies.append(_tally(protocol.truth, value, level, rng))
    return tallies


def _tally(truth: float, value: np.ndarray, level: int, rng: np.random.Generator) -> np.ndarray:
    words = rng.integers(0, 1 << 64, len(value), dtype=np.uint64)
    index = (words >> np.uint64(64 - level)).astype(np.int64)
    is_turned = (words & np.uint64((1 << COIN_BITS) - 1)) < np.uint64(
        round((1 - truth) / 2 * (1 << COIN_BITS))
    )
    told = signs(index, value) ^ is_turned
    return np.bincount(index, minlength=1 << level) - 2.0 * np.bincount(
        index[told == 1], minlength=1 << level
    )
