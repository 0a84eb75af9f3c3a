"""Tables of errors: the prediction of each baseline beside measured runs on made tables.

Noise is drawn from `secrets`, so measured numbers differ a little from run to run. Tables and
graphs are made by fixed seeds.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from statistics import fmean
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reproduction.baselines.dpsgd import PairwiseSgd, calibrate_noise, pairwise_risk
from reproduction.baselines.gopa import Edges, Gopa, calibrate_gopa
from reproduction.baselines.textbook import (
    calibrate_gaussian,
    exponential,
    gaussian,
    local_mean,
    randomised_response,
)
from reproduction.baselines.triangles import TriangleDensity, triangle_terms
from umpc.ustat.kernel import Kernel
from umpc.ustat.schema import FieldSchema, Schema
from umpc_papers.central.central_mechanisms import MedianOfMeans, failure, least_chunks
from umpc_papers.central.global_sensitivity import GlobalSensitivity
from umpc_papers.central.terms import CompleteFamily, total
from umpc_papers.central.uniformity import UniformityTest

ZERO = Fraction(0)
ONE = Fraction(1)
DELTA = Fraction(1, 10**6)
SCHEMA = Schema([FieldSchema(name, ZERO, Fraction(9), ONE) for name in ("x", "y")])
KENDALL = Kernel.from_text("sign(a.x - b.x) * sign(a.y - b.y)", SCHEMA)
RING: Edges = tuple((i, (i + 1) % 8) for i in range(8))
CHORDS: Edges = tuple((i, i + 4) for i in range(4))


class Printed(NamedTuple):
    """A table: its title, its columns, its rows."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


COMPARED = ("case", "quantity", "predicted", "measured")


def _rmse(draw: Callable[[], Fraction], truth: Fraction, runs: int) -> float:
    """Root mean squared error of several runs."""
    return math.sqrt(fmean(float(draw() - truth) ** 2 for _ in range(runs)))


def _compared(case: str, quantity: str, predicted: float, measured: float) -> tuple[str, ...]:
    return case, quantity, f"{predicted:.4g}", f"{measured:.4g}"


def textbook(runs: int) -> Printed:
    """Gaussian noise, randomised response, a local mean and the exponential mechanism."""
    bits, grid = secrets.randbits, Fraction(1, 1000)
    (noise,) = calibrate_gaussian(ONE, DELTA, (1000,))
    error = _rmse(lambda: gaussian(ZERO, ONE, ONE, DELTA, bits, grid), ZERO, runs)
    truths = fmean(randomised_response(0, 4, ONE, bits) == 0 for _ in range(5 * runs))
    utilities = [Fraction(2), ONE, ZERO]
    best = fmean(exponential(utilities, ONE, ONE, bits) == 0 for _ in range(5 * runs))
    odds = [math.exp(utility / 2) for utility in utilities]
    halves = [Fraction(1, 2)] * 4
    local = _rmse(lambda: local_mean(halves, ZERO, ONE, ONE, bits), Fraction(1, 2), runs)
    rows = [
        _compared("Gaussian, ε = 1, δ = 10⁻⁶, s = 1", "std", noise.std / 1000, error),
        _compared("randomised response, 4 answers", "truth", math.e / (math.e + 3), truths),
        _compared("local mean of 4 in [0, 1]", "std", math.sqrt(2 / 4), local),
        _compared("exponential, utilities 2, 1, 0", "best", odds[0] / sum(odds), best),
    ]
    return Printed("Textbook mechanisms, ε = 1", COMPARED, rows)


def federation(edges: Edges = (*RING, *CHORDS), colluding: frozenset[int] = frozenset()) -> Gopa:
    """GOPA among 8 parties with values in [0, 1], for ε = 1 and δ = 10⁻⁶."""
    grid, ratio = Fraction(1, 1024), Fraction(100)
    return calibrate_gopa(ZERO, ONE, grid, 8, edges, ONE, DELTA, ratio, colluding)


def gopa(runs: int) -> Printed:
    """The error of GOPA's mean, and its ρ beside a curator's, on three graphs."""
    values = [Fraction(i, 8) for i in range(8)]
    truth = sum(values, ZERO) / 8
    cases: list[tuple[str, Edges, frozenset[int]]] = [
        ("ring with chords", (*RING, *CHORDS), frozenset()),
        ("two of them collude", (*RING, *CHORDS), frozenset({0, 2})),
        ("ring, two cut it", RING, frozenset({0, 4})),
    ]
    rows = []
    for case, edges, colluding in cases:
        protocol = federation(edges, colluding)
        error = _rmse(partial(protocol.estimate, values, secrets.randbits), truth, runs)
        ratio = float(protocol.rho / protocol.central_rho)
        predicted = math.sqrt(protocol.noise_variance)
        rows.append((*_compared(case, "std of the mean", predicted, error), f"{ratio:.2f}"))
    columns = (*COMPARED, "ρ, a curator's = 1")
    return Printed("GOPA: a mean of 8 parties, ε = 1, δ = 10⁻⁶", columns, rows)


def median(runs: int) -> Printed:
    """The error of a median of means. All records are equal, so the error is noise alone."""
    records = 200
    table = {name: np.full(records, 3, dtype=np.int64) for name in ("x", "y")}
    single = GlobalSensitivity(KENDALL, ONE)
    rows = []
    for chunks in (1, 5, least_chunks(Fraction(1, 100))):
        wrapper = MedianOfMeans(single, chunks)
        noise = single.noise_variance(records // chunks)
        bound = math.sqrt(wrapper.mse_bound(noise))
        likely = math.sqrt(wrapper.mse_normal(noise))
        error = _rmse(partial(wrapper.estimate, table, secrets.randbits), ZERO, runs)
        missed = float(failure(chunks, Fraction(1, 4)))
        rows.append(
            (
                *_compared(
                    f"{chunks} chunk{'s' if chunks > 1 else ''}",
                    "RMSE, normal errors",
                    likely,
                    error,
                ),
                f"{bound:.4g}",
                f"{missed:.3f}",
            )
        )
    columns = (*COMPARED, "bound", "failure, each 1/4")
    return Printed(f"Median of means: Kendall's tau, {records} equal records, ε = 1", columns, rows)


def sphere_graph(nodes: int, radius: float) -> NDArray[np.bool_]:
    """Random points on a sphere, connected if they are nearer than the radius."""
    points = np.random.default_rng(1).normal(size=(nodes, 3))
    points /= np.linalg.norm(points, axis=1)[:, None]
    near: NDArray[np.bool_] = np.linalg.norm(points[:, None] - points[None], axis=2) < radius
    np.fill_diagonal(near, False)
    return near


def triangles(runs: int) -> Printed:
    """The error of the share of triangles."""
    nodes = 60
    rows = []
    for radius in (0.5, 1.5):
        graph = sphere_graph(nodes, radius)
        family = CompleteFamily(nodes, 3)
        truth = Fraction(int(total(triangle_terms(graph), family)), family.count)
        protocol = TriangleDensity(Fraction(8))
        predicted = math.sqrt(protocol.noise_variance(int(graph.sum()) // 2, nodes))
        error = _rmse(partial(protocol.estimate, graph, secrets.randbits), truth, min(runs, 20))
        case = f"radius {radius}: {float(truth):.4f} are triangles"
        rows.append(_compared(case, "noise", predicted, error))
    return Printed(f"Triangles: a graph of {nodes} nodes on a sphere, ε = 8", COMPARED, rows)


def uniformity_test() -> UniformityTest:
    """A test of 8 categories with 800 records, ε = 2."""
    return UniformityTest("x", 8, ONE, 800, Fraction(2))


def uniformity(runs: int) -> Printed:
    """The share of wrong answers of the test of uniformity; the prediction is an upper bound."""
    test = uniformity_test()
    rng = np.random.default_rng(1)
    rows = []
    for case, excess, odds in (
        ("uniform", ZERO, np.ones(8)),
        ("far: every second is missing", ONE, 1 + np.array([1, -1] * 4)),
    ):
        wrong = 0
        tries = min(runs, 10)
        for _ in range(tries):
            column = rng.choice(8, test.records, p=odds / odds.sum())
            wrong += test.decide({"x": column}, secrets.randbits).uniform != (not excess)
        rows.append(
            _compared(case, "wrong answers, bound", test.error_bound(excess), wrong / tries)
        )
    return Printed("Uniformity: 8 categories, 800 records, ε = 2", COMPARED, rows)


def dpsgd(runs: int) -> Printed:
    """The excess loss of a private ranking; the prediction is an upper bound."""
    records, steps = 200, 100
    rng = np.random.default_rng(1)
    x = rng.uniform(-0.35, 0.35, (records, 2))
    y = (x @ [2.0, -1.0] + rng.normal(0, 0.1, records) > 0).astype(np.float64)
    turns = np.linspace(0, 2 * np.pi, 60)
    candidates = [r * np.array([np.cos(t), np.sin(t)]) for t in turns for r in (1, 2, 3, 4)]
    least = min(pairwise_risk(theta, x, y, "logistic") for theta in candidates)
    rows = []
    for epsilon in (Fraction(1, 2), Fraction(2), Fraction(8)):
        noise = calibrate_noise(epsilon, DELTA, records, records, steps)
        sgd = PairwiseSgd(records, records, steps, ONE, noise, Fraction(4), pairs=4)
        found = [sgd.fit(x, y, secrets.randbits) for _ in range(min(runs, 3))]
        excess = fmean(pairwise_risk(theta, x, y, sgd.loss) for theta in found) - least
        case = f"ε = {float(epsilon):g}, noise z = {float(noise):.1f}"
        rows.append(_compared(case, "excess loss, bound", sgd.excess_bound(2), excess))
    title = f"DP-SGD: a ranking of {records} records in {steps} steps, δ = 10⁻⁶"
    return Printed(title, COMPARED, rows)
