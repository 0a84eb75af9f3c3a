"""The accountant against Google's dp-accounting, which only `make oracles` installs."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution
from dp_accounting.rdp import rdp_privacy_accountant

from bench.baselines.events import LaplaceEvent
from bench.baselines.losses import loss_epsilon
from umpc.dp.renyi import gaussian_curve, renyi_epsilon

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
