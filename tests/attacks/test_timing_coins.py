"""The draw of noise takes the same steps whatever its value is.

Steps are counted as calls of functions. The node's clock is tested where the draws are.
"""

from __future__ import annotations

import sys
from fractions import Fraction

import pytest

from tests.support.studies import Entropy
from umpc.dp.calibration import DistributedLaplace

LINE = "the time from Begin to Prepared tells the node's noise"
LAWS = [
    DistributedLaplace(Fraction(1, 4), 1, 4, 4),
    DistributedLaplace(Fraction(1), 1000, 16, 16),
    DistributedLaplace(Fraction(1), 7, 3, 1),
]


def steps(law: DistributedLaplace, seed: str) -> tuple[int, int]:
    """The noise of one draw, and how many functions it called."""
    entropy = Entropy(seed)
    calls = 0

    def bits(count: int) -> int:
        return int.from_bytes(entropy((count + 7) // 8), "little") >> (-count % 8)

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        drawn = law.draw(bits)
    finally:
        sys.setprofile(before)
    return drawn, calls


@pytest.mark.attack(LINE, "both", "bounded: every draw takes the same steps")
@pytest.mark.parametrize("law", LAWS, ids=["4 nodes", "scale 1000", "h = 1"])
def test_every_draw_takes_the_same_steps(law):
    steps(law, "the first draw fills caches")
    seen = [steps(law, f"coins {run}") for run in range(24)]
    assert len({drawn for drawn, _ in seen}) > 1, "the power of the test: noise differs"
    assert len({calls for _, calls in seen}) == 1, seen
