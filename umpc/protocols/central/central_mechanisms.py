"""Each mechanism by its name, with parameters from what is public alone: kernel, ε, numbers of records and sets.

| name | protocol | parameters, C the kernel's range |
|---|---|---|
| `laplace` | `GlobalSensitivity` | C |
| `coinpress_naive`, `coinpress_all`, `coinpress_subsampled` | `PrivateTuples` | τ = C/2 |
| `hajek`, `hajek_subsampled` | `LocalHajek` | ξ = C |
| `hajek_split` | `SplitHajek` | τ = C/2 |

A variable in a range C is C/2-sub-Gaussian (Hoeffding 1963), and no H_i is farther than C from A: both hold for every
table. So nothing is ever clipped, cut or weighted down, every estimate is the mean over its family plus noise, and the
noise has exactly the predicted variance, whatever the records are (CoinPress besides rounds to 1/2^16 of what one
record moves). The price: these mechanisms gain only from knowing more than the range (that values or H_i lie close
together), so here `laplace` is the best of them. Who knows more calls the protocols themselves, with a smaller τ or ξ.

Taking sets. The mean over the family misses that over all sets by a variance of at most, with v <= C²/4 that of f over
all sets of this table: v/M for M independent sets; for m disjoint ones v (1/m + λ), λ = C(n-k-2, k-2)/C(n-k, k) (0 for
k = 1), as the values of two disjoint sets have a covariance of at most λ v: the second of the nonnegative eigenvalues
of Kneser's graph, over its degree (Lovász 1979; needs n >= 2k). All sets of a random part of n' records do no worse
than n' // k disjoint ones, of which they are the mean given the part.

Paper: Chaudhuri, Loh, Pandey, Sarkar 2024.
"""

from __future__ import annotations

import math
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
from umpc.protocols.central.terms import CompleteFamily, Family, share
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
"""Of all sets of records: minutes of work."""
MOST_VALUES = 1 << 27
"""Of values that CoinPress holds at once: a gibibyte."""
MOST_BITS = 62
"""Of a sum, as in `terms`."""


@dataclass(frozen=True)
class Choice:
    """epsilon-DP, replace-one.

    Args: name: of `NAMES`. kernel: symmetric. epsilon: exact, > 0. count: M of a subsampled family, else 0.
    """

    name: str
    kernel: Kernel
    epsilon: Fraction
    count: int = 0

    def __post_init__(self) -> None:
        if self.name not in NAMES:
            raise StudyError(f"the mechanism must be one of {', '.join(NAMES)}, got {self.name!r}")
        _ = self.protocol

    @cached_property
    def protocol(self) -> GlobalSensitivity | PrivateTuples | LocalHajek | SplitHajek:
        kernel, epsilon, width = self.kernel, self.epsilon, self.kernel.interval.width
        spread = max(width, kernel.unit) / 2
        makers = {
            "laplace": lambda: GlobalSensitivity(kernel, epsilon),
            "coinpress_naive": lambda: naive(kernel, epsilon, spread),
            "coinpress_all": lambda: all_tuples(kernel, epsilon, spread),
            "coinpress_subsampled": lambda: subsampled(kernel, epsilon, spread, self.count),
            "hajek": lambda: LocalHajek(kernel, epsilon, width),
            "hajek_subsampled": lambda: LocalHajek(kernel, epsilon, width, self.count),
            "hajek_split": lambda: SplitHajek(kernel, epsilon, spread),
        }
        return makers[self.name]()

    def check_records(self, records: int) -> None:
        """Raises: TooFewRecords, RangeError: before anything leaves a node."""
        k = self.kernel.degree
        least = 4 * k if self.name == "hajek_split" else max(2, k)
        if records < least:
            raise TooFewRecords(
                f'"{self.name}" over sets of {k} needs at least {least} records, {records} came'
            )
        sets, most = (
            self.sets(records),
            MOST_VALUES if self.name.startswith("coinpress") else MOST_SETS,
        )
        if sets > most:
            raise RangeError(
                f'"{self.name}" over {records:,} records averages {sets:,} sets, at most {most:,} are possible; take '
                f"fewer records, or so many sets with a subsampled mechanism"
            )
        if sets * self.kernel.magnitude_units >= 1 << MOST_BITS:
            raise RangeError(
                f"the sum of {sets:,} values of the kernel may not fit {MOST_BITS} bits; take coarser resolutions of "
                f"its fields"
            )

    def sets(self, records: int) -> int:
        """How many the estimate is the mean of."""
        k = self.kernel.degree
        if self.name == "coinpress_naive":
            return records // k
        return self.count or comb(
            records - records // 2 if self.name == "hajek_split" else records, k
        )

    def estimate(self, columns: Columns, bits: RandomBits) -> Fraction:
        """The noisy mean, in the kernel's values. Reveals: this number."""
        return self.protocol.estimate(columns, bits)

    def family(self, records: int, bits: RandomBits) -> Family:
        """The sets that `estimate` averages if it is given the same bits."""
        k = self.kernel.degree
        if isinstance(self.protocol, PrivateTuples):
            return self.protocol.draw(records, bits)
        if isinstance(self.protocol, LocalHajek):
            return self.protocol.family(records, bits)
        return CompleteFamily(records - records // 2 if self.name == "hajek_split" else records, k)

    def noise_std(self, records: int, family: Family) -> float:
        """Of the answer, exactly, in values: whatever the records are."""
        if isinstance(self.protocol, PrivateTuples):
            part = share(family)
            return math.sqrt(self.protocol.coinpress(records, part).noise_variance(part))
        if isinstance(self.protocol, LocalHajek):
            return math.sqrt(self.protocol.noise_variance(family))
        return math.sqrt(self.protocol.noise_variance(records))

    def sampling_bound(self, records: int) -> float:
        """Standard deviation from taking the family instead of all sets, at most, in values."""
        k, half = self.kernel.degree, float(self.kernel.interval.width) / 2
        if self.name in ("laplace", "coinpress_all", "hajek"):
            return 0.0
        if self.count:
            return half / math.sqrt(self.count)
        taken = (records - records // 2 if self.name == "hajek_split" else records) // k
        shared = (
            comb(records - k - 2, k - 2) / comb(records - k, k)
            if k >= 2 and 2 * k <= records
            else 0.0
        )
        return half * math.sqrt(min(1.0, 1 / taken + shared))

    @property
    def event(self) -> PureEvent:
        return self.protocol.event
