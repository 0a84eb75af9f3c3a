"""The sums that a study can release at all, and the refusal of every other sum.

A sum over E lies between |E|·min f and |E|·max f, and its noise stays within a tail bound but for a
probability of 2^-64. A sum outside both is no result: a process deviated from the protocol, or its
memory failed. The sum itself is never shown, because a liar may have put one record's value there.

*False alarms*: honest parties are refused with a probability of at most 2^-64 for each sum, because
the value is always inside its range and the tail bound is exceeded no more often. Noise of finitely
many coins never exceeds its bound, so it is never refused.

*Missed*: any deviation that leaves the sum inside the range.

*What a refusal tells*: a liar that makes the sum impossible for one value of a bit learns that bit
from the refusal. So the coordinator tells no node of it (`umpc/coordinator/client.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import ceil, floor

from umpc.errors import ImpossibleResult
from umpc.study.document import Study
from umpc.study.grades import edge_interval
from umpc.study.sizes import Sizes
from umpc.ustat.kernel import Kernel

Range = tuple[int, int]
"""The least and the largest possible number."""


def edge_range(study: Study, kernel: Kernel) -> Range:
    """The values that one edge can have in this study, in units of the kernel.

    This is the only place that says so: a grade that lets a liar flip bits widens the range here.
    """
    interval = edge_interval(kernel, study.adversary)
    return floor(interval.low / kernel.unit), ceil(interval.high / kernel.unit)


def sum_range(study: Study, kernel: Kernel, edges: int, tail: int) -> Range:
    """The values that a sum of this many edges can have with its noise, in units of the kernel."""
    low, high = edge_range(study, kernel)
    return edges * low - tail, edges * high + tail


def check_sums(sizes: Sizes, totals: Sequence[int], tails: Sequence[int]) -> None:
    """Whether every released sum is possible.

    Args:
        totals: the noisy sums, in units of their kernels.
        tails: a bound of each sum's noise in units, but for a probability of 2^-64.

    Raises: ImpossibleResult.
    """
    study = sizes.study
    for kernel, total, tail in zip(study.parsed_kernels, totals, tails, strict=True):
        low, high = sum_range(study, kernel, sizes.edges, tail)
        if not low <= total <= high:
            scale = kernel.unit / sizes.edges
            raise impossible(study, f"every possible mean {within(low * scale, high * scale)}")


def within(low: Fraction | float, high: Fraction | float) -> str:
    """A range in words."""
    return f"lies in [{float(low):.6g}, {float(high):.6g}], noise included"


def impossible(study: Study, limit: str) -> ImpossibleResult:
    """The refusal of a result. Args: limit: what is possible, as a clause."""
    return ImpossibleResult(
        f"the study {study.name!r} released a result that its records and its noise cannot give: "
        f"{limit}. A process deviated from the protocol, or its memory failed; the result does not "
        f"say which process. No estimate is shown, and the nodes have charged epsilon; find the "
        f"cause before the study is run again under a new name",
        step="release",
    )
