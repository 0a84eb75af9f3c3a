"""The first round of adaptive bins: one bit of each record, from which cut points follow.

Bell et al. 2020 leave bins that follow the data to future work (remark 4: "this might be addressed
by a multi-round protocol"). Here a record answers twice:

1. With a share of epsilon it answers one question about one field: its first l bits among nested
   halves of the field's range, through the Hadamard frequency oracle (`hadamard.py`). The
   coordinator estimates the share of the records in each part (as `bell_auc.py` does), and takes
   quantiles as cut points (`quantile_cuts.py`).
2. With the rest of epsilon it answers as in `bell_ldp.py`, with bins between these cut points.

Which field, which level and which index a record is asked is public, from a seed at the head of the
node's message. It depends on no data.

Reveals: one bit of each record, epsilon-DP for each record, whoever colludes.
Cost: one bit for each record, and a seed of 32 bytes for each message.

*Cuts.* Cut points at the quantiles of noisy shares in a tree of nested halves.

Level l of the tree has the estimated shares of the records in 2^l parts of equal width. The
estimates of all levels are made consistent, and cut points divide the records evenly:

1. From the leaves up, a part's own estimate and the sum of its two halves are combined, each
   weighted by its inverse variance (Hay et al. 2010, "Boosting the accuracy of differentially
   private histograms", section 4.1). All levels have the same variance here.
2. From the top down, the halves of a part share its mass m: the lower one gets (m + l - r)/2 for
   estimates l and r, between 0 and m. No mass is negative, and all of it is 1. A half below
   `SIGNIFICANT` standard deviations counts as empty, as noise would otherwise fill the wide empty
   parts of a range. If both halves are so small, nothing is known of them, and they are equal.
3. A cut point divides the rest above the former one by the number of bins that are left. So a value
   that many records share takes one bin, not several. Inside a leaf records count as uniform.

All operations are elementwise or in a fixed order, so equal shares give equal cut points on all
machines.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import sqrt

import numpy as np

from umpc.crypto.ring import pack, packed_size, unpack
from umpc.dp.events import check_epsilon
from umpc.dp.random_bits import RandomBits
from umpc.errors import OutOfBounds
from umpc.mpc.arrays import Floats, Integers, Words
from umpc.ustat.clear import Columns
from umpc.ustat.schema import FieldSchema
from umpc_papers.exact_sampling import (
    SEED_BYTES,
    ShakeStream,
    draw_seed,
    split_seed,
    truth_threshold,
)
from umpc_papers.local.hadamard import tally, tell, transform

MOST_SEARCHED = 10
"""Levels of nested halves: the finest part is a thousandth of the range."""

Asked = tuple[Integers, "SearchedField", int, Words]
"""One question: (records that are asked, the field, the level, (records,) their indices)."""
Shares = dict[str, list[Floats]]
"""Field → the shares of the records: (2^l,) float64 for each level l from 1."""
Masses = dict[str, Floats]
"""Field → numbers of its leaves, or of its values."""


@dataclass(frozen=True)
class SearchedField:
    """A field whose cut points are searched. bins: at least 2, at most its number of values."""

    field: FieldSchema
    bins: int

    @property
    def values(self) -> int:
        """The number of values between the bounds."""
        return self.field.upper_units - self.field.lower_units + 1

    @property
    def levels(self) -> int:
        """L: the leaves are 2^L parts, or single values where there are fewer."""
        return min(MOST_SEARCHED, (self.values - 1).bit_length())

    @property
    def width(self) -> int:
        """How many values a leaf has."""
        return -(-self.values >> self.levels)

    def leaves(self, columns: Columns) -> Integers:
        """Each record's leaf: (records,) int64. Raises: OutOfBounds."""
        field, column = self.field, columns[self.field.name]
        if len(column) and (column.min() < field.lower_units or column.max() > field.upper_units):
            raise OutOfBounds(
                f"a value of the field {field.name!r} lies outside its bounds; "
                "widen the bounds or clip the data"
            )
        return (column - field.lower_units) // self.width


@dataclass(frozen=True)
class BinSearch:
    """The search for cut points, epsilon-DP for each record in the local model.

    Args:
        epsilon: > 0, exact; of the first answer alone.
        fields: at least one.

    Raises:
        InvalidEpsilon: epsilon is not exact, or so small that no record would tell the truth.
    """

    epsilon: Fraction
    fields: tuple[SearchedField, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", check_epsilon(self.epsilon))
        _ = self.threshold

    @cached_property
    def threshold(self) -> int:
        """A record's bit is the truth with probability threshold/2^64, else a fair coin."""
        return truth_threshold(self.epsilon, 2)

    @property
    def truth(self) -> float:
        """g, the gain of a bit."""
        return self.threshold / 2.0**64

    # --- the node ------------------------------------------------------------------------------

    def randomise(self, columns: Columns, bits: RandomBits) -> bytes:
        """A node's message: a public seed, then one bit of each record.

        Args: columns: field → (records,) int64, in steps of the field's resolution.
        """
        leaves = {each.field.name: each.leaves(columns) for each in self.fields}
        count = len(next(iter(leaves.values())))
        public = draw_seed(bits)
        stream = ShakeStream(draw_seed(bits), "bin search private")
        answers = np.zeros(count, dtype=np.int64)
        for records, searched, level, index in self.questions(public, count):
            # The first `level` bits of the record's place.
            part = leaves[searched.field.name][records] >> (searched.levels - level)
            answers[records] = tell(index, part, self.threshold, stream)
        return public + pack(answers, 1)

    def questions(self, public: bytes, count: int) -> list[Asked]:
        """Which records are asked about which field and level, and with which index.

        Every record is asked once. The fields and levels have equally many records, or nearly.
        """
        stream = ShakeStream(public, "bin search public")
        topics = [(each, level) for each in self.fields for level in range(1, each.levels + 1)]
        order = np.argsort(stream.words(count), kind="stable")
        start = int(stream.below(len(topics), 1)[0])
        asked = []
        for number, (searched, level) in enumerate(topics):
            records = order[(start + number) % len(topics) :: len(topics)]
            index = stream.words(len(records)) >> np.uint64(64 - level)
            asked.append((records, searched, level, index))
        return asked

    # --- the coordinator -----------------------------------------------------------------------

    def check(self, message: bytes, count: int) -> None:
        """Raises: EncodingError where the message of `count` records does not decode."""
        _, body = split_seed(message)
        unpack(body, count, 1)

    def shares(self, messages: Sequence[bytes], counts: Sequence[int]) -> Shares:
        """The estimated shares of the records: by field, (2^l,) float64 for each level l from 1.

        Raises: EncodingError where a message does not decode.
        """
        sums = {each.field.name: _zeros(each) for each in self.fields}
        heard = {each.field.name: np.zeros(each.levels) for each in self.fields}
        for message, count in zip(messages, counts, strict=True):
            public, body = split_seed(message)
            told = unpack(body, count, 1).astype(np.int64)
            for records, searched, level, index in self.questions(public, count):
                name = searched.field.name
                sums[name][level - 1] += tally(index, told[records], 1 << level)
                heard[name][level - 1] += len(records)
        return {
            name: [
                transform(tallies) / (self.truth * max(asked, 1.0))
                for tallies, asked in zip(of, heard[name], strict=True)
            ]
            for name, of in sums.items()
        }

    def masses(self, shares: Shares, records: int = 0) -> Masses:
        """The mass of each leaf, by field.

        Args: shares: of `shares`, or exact ones. records: that gave noisy shares; 0 for exact ones.
        """
        topics = sum(each.levels for each in self.fields)
        variance = topics / (self.truth**2 * records) if records else 0.0
        return {name: consistent(levels, variance) for name, levels in shares.items()}

    def cuts(self, masses: Masses) -> list[tuple[int, ...]]:
        """Each field's cut points at quantiles, in steps above its lower bound."""
        return [
            quantile_cuts(masses[each.field.name], each.bins, each.width, each.values)
            for each in self.fields
        ]

    def measures(self, masses: Masses) -> Masses:
        """λ of each value, by field: (values,) float64."""
        return {
            each.field.name: measure_of_values(masses[each.field.name], each.width, each.values)
            for each in self.fields
        }

    def exact_shares(self, columns: Columns) -> Shares:
        """The shares of these records without noise, as `shares`."""
        found = {}
        for each in self.fields:
            leaf = each.leaves(columns)
            found[each.field.name] = [
                np.bincount(leaf >> (each.levels - level), minlength=1 << level) / max(len(leaf), 1)
                for level in range(1, each.levels + 1)
            ]
        return found

    def message_bytes(self, records: int) -> int:
        """Bytes of the first message of a node with this many records."""
        return SEED_BYTES + packed_size(records, 1)


def _zeros(searched: SearchedField) -> list[Floats]:
    return [np.zeros(1 << level) for level in range(1, searched.levels + 1)]


# --- cuts -----------------------------------------------------------------------------------------


SIGNIFICANT = 2.0
"""Standard deviations from which on the mass of half of a part counts as not empty."""
EVEN = 2.0**-30
"""The share of λ that does not follow the estimated masses."""


def consistent(levels: Sequence[Floats], variance: float = 0.0) -> Floats:
    """The mass of each leaf: (2^L,) float64, at least 0, of sum 1.

    Args:
        levels: the estimated shares of levels 1 to L, (2^l,) float64 each.
        variance: of each of them; 0 without noise.
    """
    combined = [levels[-1]]
    variances = [variance]
    weight = 1.0
    # Step 1: up. `weight` is the variance of a combined share, divided by that of a single one.
    for own in reversed(levels[:-1]):
        below = combined[-1][0::2] + combined[-1][1::2]
        of_both = 2 * weight
        combined.append((own * of_both + below) / (of_both + 1))
        weight = of_both / (of_both + 1)
        variances.append(variance * weight)
    # Step 2: down.
    mass = np.ones(1)
    for shares, spread in zip(reversed(combined), reversed(variances), strict=True):
        lower = _lower_half(mass, shares, SIGNIFICANT * sqrt(spread / 2))
        mass = np.stack([lower, mass - lower], axis=1).reshape(-1)
    return mass


def _lower_half(mass: Floats, shares: Floats, least: float) -> Floats:
    """The masses of lower halves. Args: mass: of both together. least: that counts as not empty."""
    lower = np.clip((mass + shares[0::2] - shares[1::2]) / 2, 0, mass)
    is_low = lower < least
    is_high = mass - lower < least
    lower = np.where(is_low & ~is_high, 0.0, lower)
    lower = np.where(is_high & ~is_low, mass, lower)
    halves: Floats = np.where(is_low & is_high, mass / 2, lower)
    return halves


def quantile_cuts(mass: Floats, bins: int, width: int, values: int) -> tuple[int, ...]:
    """The cut points between bins of about equal mass, ascending in 1 .. values - 1.

    Args:
        mass: (leaves,) of sum 1. bins: at least 1, at most `values`.
        width: of a leaf, in values. values: how many there are; the last leaves may have none.
    """
    below = np.concatenate([np.zeros(1), np.cumsum(mass)])
    cuts: list[int] = []
    for left in range(bins, 1, -1):
        done = _mass_below(below, cuts[-1] / width) if cuts else 0.0
        # Step 3: an even part of the rest.
        place = _quantile(below, done + (below[-1] - done) / left) * width
        least = cuts[-1] + 1 if cuts else 1
        cuts.append(min(max(least, round(place)), values - left + 1))
    return tuple(cuts)


def measure_of_values(mass: Floats, width: int, values: int) -> Floats:
    """λ of each value: (values,) float64, above 0, for the average kernel between bins.

    A leaf's mass is even over its values. A share of `EVEN` is even over all, so no bin is empty.
    """
    return (1 - EVEN) * np.repeat(mass / width, width)[:values] + EVEN / values


def _quantile(below: Floats, share: float) -> float:
    """The place, in leaves, below which this share of the mass lies."""
    leaf = min(max(int(np.searchsorted(below, share)) - 1, 0), len(below) - 2)
    inside = float(below[leaf + 1] - below[leaf])
    return leaf + (float(share - below[leaf]) / inside if inside > 0 else 1.0)


def _mass_below(below: Floats, place: float) -> float:
    """The mass below a place, in leaves."""
    leaf = min(int(place), len(below) - 2)
    return float(below[leaf] + (below[leaf + 1] - below[leaf]) * (place - leaf))
