"""The accountant against Google's dp-accounting, which only `make oracles` installs."""

from __future__ import annotations

import random
from fractions import Fraction

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution
from dp_accounting.rdp import rdp_privacy_accountant

from reproduction.baselines.events import LaplaceEvent
from reproduction.baselines.losses import loss_epsilon
from umpc.dp.composition import (
    ADVANCED,
    ZCDP,
    Composition,
    gaussian_curve,
    renyi_epsilon,
    total_weight,
)
from umpc.dp.events import PureEvent

DELTA = Fraction(1, 10**6)


@pytest.mark.parametrize(("scale", "s", "k"), [(10, 1, 50), (100, 7, 30), (5, 3, 10)])
def test_loss_distributions_agree_with_google(scale, s, k):
    law = privacy_loss_distribution.from_discrete_laplace_mechanism(
        1 / scale, s, value_discretization_interval=1e-4
    )
    theirs = law.self_compose(k).get_epsilon_for_delta(float(DELTA))
    assert float(loss_epsilon([LaplaceEvent(Fraction(scale), s)] * k, DELTA)) == pytest.approx(
        theirs, rel=2e-3
    )


@pytest.mark.parametrize("rho", [Fraction(1, 1000), Fraction(1, 20), Fraction(1)], ids=str)
def test_rényi_agrees_with_google(rho):
    orders = np.arange(2, 2000).astype(float)
    theirs, _ = rdp_privacy_accountant.compute_epsilon(orders, float(rho) * orders, float(DELTA))
    ours = renyi_epsilon(gaussian_curve(rho), DELTA)
    assert float(ours) == pytest.approx(theirs, rel=2e-3)
    assert ours >= theirs * (1 - 1e-9)


@pytest.mark.parametrize("seed", range(8))
def test_a_ledger_is_never_below_google(seed):
    """Random sequences of studies: the ledger's epsilon against composed loss distributions."""
    rng = random.Random(seed)
    scales = [Fraction(rng.randint(5, 400)) for _ in range(rng.choice([3, 40, 150]))]
    laws = [
        privacy_loss_distribution.from_discrete_laplace_mechanism(
            1 / float(scale), 1, value_discretization_interval=1e-4, pessimistic_estimate=False
        )
        for scale in scales
    ]
    whole = laws[0]
    for law in laws[1:]:
        whole = whole.compose(law)
    theirs = whole.get_epsilon_for_delta(float(DELTA))
    for name in (ADVANCED, ZCDP):
        rule = Composition(name, DELTA)
        weights = [rule.weigh(1 / s, Fraction(0), (PureEvent(1 / s),)) for s in scales]
        assert rule.epsilon(total_weight(weights)) >= theirs * (1 - 1e-6)
