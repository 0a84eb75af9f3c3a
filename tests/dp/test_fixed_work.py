"""Every draw of a law takes the same steps and the same number of random bits: no clock is asked.

The steps are the lines executed in umpc (`tests/support/steps.py`). The former draws, and mutants
that stop early, must be told apart by the same comparison.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import partial

import pytest

from reproduction.baselines.inversion import invert_polya
from reproduction.baselines.rejection import reject_gaussian, reject_poisson
from tests.support.statistical import SeededBits
from tests.support.steps import steps_of
from umpc.dp.calibration import DistributedLaplace
from umpc.dp.distributed_gaussian import DiscreteGaussian, discrete_gaussians
from umpc.dp.events import ball_at
from umpc.dp.geometric_poisson import discrete_laplaces, poisson_table, sample_poisson
from umpc.dp.polya import PolyaLaw, sample_polyas
from umpc.dp.random_bits import RandomBits
from umpc.dp.skellam import SkellamShare
from umpc.testing import lying
from umpc_papers.gopa.node import random_bits

Draw = Callable[[RandomBits], int]

DRAWS = 25
"""Draws that are compared; among so many values some are zero, some small, some large."""

LAWS: dict[str, Draw] = {
    "share 1/1": DistributedLaplace(Fraction(1), 1000, 2, 1).draw,
    "share 1/16": DistributedLaplace(Fraction(1), 1000, 32, 16).draw,
    "share 1/16 of scale 2^50": DistributedLaplace(Fraction(1), 2**50, 32, 16).draw,
    "share of scale 1": DistributedLaplace(Fraction(1), 1, 2, 2).draw,
    "polya 5/2": lambda bits: sample_polyas(Fraction(5, 2), Fraction(1, 9), 1, bits)[0],
    "discrete laplace": lambda bits: discrete_laplaces(Fraction(1, 1000), 1, bits)[0],
    "poisson 1/3": partial(sample_poisson, Fraction(1, 3)),
    "poisson 250": partial(sample_poisson, Fraction(250)),
    "poisson 1e6": partial(sample_poisson, Fraction(10**6)),
    "skellam 2": SkellamShare(Fraction(2), 2, 1).draw,
    "skellam 1e12": SkellamShare(Fraction(10**12), 2, 1).draw,
    "gaussian 1/2": DiscreteGaussian(Fraction(1, 2)).draw,
    "40 gaussians": partial(discrete_gaussians, Fraction(10**4), 40),
    "gaussian 1e8": DiscreteGaussian(Fraction(10**8)).draw,
}


def different_steps(draw: Draw, name: str) -> int:
    """The number of different sequences of steps among the draws of one law."""
    draw(SeededBits("tables are made before a bit is drawn"))
    seen, values = set(), set()
    for i in range(DRAWS):
        value, digest, _ = steps_of(draw, SeededBits(f"{name} {i}"))
        seen.add(digest)
        values.add(repr(value))
    assert len(values) > 1, "all draws gave one value: nothing was compared"
    return len(seen)


@pytest.mark.parametrize("name", LAWS)
def test_every_value_takes_the_same_steps(name):
    assert different_steps(LAWS[name], name) == 1


def test_the_pair_noise_of_gopa_takes_the_same_steps():
    """It is drawn from a stream that two nodes share."""

    class Shared:
        def __init__(self, seed: int):
            self._bits = SeededBits(f"pair {seed}")

        def bytes(self, count: int) -> bytes:
            return self._bits(8 * count).to_bytes(count, "little")

    law = DiscreteGaussian(Fraction(10**6))
    law.draw(SeededBits("tables"))
    seen = {steps_of(lambda _, i=i: law.draw(random_bits(Shared(i))), None)[1] for i in range(10)}
    assert len(seen) == 1


# --- power: these must be told apart --------------------------------------------------------------


@pytest.mark.parametrize(
    "draw",
    [
        partial(invert_polya, Fraction(1, 16), Fraction(1, 1000)),
        partial(reject_poisson, Fraction(10**6)),
        partial(reject_gaussian, Fraction(10**6)),
    ],
    ids=["polya", "poisson", "gaussian"],
)
def test_power_the_former_draws_take_different_steps(draw):
    assert different_steps(draw, "former") >= DRAWS // 5


def stops_early(honest, propose, odds, sharper_odds, often, count, bits):
    """A mutant of `first_accepted`: it makes few trials, and more until one is accepted."""
    few = partial(honest, propose, odds, sharper_odds, 1 - Fraction(1, 1 << 70), 1)
    return [few(bits)[0] for _ in range(count)]


@pytest.mark.parametrize("name", ["poisson 1e6", "gaussian 1e8", "40 gaussians"])
def test_mutant_trials_that_stop_early_are_caught(name):
    with lying("everybody", first_accepted=stops_early):
        assert different_steps(LAWS[name], name) > 1


def test_mutant_slots_only_for_the_jumps_that_count_are_caught():
    law = PolyaLaw(Fraction(1, 16), Fraction(1, 1000))
    assert different_steps(lambda bits: law.draw(2, bits), "honest") == 1
    law.slots = 0
    assert different_steps(lambda bits: law.draw(2, bits), "mutant") > 1


def test_mutant_a_walk_for_common_values_is_caught():
    """A table that ends at 1 leaves the other values to the slow walk."""
    mean = Fraction(1, 3)
    table = poisson_table(lambda precision: ball_at(mean, precision))
    assert different_steps(lambda bits: table.draw(1, bits), "honest") == 1
    table.size = 1
    assert different_steps(lambda bits: table.draw(1, bits), "mutant") > 1
