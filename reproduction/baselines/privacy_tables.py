"""Tables of epsilons: with colluding nodes, on secret batches, and for composed releases."""

from __future__ import annotations

from fractions import Fraction

from reproduction.baselines.accounting import compose, compositions
from reproduction.baselines.collusion import remaining_epsilon
from reproduction.baselines.dpsgd import PairwiseSgd
from reproduction.baselines.error_tables import Printed, uniformity_test
from reproduction.baselines.events import (
    ApproximateEvent,
    Event,
    ExponentialEvent,
    GaussianEvent,
    LaplaceEvent,
    SkellamEvent,
)
from reproduction.baselines.triangles import TriangleDensity
from umpc.dp.events import PureEvent
from umpc.dp.skellam import DistributedSkellam

ONE = Fraction(1)
DELTA = Fraction(1, 10**6)


def collusion() -> Printed:
    """The epsilon that is left if fewer nodes are honest than the noise was made for."""
    sensitivities = (1, 100, 65_536)
    rows = []
    for honest in (10, 9, 8, 5, 2, 1):
        left = (remaining_epsilon(ONE, s, 10, honest) for s in sensitivities)
        rows.append((f"{honest} of 10", *(f"{float(epsilon):.2f}" for epsilon in left)))
    columns = ("honest nodes", *(f"sensitivity {s:,}" for s in sensitivities))
    return Printed("Collusion: ε left of 1, for noise of 10 honest nodes", columns, rows)


def amplification() -> Printed:
    """The epsilon of many noisy gradients, on secret batches and on all records."""
    records = 4_500
    rows = []
    for batch in (45, 450, 2_250, 4_500):
        sgd = PairwiseSgd(records, batch, 100, ONE, Fraction(4), ONE)
        bound = sgd.epsilon(DELTA)
        rows.append((f"{batch:,} of {records:,}", f"{float(bound):.3f}"))
    title = "Amplification: ε of 100 gradients of noise z = 4, δ = 10⁻⁶"
    return Printed(title, ("records in a secret batch", "ε"), rows)


def accounting() -> Printed:
    """The composed epsilon of several releases, by each theorem that applies."""
    theorems = ("basic", "advanced", "renyi", "losses")
    rows = []
    for name, events in _releases().items():
        bounds = compositions(events, DELTA)
        found = [f"{float(bounds[t]):.3f}" if t in bounds else "–" for t in theorems]
        rows.append((name, *found, f"{float(compose(events, DELTA)):.3f}"))
    return Printed("Accounting: ε together, δ = 10⁻⁶", ("releases", *theorems, "least"), rows)


def _releases() -> dict[str, list[Event]]:
    """Some lists of events, among them those of two baselines."""
    skellam = DistributedSkellam(ONE, DELTA / 2, (3, 4), nodes=4, honest=3)
    noisy = SkellamEvent(skellam.honest_variances, skellam.sensitivities)
    tenth = Fraction(1, 10)
    return {
        "100 of ε = 1/10": [PureEvent(tenth)] * 100,
        "100 discrete Laplace, scale 70, s = 7": [LaplaceEvent(Fraction(70), 7)] * 100,
        "100 exponential mechanisms, ε = 1/10": [ExponentialEvent(tenth)] * 100,
        "10 of ε = 1/10 and δ = 10⁻⁸": [ApproximateEvent(tenth, Fraction(1, 10**8))] * 10,
        "10 discrete Gaussian, σ² = 1,000, s = 1": [GaussianEvent((Fraction(1000),), (1,))] * 10,
        "Skellam on 2 sums, and ε = 1/10": [noisy, PureEvent(tenth)],
        "uniformity test and triangles": [uniformity_test().event, TriangleDensity(ONE).event],
    }
