"""Each central mechanism by its name, with parameters that are public.

Public are the kernel, ε, the numbers of records and sets, and what a study says of τ or ξ.

| name | protocol | usual parameters, C the kernel's range |
|---|---|---|
| `laplace` | `GlobalSensitivity` | C |
| `coinpress_naive`, `coinpress_all`, `coinpress_subsampled` | `PrivateTuples` | τ = C/2 |
| `hajek`, `hajek_subsampled` | `LocalHajek` | ξ = C |
| `hajek_split` | `SplitHajek` | τ = C/2 |

A variable in a range C is C/2-sub-Gaussian (Hoeffding 1963), and no H_i is farther than C from A.
Both facts hold for every table. So nothing is ever clipped, cut or weighted down: every estimate is
the mean over its family plus noise. The noise has exactly the predicted variance for all records,
except that CoinPress also rounds to 1/2^16 of one record's largest effect. The price is that these
mechanisms improve on `laplace` only with more knowledge than the range, for example that the values
or the H_i lie close together. With these parameters `laplace` is therefore the best of them. A
study with more knowledge states a smaller τ or ξ. The release is ε-DP for every table then too. If
the knowledge is wrong, values are clipped or sets weigh less, and the noise of the Hájek mechanisms
is larger than predicted.

*The error of taking sets.* Let v <= C²/4 be the variance of f over all sets of this table. The mean
over the family differs from the mean over all sets by a variance of at most

- v/M for M independent sets,
- v (1/m + λ) for m disjoint sets, where λ = C(n-k-2, k-2)/C(n-k, k), and λ = 0 for k = 1. The
  values of two disjoint sets have a covariance of at most λ v. λ is the second of the nonnegative
  eigenvalues of Kneser's graph over its degree (Lovász 1979; it needs n >= 2k).

All sets of a random part of n' records do no worse than n' // k disjoint sets. Given the part, the
mean over all its sets is the expectation of the mean over disjoint sets.

Paper: Chaudhuri, Loh, Pandey, Sarkar 2024.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import comb

from umpc.dp.events import PureEvent
from umpc.dp.random_bits import RandomBits
from umpc.errors import RangeError, StudyError, TooFewRecords
from umpc.protocols.central.adaptations import PrivateTuples, all_tuples, naive, subsampled
from umpc.protocols.central.global_sensitivity import GlobalSensitivity
from umpc.protocols.central.hajek import LocalHajek
from umpc.protocols.central.split import SplitHajek
from umpc.protocols.central.terms import SUM_BITS, CompleteFamily, Family, share
from umpc.ustat.clear import Columns
from umpc.ustat.kernel import Kernel

NAMES = (
    "laplace",
    "coinpress_naive",
    "coinpress_all",
    "coinpress_subsampled",
    "hajek",
    "hajek_subsampled",
    "hajek_split",
)
MOST_SETS = 1 << 30
"""The largest number of sets of records: they take minutes."""
MOST_VALUES = 1 << 27
"""The largest number of values that CoinPress holds at once: they take a gibibyte."""
MOST_BITS = SUM_BITS
"""The largest number of bits of a sum, as in `terms`."""

CentralMechanism = GlobalSensitivity | PrivateTuples | LocalHajek | SplitHajek
"""The protocols behind the names."""


@dataclass(frozen=True)
class Choice:
    """A mechanism with its parameters, epsilon-DP for replace-one.

    Args:
        name: one of `NAMES`.
        kernel: symmetric.
        epsilon: > 0, exact.
        count: M of a subsampled family, else 0.
        spread: τ, in values; None takes half the range, which always holds.
        concentration: ξ, in values; None takes the range, which always holds.

    Raises:
        InvalidEpsilon: epsilon is not exact or not above 0.
        StudyError: another parameter is out of its range.
    """

    name: str
    kernel: Kernel
    epsilon: Fraction
    count: int = 0
    spread: Fraction | None = None
    concentration: Fraction | None = None

    def __post_init__(self) -> None:
        if self.name not in NAMES:
            raise StudyError(f"the mechanism must be one of {', '.join(NAMES)}, got {self.name!r}")
        _ = self.protocol

    @cached_property
    def protocol(self) -> CentralMechanism:
        """The protocol, with the parameters of the module's table."""
        kernel = self.kernel
        epsilon = self.epsilon
        width = kernel.interval.width
        usual = max(width, kernel.unit) / 2
        spread = usual if self.spread is None else min(self.spread, usual)
        xi = width if self.concentration is None else min(self.concentration, width)
        makers: dict[str, Callable[[], CentralMechanism]] = {
            "laplace": lambda: GlobalSensitivity(kernel, epsilon),
            "coinpress_naive": lambda: naive(kernel, epsilon, spread),
            "coinpress_all": lambda: all_tuples(kernel, epsilon, spread),
            "coinpress_subsampled": lambda: subsampled(kernel, epsilon, spread, self.count),
            "hajek": lambda: LocalHajek(kernel, epsilon, xi),
            "hajek_subsampled": lambda: LocalHajek(kernel, epsilon, xi, self.count),
            "hajek_split": lambda: SplitHajek(kernel, epsilon, spread),
        }
        return makers[self.name]()

    def check_records(self, records: int) -> None:
        """Check the number of records, before anything leaves a node.

        Raises:
            TooFewRecords: there are too few records for this mechanism.
            RangeError: there are too many sets, or a sum may not fit 62 bits.
        """
        k = self.kernel.degree
        least = 4 * k if self.splits else max(2, k)
        if records < least:
            raise TooFewRecords(
                f'"{self.name}" over sets of {k} needs at least {least} records, {records} came'
            )
        sets = self.sets(records)
        most = MOST_VALUES if self.name.startswith("coinpress") else MOST_SETS
        if sets > most:
            raise RangeError(
                f'"{self.name}" over {records:,} records averages {sets:,} sets, '
                f"at most {most:,} are possible; take fewer records, "
                "or a subsampled mechanism with at most this number of sets"
            )
        if sets * self.kernel.magnitude_units >= 1 << MOST_BITS:
            raise RangeError(
                f"the sum of {sets:,} values of the kernel may not fit {MOST_BITS} bits; "
                "take coarser resolutions of its fields"
            )

    @property
    def splits(self) -> bool:
        """Whether the estimate averages sets of a half of the records."""
        return self.name == "hajek_split"

    def averaged_records(self, records: int) -> int:
        """The number of records whose sets the estimate averages."""
        return records - records // 2 if self.splits else records

    def sets(self, records: int) -> int:
        """The number of sets that the estimate averages."""
        k = self.kernel.degree
        if self.name == "coinpress_naive":
            return records // k
        return self.count or comb(self.averaged_records(records), k)

    def estimate(self, columns: Columns, bits: RandomBits) -> Fraction:
        """The noisy mean, in the kernel's values.

        Reveals: this number.
        """
        return self.protocol.estimate(columns, bits)

    def family(self, records: int, bits: RandomBits) -> Family:
        """The sets that `estimate` averages when it is given the same bits."""
        if isinstance(self.protocol, PrivateTuples):
            return self.protocol.draw(records, bits)
        if isinstance(self.protocol, LocalHajek):
            return self.protocol.family(records, bits)
        return CompleteFamily(self.averaged_records(records), self.kernel.degree)

    def noise_std(self, records: int, family: Family) -> float:
        """Standard deviation of the answer's noise, in values; it is exact for all tables."""
        if isinstance(self.protocol, PrivateTuples):
            part = share(family)
            return math.sqrt(self.protocol.coinpress(records, part).noise_variance(part))
        if isinstance(self.protocol, LocalHajek):
            return math.sqrt(self.protocol.noise_variance(family))
        return math.sqrt(self.protocol.noise_variance(records))

    def sampling_bound(self, records: int) -> float:
        """Upper bound on the standard deviation of taking a family, not all sets, in values."""
        k = self.kernel.degree
        half = float(self.kernel.interval.width) / 2
        if self.name in ("laplace", "coinpress_all", "hajek"):
            return 0.0
        if self.count:
            return half / math.sqrt(self.count)
        taken = self.averaged_records(records) // k
        # λ, the bound on the covariance of two disjoint sets.
        shared = 0.0
        if k >= 2 and 2 * k <= records:
            shared = comb(records - k - 2, k - 2) / comb(records - k, k)
        return half * math.sqrt(min(1.0, 1 / taken + shared))

    @property
    def event(self) -> PureEvent:
        """The privacy event that the accountant charges."""
        return self.protocol.event
