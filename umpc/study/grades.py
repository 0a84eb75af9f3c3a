"""The grades of promise: what a study promises if its participants lie.

A study names its grade as `adversary`, a site's policy may ask for one, and the report repeats it.
docs/privacy.md proves each promise, and the protocol's object writes it in words.
"""

from __future__ import annotations

from fractions import Fraction

from umpc.ustat.kernel import Kernel
from umpc.ustat.ranges import Interval

HONEST = "honest"
LYING_NODES = "lying_nodes"
ADVERSARIES = (HONEST, LYING_NODES)
"""The grades, the weakest promise first."""


def edge_change(kernel: Kernel, adversary: str) -> Fraction:
    """The most that one edge's value changes when one record of an honest node is replaced.

    Raises: KernelError, RangeError for a kernel that the grade does not allow.
    """
    return kernel.robust.change if adversary == LYING_NODES else kernel.interval.width


def edge_interval(kernel: Kernel, adversary: str) -> Interval:
    """An interval of one edge's value, whatever the grade's adversary does to opened bits.

    Raises: as `edge_change`.
    """
    return kernel.robust.interval if adversary == LYING_NODES else kernel.interval
